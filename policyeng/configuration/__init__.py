"""Settings from flags, environment, configuration file and defaults, in this order, with the origin of each value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

from msgspec.structs import replace

from policyeng.configuration.settings import (
    ENVIRONMENT_PREFIX,
    LISTS,
    NAMES,
    GivenSetting,
    Settings,
    describe_unknown_variables,
    from_environment,
    from_flags,
    list_settings,
)
from policyeng.configuration.toml_file import candidates, find_configuration, from_file
from policyeng.errors import UsageError, suggest_nearest
from policyeng.models import Blame, Severity
from policyeng.sources.discovery import excluded

__all__ = ["ENVIRONMENT_PREFIX", "Settings", "candidates", "describe_unknown_variables", "resolve"]

#: Settings that are lists of any strings.
_STRINGS = frozenset(LISTS) - {"azure_policy", "exemptions"}
#: The accepted words of settings.
_WORDS: Mapping[str, Iterable[str]] = {"fail_on": Severity, "blame": Blame}


def resolve(
    flags: Mapping[str, object],
    environ: Mapping[str, str],
    directory: Path,
    config: Path | None = None,
) -> Settings:
    """Resolve every setting: flags override the environment, which overrides the file, which overrides the defaults.

    Args:
        flags: by setting name; None or an empty sequence means that the flag was not given.
        environ: `POLICYENG_<FLAG>` in capitals; lists are separated by commas.
        directory: where the search for a configuration file starts; it continues in the parent directories.
        config: the file given with `--config`, which replaces the search; relative to `directory`.

    Raises:
        UsageError: an unknown key, with the nearest name; a value that is not valid; a given file that does
            not exist; a file that is not TOML; or a file that was found and that other users can change.
    """
    given: dict[str, GivenSetting] = {}
    named = config or environ.get(f"{ENVIRONMENT_PREFIX}CONFIG")
    file = find_configuration(named, directory)
    if file is not None:
        given |= from_file(file)
    overrides = {**dict(from_environment(environ)), **dict(from_flags(flags))}
    if "exclude" in overrides:
        patterns, origin = overrides["exclude"]
        listed = patterns if isinstance(patterns, list | tuple) else [patterns]
        overrides["exclude"] = GivenSetting(excluded(map(str, listed), directory), origin)
    settings = _settings({**given, **overrides}, file and file.path)
    return settings if named or file is None else replace(settings, is_found=True)


def _is_strings(value: object) -> TypeGuard[Sequence[str]]:
    return isinstance(value, list | tuple) and all(isinstance(entry, str) for entry in value)


def _settings(given: Mapping[str, GivenSetting], file: Path | None) -> Settings:
    for name, (_, origin) in given.items():
        if name not in NAMES:
            raise UsageError(
                f"unknown setting `{name}`{suggest_nearest(name, NAMES)}", place=(origin,), remedy=list_settings()
            )
    origins = {name: given[name].origin if name in given else "default" for name in NAMES}
    values = {name: value for name, (value, _) in given.items()}
    if all(name in _STRINGS and _is_strings(value) for name, value in values.items()):  # most runs, without pydantic
        strings: dict[str, Any] = {name: tuple(value) for name, value in values.items() if _is_strings(value)}
        return Settings(**strings, origins=origins, file=file)
    from pydantic import ValidationError

    try:
        return Settings.model_validate({**values, "origins": origins, "file": file})
    except ValidationError as error:
        details = error.errors(include_url=False)[0]
        name = str(details["loc"][0])
        wanted = details["msg"].removeprefix("Input should be ").replace("'", "`")
        remedy = f"it must be {'a path' if details['type'] == 'path_type' else wanted}"
        wrong = values[name] if len(details["loc"]) == 1 else details["input"]
        close = suggest_nearest(str(wrong), _WORDS[name]) if name in _WORDS else ""
        message = f"invalid value `{wrong}` for `{name}`{close}"
        raise UsageError(message, place=(origins[name],), remedy=remedy) from None
