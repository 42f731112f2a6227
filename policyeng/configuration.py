"""What a run is told: flags over environment over configuration file over defaults, with where each value came from."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import NamedTuple

from pydantic import Field, ValidationError, field_validator

from policyeng.errors import UsageError, nearest
from policyeng.models import JsonObject, Model, Severity

ENVIRONMENT_PREFIX = "POLICYENG_"
FILE_NAME = "policyeng.toml"

_LISTS = ("select", "ignore", "exemptions")
_TABLE = "tool.policyeng"


class Settings(Model):
    """The settings of a run.

    Attributes:
        profile: the name of a profile of the bundle, whose parameters go before the defaults and after `parameters`.
        fail_on: failures at or above this severity fail the run.
        strict_unknown: what cannot be decided fails it, too.
        select, ignore: policy ids, areas, controls or severities.
        exemptions: exemption files; those named in a configuration file are relative to it.
        max_exemption_days: the longest life of an exemption.
        verification_key: a public key; the signatures of bundles are verified with it. One that a configuration file
            names is relative to it.
        verification_algorithm, verification_key_id, verification_scope: what its signatures are made with and state.
        require_signature: directories of policies have to be signed too.
        parameters: by policy id and parameter name.
        origins: by setting, where its value came from: `flag --x`, `environment X`, `FILE:LINE` or `default`.
    """

    profile: str | None = None
    fail_on: Severity = Severity.LOW
    strict_unknown: bool = False
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exemptions: tuple[Path, ...] = ()
    max_exemption_days: int = Field(default=365, ge=1, le=36500)
    verification_key: Path | None = None
    verification_algorithm: str = ""
    verification_key_id: str = ""
    verification_scope: str = ""
    require_signature: bool = False
    parameters: Mapping[str, JsonObject] = {}
    origins: Mapping[str, str] = {}

    @field_validator("fail_on", mode="before")
    @classmethod
    def _in_any_case(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value


_NAMES = tuple(name for name in Settings.model_fields if name != "origins")


class _Given(NamedTuple):
    """A value that someone gave, and where."""

    value: object
    origin: str


class _File(NamedTuple):
    """A configuration file: `first` is the line where its settings begin."""

    path: Path
    text: str
    table: Mapping[str, object]
    first: int = 1

    def place(self, key: str) -> str:
        """The file, and the line that sets a key when it is found."""
        name = rf"[\"']?{re.escape(key)}[\"']?"
        sets = re.compile(rf"\s*(\[.*(?<![\w-]){name}\s*[\].]|([\w.\"'-]+\.)?{name}\s*[=.])")
        for line, text in enumerate(self.text.splitlines(), 1):
            if line >= self.first and sets.match(text):
                return f"{self.path}:{line}"
        return str(self.path)


def resolve(
    flags: Mapping[str, object],
    environ: Mapping[str, str],
    directory: Path,
    config: Path | None = None,
    *,
    flags_elsewhere: Collection[str] = (),
) -> Settings:
    """Settle every setting: a flag wins over the environment, that over the file, that over the default.

    Args:
        flags: by setting name; None or an empty sequence means that the flag was not given.
        environ: `POLICYENG_<FLAG>` in capitals; lists are separated by commas.
        directory: where the search for a configuration file begins; it goes upward to the root.
        config: the configuration file that `--config` names, instead of a search; relative to `directory`.
        flags_elsewhere: flags that others read from the environment; their variables are not refused here.

    Raises:
        UsageError: an unknown key or variable, with the nearest name; a value that does not fit; a file that is named
            and missing, or not TOML.
    """
    given: dict[str, _Given] = {}
    file = _file(config or environ.get(f"{ENVIRONMENT_PREFIX}CONFIG"), directory)
    if file is not None:
        given |= _from_file(file)
    given |= _from_environment(environ, flags_elsewhere)
    given |= _from_flags(flags)
    return _settings(given)


def _settings(given: Mapping[str, _Given]) -> Settings:
    for name, (_, origin) in given.items():
        if name not in _NAMES:
            raise UsageError(f"unknown setting `{name}`{nearest(name, _NAMES)}", place=(origin,), remedy=_known())
    origins = {name: given[name].origin if name in given else "default" for name in _NAMES}
    values = {name: value for name, (value, _) in given.items()}
    if not values:  # the defaults need no validator
        return Settings.model_construct(origins=origins)
    try:
        return Settings.model_validate({**values, "origins": origins})
    except ValidationError as error:
        details = error.errors(include_url=False)[0]
        name = str(details["loc"][0])
        remedy = "it should be " + details["msg"].removeprefix("Input should be ").replace("'", "`")
        wrong = values[name] if len(details["loc"]) == 1 else details["input"]
        close = nearest(str(wrong), Severity) if name == "fail_on" else ""
        message = f"`{name}` does not fit: `{wrong}`{close}"
        raise UsageError(message, place=(origins[name],), remedy=remedy) from None


def _known() -> str:
    return "known are " + ", ".join(f"`{name}`" for name in _NAMES)


# ---------------------------------------------------------------- the file


def _file(named: Path | str | None, directory: Path) -> _File | None:
    if named:
        path = directory / named
        if not path.is_file():
            remedy = "name a file that exists, or leave `--config` out"
            raise UsageError("no such configuration file", place=(str(path),), remedy=remedy)
        file = _read(path)
        if file is None:
            raise UsageError(f"the file has no `[{_TABLE}]`", place=(str(path),), remedy=f"add `[{_TABLE}]`")
        return file
    for folder in (directory, *directory.parents):
        for path in (folder / FILE_NAME, folder / "pyproject.toml"):
            if path.is_file() and (file := _read(path)) is not None:
                return file
    return None


def _read(path: Path) -> _File | None:
    """The table of settings in a file; None when it is a `pyproject.toml` without one."""
    import tomllib  # only where there is a file to read

    try:
        text = path.read_bytes().decode("utf-8")
        document = tomllib.loads(text)
    except OSError as error:
        reason = (error.strerror or "unreadable").lower()
        raise UsageError(f"cannot be read ({reason})", place=(str(path),), remedy="make it readable") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        reason = str(error) or "nested too deeply"
        raise UsageError(f"not valid TOML ({reason})", place=(str(path),), remedy="correct it there") from None
    if path.name != "pyproject.toml":
        return _File(path, text, document)
    tool = document.get("tool")
    table = tool.get("policyeng") if isinstance(tool, dict) else None
    if not isinstance(table, dict):
        return None
    first = next((line for line, row in enumerate(text.splitlines(), 1) if _TABLE in row), 1)
    return _File(path, text, table, first)


def _from_file(file: _File) -> Iterator[tuple[str, _Given]]:
    for key, value in file.table.items():
        place = file.place(key)
        if key not in _NAMES:
            raise UsageError(f"unknown key `{key}`{nearest(key, _NAMES)}", place=(place,), remedy=_known())
        yield key, _Given(_value(key, value, file, place), place)


def _value(key: str, value: object, file: _File, place: str) -> object:
    if key == "parameters":
        _require_parameters(value, file)
    if key == "max_exemption_days" and type(value) is not int:
        raise UsageError(f"`{key}` does not fit: `{value}`", place=(place,), remedy="write a number of days")
    if key in ("require_signature", "strict_unknown") and not isinstance(value, bool):
        raise UsageError(f"`{key}` does not fit: `{value}`", place=(place,), remedy="write true or false")
    if key == "verification_key" and isinstance(value, str) and value:
        return file.path.parent / value
    if key not in _LISTS:
        return value
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(entry, str) and entry for entry in listed):
        raise UsageError(f"`{key}` is not a list of text", place=(place,), remedy=f'write `{key} = ["..."]`')
    return [file.path.parent / entry for entry in listed] if key == "exemptions" else listed


def _require_parameters(value: object, file: _File) -> None:
    """Refuse parameters that are no table for each policy, or whose values JSON does not have."""
    remedy = 'write `[parameters."AML-..."]` and its parameters below'
    if not isinstance(value, dict):
        raise UsageError("`parameters` is not a table", place=(file.place("parameters"),), remedy=remedy)
    for policy, chosen in value.items():
        if not isinstance(chosen, dict):
            message = f"the parameters of `{policy}` are not a table"
            raise UsageError(message, place=(file.place(policy),), remedy=remedy)
        for name, content in chosen.items():
            if not _is_json(content):
                message = f"the parameter `{name}` of `{policy}` is not a JSON value"
                raise UsageError(
                    message, place=(file.place(name),), remedy="write times in quotes, and numbers within 64 bits"
                )


def _is_json(value: object) -> bool:
    if isinstance(value, dict):
        return all(_is_json(part) for part in value.values())
    if isinstance(value, list):
        return all(_is_json(part) for part in value)
    if isinstance(value, int):
        return -(2**63) <= value < 2**64
    return isinstance(value, str) or (isinstance(value, float) and isfinite(value))


# ---------------------------------------------------------------- flags and the environment


def _from_flags(flags: Mapping[str, object]) -> Iterator[tuple[str, _Given]]:
    for name, value in flags.items():
        if value in (None, (), []) or value is False:  # a flag that was not given takes nothing back
            continue
        if name in ("select", "ignore") and isinstance(value, list | tuple):
            value = [part for entry in value for part in _parts(str(entry))]
        yield name, _Given(value, f"flag --{name.replace('_', '-')}")


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _from_environment(environ: Mapping[str, str], flags_elsewhere: Collection[str]) -> Iterator[tuple[str, _Given]]:
    known = {f"{ENVIRONMENT_PREFIX}{name.upper()}": name for name in _NAMES if name != "parameters"}
    others = {f"{ENVIRONMENT_PREFIX}{name.upper().replace('-', '_')}" for name in (*flags_elsewhere, "config")}
    for variable, text in environ.items():
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable in others:
            continue
        if variable not in known:
            message = f"unknown variable{nearest(variable, [*known, *others])}"
            remedy = "known are " + ", ".join(f"`{name}`" for name in sorted({*known, *others}))
            raise UsageError(message, place=(f"environment {variable}",), remedy=remedy)
        name = known[variable]
        if text:
            yield name, _Given(_parts(text) if name in _LISTS else text, f"environment {variable}")
