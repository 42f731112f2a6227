"""Settings from the command line and the environment."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from policyeng.configuration.settings import LISTS, NAMES, TABLES, GivenSetting
from policyeng.errors import suggest_nearest

ENVIRONMENT_PREFIX = "POLICYENG_"
#: The options of settings that are not called as these.
_OPTIONS = {"frameworks": "framework"}
_IN_ENVIRONMENT = tuple(name for name in NAMES if name not in TABLES)


def from_flags(flags: Mapping[str, object]) -> Iterator[tuple[str, GivenSetting]]:
    """Yield the settings that the command line sets, with their names."""
    for name, value in flags.items():
        if value in (None, (), []) or value is False:  # a flag that was not given overrides nothing
            continue
        if name in ("select", "ignore") and isinstance(value, list | tuple):
            value = [part for entry in value for part in _parts(str(entry))]
        yield name, GivenSetting(value, f"flag --{_OPTIONS.get(name, name).replace('_', '-')}")


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def from_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, GivenSetting]]:
    """Yield the settings that the environment sets, with their names."""
    for name in _IN_ENVIRONMENT:
        if text := environ.get(_variable(name)):
            yield name, GivenSetting(_parts(text) if name in LISTS else text, f"environment {_variable(name)}")


def describe_unknown_variables(environ: Mapping[str, str], flags_elsewhere: Collection[str]) -> Iterator[str]:
    """Yield a warning per `POLICYENG_` variable that sets nothing; it may belong to another program.

    Args:
        environ: the environment.
        flags_elsewhere: flags that are not settings and whose variables are known.
    """
    known = [_variable(name) for name in (*_IN_ENVIRONMENT, *flags_elsewhere, "config")]
    for variable in sorted(environ):
        if variable.startswith(ENVIRONMENT_PREFIX) and variable not in known:
            yield f"environment {variable}: unknown variable, ignored{suggest_nearest(variable, known)}"


def _variable(name: str) -> str:
    return f"{ENVIRONMENT_PREFIX}{name.upper().replace('-', '_')}"
