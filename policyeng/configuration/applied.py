"""What settings come to, for reports: which of them are not at their defaults, and where they were set."""

from __future__ import annotations

import re
from pathlib import Path

from policyeng.configuration.settings import Settings
from policyeng.masking import MASK, masked
from policyeng.models import AppliedSettings, JsonObject, SettingChange

#: Settings with no effect on what is found or decided; URLs with secrets are among them.
_ELSEWHERE = ("store", "expect", "estates", "notify")
#: The same of options.
_PRESENTATION = ("format", "group-by", "owner-tag", "show-skipped", "jobs", "no-cache")
_ENVIRONMENT = "environment "


def applied_settings(settings: Settings) -> AppliedSettings:
    """Describe for a report what was configured, secrets masked; files in the working directory by relative path."""
    file = _shown(settings.file) if settings.file else ""
    given = [name for name, origin in settings.origins.items() if origin != "default" and name not in _ELSEWHERE]
    values: JsonObject = settings.model_dump(mode="json", include=set(given)) if given else {}
    if "exclude" in values:
        here = re.compile(rf"^(!?){re.escape(Path.cwd().as_posix())}/")
        values["exclude"] = [here.sub(r"\1/", pattern) for pattern in values["exclude"]]
    changes = [
        SettingChange(
            setting=name,
            value=masked(values[name]),
            origin=settings.origins[name].replace(str(settings.file), file, 1),
        )
        for name in given
    ]
    for variable, (option, value) in settings.variables.items():
        if option in _PRESENTATION:
            continue
        name = "template parameters" if option == "parameters" else option  # there is a setting `parameters`
        origin = _ENVIRONMENT + variable
        changes.append(SettingChange(setting=name, value=_harmless(option, value), origin=origin))
    environment = {change.origin.removeprefix(_ENVIRONMENT) for change in changes if _ENVIRONMENT in change.origin}
    return AppliedSettings(  # a validator would cost a short run more than all of this
        file=file,
        environment=tuple(sorted(environment)),
        changes=tuple(sorted(changes, key=lambda change: change.setting)),
    )


def _shown(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _harmless(option: str, value: object) -> object:
    """The value of an option without secrets; parameters of templates may be some, whatever their names."""
    if option == "parameters" and isinstance(value, list | tuple):
        return [
            f"{name}={MASK}" if equals else name for name, equals, _ in (str(each).partition("=") for each in value)
        ]
    plain = [str(each) for each in value] if isinstance(value, list | tuple) else value
    plain = plain if isinstance(plain, int | float | str | list) else str(plain)
    return masked({option: plain})[option]  # type: ignore[index]  # it gives an object for an object
