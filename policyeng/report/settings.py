"""Describe the settings of a run in one line of a report."""

from __future__ import annotations

from collections.abc import Iterator

from policyeng.models import AppliedSettings, SettingChange
from policyeng.report.escaping import compact, visible

#: The longest value shown, in characters; the JSON report has the complete value.
_LONGEST = 100


def settings_text(settings: AppliedSettings) -> str:
    """Return the configuration file and the environment variables with their settings, on one line; empty without any.

    Flags are omitted: they are visible on the command line.
    """
    return visible("; ".join(_sources(settings)))


def _sources(settings: AppliedSettings) -> Iterator[str]:
    if settings.file:
        changes = [change for change in settings.changes if not change.origin.startswith(("environment ", "flag "))]
        yield f"{settings.file} ({', '.join(map(_change, changes)) or 'changes nothing'})"
    for variable in settings.environment:
        changes = [change for change in settings.changes if change.origin == f"environment {variable}"]
        yield f"{variable} ({', '.join(map(_change, changes))})"


def _change(change: SettingChange) -> str:
    value = change.value
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        text = " ".join(value)
    else:
        text = value if isinstance(value, str) else compact(value)
    return f"{change.setting} {text if len(text) <= _LONGEST else text[:_LONGEST] + '…'}"
