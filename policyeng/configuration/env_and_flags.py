"""Settings from the command line and the environment."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from policyeng.configuration.settings import LISTS, NAMES, TABLES, GivenSetting
from policyeng.errors import UsageError, suggest_nearest

ENVIRONMENT_PREFIX = "POLICYENG_"


def from_flags(flags: Mapping[str, object]) -> Iterator[tuple[str, GivenSetting]]:
    """Yield the settings that the command line sets, with their names."""
    for name, value in flags.items():
        if value in (None, (), []) or value is False:  # a flag that was not given overrides nothing
            continue
        if name in ("select", "ignore") and isinstance(value, list | tuple):
            value = [part for entry in value for part in _parts(str(entry))]
        yield name, GivenSetting(value, f"flag --{name.replace('_', '-')}")


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def from_environment(
    environ: Mapping[str, str], flags_elsewhere: Collection[str]
) -> Iterator[tuple[str, GivenSetting]]:
    """Yield the settings that the environment sets, with their names; skips the variables of `flags_elsewhere`.

    Raises:
        UsageError: a `POLICYENG_` variable is unknown.
    """
    known = {f"{ENVIRONMENT_PREFIX}{name.upper()}": name for name in NAMES if name not in TABLES}
    others = {f"{ENVIRONMENT_PREFIX}{name.upper().replace('-', '_')}" for name in (*flags_elsewhere, "config")}
    for variable, text in environ.items():
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable in others:
            continue
        if variable not in known:
            message = f"unknown variable{suggest_nearest(variable, [*known, *others])}"
            remedy = "choose from " + ", ".join(f"`{name}`" for name in sorted({*known, *others}))
            raise UsageError(message, place=(f"environment {variable}",), remedy=remedy)
        name = known[variable]
        if text:
            yield name, GivenSetting(_parts(text) if name in LISTS else text, f"environment {variable}")
