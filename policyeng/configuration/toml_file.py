"""Search and reading of the configuration file, with the line of each key."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import fields

from policyeng.bundle.policy_selection import is_framework_file
from policyeng.configuration.settings import LISTS, NAMES, GivenSetting, list_settings
from policyeng.errors import UsageError, suggest_nearest
from policyeng.models import Enforcement, Mode, lowered
from policyeng.sources.discovery import excluded


class File(NamedTuple):
    """A configuration file.

    Attributes:
        first: the line where the settings start.
        inherited: whether the file was found in a parent of the directory where the search started.
    """

    path: Path
    text: str
    table: Mapping[str, object]
    first: int = 1
    inherited: bool = False

    def place(self, key: str) -> str:
        """Return the file, with the line that sets a key if it is found."""
        name = rf"[\"']?{re.escape(key)}[\"']?"
        sets = re.compile(rf"\s*(\[.*(?<![\w-]){name}\s*[\].]|([\w.\"'-]+\.)?{name}\s*[=.])")
        for line, text in enumerate(self.text.splitlines(), 1):
            if line >= self.first and sets.match(text):
                return f"{self.path}:{line}"
        return str(self.path)

    def place_of(self, key: str, position: int) -> str:
        """Return the file and the line of a `[[key]]` table by its position, from 0."""
        begins = re.compile(rf"\s*\[\[(?:[^\]]*\.)?\s*[\"']?{re.escape(key)}[\"']?\s*\]\]")
        lines = [
            line for line, text in enumerate(self.text.splitlines(), 1) if line >= self.first and begins.match(text)
        ]
        return f"{self.path}:{lines[position]}" if position < len(lines) else self.place(key)


_REMEDY = "pass the file with `--config FILE` or `POLICYENG_CONFIG`"


def require_trusted(path: Path, start: Path) -> None:
    """Refuse a configuration file that was found by search and that other users control.

    The file and its directory must belong to the user who runs policyeng, to root, or to the owner of the directory
    where the search started: that owner can add a configuration there anyway, and in a container the files of a mounted
    checkout belong to a user outside of it. Under sudo, the calling user is also allowed, as in git.
    In a parent directory, the file and the directory must also not be writable by their group or others. A directory
    with the sticky bit may be, because only the owner of a file can replace it there. Windows has no such owners and
    modes, so nothing is refused.

    Source: git, `safe.directory` and CVE-2022-24765.

    Args:
        path: the file.
        start: the directory where the search started.

    Raises:
        UsageError: another user owns the file or its directory, or can write to it.
    """
    if not hasattr(os, "geteuid"):
        return
    trusted = {os.geteuid(), 0, start.stat().st_uid, *_caller()}
    folder = path.parent
    for place, status in ((path, path.lstat()), (path, path.stat()), (folder, folder.stat())):
        if status.st_uid not in trusted:
            owner = _owner(status.st_uid)
            message = (
                f"refusing the configuration found here: its {_noun(place, path)} belongs to another user ({owner})"
            )
            raise UsageError(message, place=(str(path),), remedy=f"{_REMEDY}, or change the owner of `{place}`")
    if folder == start:
        return
    for place, mode in ((path, path.stat().st_mode), (folder, folder.stat().st_mode)):
        if mode & (stat.S_IWGRP | stat.S_IWOTH) and not (place == folder and mode & stat.S_ISVTX):
            owner = _owner(place.stat().st_uid)
            message = "refusing the configuration found in a parent directory: other users can write to its "
            message += f"{_noun(place, path)} (owner {owner}, mode {stat.S_IMODE(mode):04o})"
            raise UsageError(message, place=(str(path),), remedy=f"{_REMEDY}, or run `chmod go-w {place}`")


def _noun(place: Path, path: Path) -> str:
    return "file" if place == path else "directory"


def _caller() -> tuple[int, ...]:
    """Return the user who called sudo; only trusted for root, since other users can set the variable."""
    given = os.environ.get("SUDO_UID", "")
    return (int(given),) if os.geteuid() == 0 and given.isascii() and given.isdecimal() else ()


def _owner(number: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"uid {number}"


_KEYS = tuple(entry.name for entry in fields(Enforcement))
_TABLES = 'write `[[modes]]`, followed by `policy = "..."` and `mode = "warn"`'


def enforcements(value: object, file: File) -> list[Enforcement]:
    """Read the `[[modes]]` tables.

    Raises:
        UsageError: a table is not valid; with the line.
    """
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise UsageError("`modes` is not a list of tables", place=(file.place("modes"),), remedy=_TABLES)
    return [_enforcement(entry, file.place_of("modes", position)) for position, entry in enumerate(value)]


def _enforcement(entry: dict[str, object], place: str) -> Enforcement:
    for key, stated in entry.items():
        if key not in _KEYS:
            known = ", ".join(f"`{name}`" for name in _KEYS)
            raise UsageError(
                f"unknown key `{key}`{suggest_nearest(key, _KEYS)}", place=(place,), remedy=f"choose from {known}"
            )
        if not (isinstance(stated, str) and (stated.strip() or key == "scope")):
            raise UsageError(f"`{key}` of a mode is not a string", place=(place,), remedy=_TABLES)
    names, given = list(map(str, Mode)), str(entry.get("mode", ""))
    remedy = "choose from " + ", ".join(f"`{name}`" for name in names)
    if not given:
        raise UsageError("table without a `mode`", place=(place,), remedy=remedy)
    if lowered(given) not in names:
        raise UsageError(f"unknown mode `{given}`{suggest_nearest(given, names)}", place=(place,), remedy=remedy)
    policy, scope = str(entry.get("policy", "*")), str(entry.get("scope", ""))
    return Enforcement(policy=policy, scope=scope, mode=Mode(lowered(given)))


def require_parameters(value: object, file: File) -> None:
    """Refuse parameters that are not a table per policy, or whose values are not JSON values.

    Raises:
        UsageError: a parameter is not valid; with the line.
    """
    remedy = 'write `[parameters."AML-..."]`, followed by its parameters'
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
                    message, place=(file.place(name),), remedy="put times in quotes, and use numbers within 64 bits"
                )


def _is_json(value: object) -> bool:
    if isinstance(value, dict):
        return all(_is_json(part) for part in value.values())
    if isinstance(value, list):
        return all(_is_json(part) for part in value)
    if isinstance(value, int):
        return -(2**63) <= value < 2**64
    return isinstance(value, str) or (isinstance(value, float) and isfinite(value))


FILE_NAME = "policyeng.toml"

_TABLE = "tool.policyeng"
_SQLITE = "sqlite:///"


def find_configuration(named: Path | str | None, directory: Path) -> File | None:
    """Read the given configuration file, or else the nearest one in a directory or its parents; None without one.

    Raises:
        UsageError: the given file does not exist or has no settings, a file is not TOML, or a file that was found by
            search can be changed by other users.
    """
    if named:
        path = directory / named
        if not path.is_file():
            remedy = "pass an existing file, or remove `--config`"
            raise UsageError("no such configuration file", place=(str(path),), remedy=remedy)
        file = _read(path)
        if file is None:
            raise UsageError(f"the file has no `[{_TABLE}]`", place=(str(path),), remedy=f"add `[{_TABLE}]`")
        return file
    for path in candidates(directory):
        if path.is_file() and (file := _read(path)) is not None:
            require_trusted(path, directory)
            return file._replace(inherited=path.parent != directory)
    return None


def candidates(directory: Path) -> Iterator[Path]:
    """Yield the configuration files that a search from a directory may find, nearest first; they need not exist."""
    for folder in (directory, *directory.parents):
        yield from (folder / FILE_NAME, folder / "pyproject.toml")


def _read(path: Path) -> File | None:
    """Read the table of settings in a file; None for a `pyproject.toml` without one."""
    import tomllib  # only if there is a file to read

    try:
        text = path.read_bytes().decode("utf-8")
        document = tomllib.loads(text)
    except OSError as error:
        reason = (error.strerror or "unreadable").lower()
        raise UsageError(f"cannot read the file ({reason})", place=(str(path),), remedy="make it readable") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        reason = str(error) or "nested too deeply"
        raise UsageError(f"not valid TOML ({reason})", place=(str(path),), remedy="fix the syntax") from None
    if path.name != "pyproject.toml":
        return File(path, text, document)
    tool = document.get("tool")
    table = tool.get("policyeng") if isinstance(tool, dict) else None
    if not isinstance(table, dict):
        return None
    first = next((line for line, row in enumerate(text.splitlines(), 1) if _TABLE in row), 1)
    return File(path, text, table, first)


def from_file(file: File) -> Iterator[tuple[str, GivenSetting]]:
    """Yield the settings that a file sets, with their names.

    Raises:
        UsageError: a key is unknown, or its value is not valid.
    """
    for key, value in file.table.items():
        place = file.place(key)
        if key not in NAMES:
            raise UsageError(
                f"unknown key `{key}`{suggest_nearest(key, NAMES)}", place=(place,), remedy=list_settings()
            )
        yield key, GivenSetting(_value(key, value, file, place), place)


def resolve_store(folder: Path, url: str) -> str:
    """Return the URL of a store with a relative path resolved against a folder."""
    path = url.removeprefix(_SQLITE)
    return f"{_SQLITE}{folder / path}" if url.startswith(_SQLITE) and path else url


def _value(key: str, value: object, file: File, place: str) -> object:
    if key == "parameters":
        require_parameters(value, file)
    if key == "modes":
        return enforcements(value, file)
    if key == "estates":
        from policyeng.configuration.audit_sections import estates_of  # most runs are not audits

        return estates_of(value, file)
    if key == "store" and isinstance(value, str):
        return resolve_store(file.path.parent, value)
    if key == "notify":
        from policyeng.configuration.audit_sections import targets  # the same

        return targets(value, file)
    if key == "max_exemption_days" and type(value) is not int:
        raise UsageError(f"invalid value `{value}` for `{key}`", place=(place,), remedy="use a number of days")
    if key in ("require_signature", "allow_unsigned_directory", "strict_unknown") and not isinstance(value, bool):
        raise UsageError(f"invalid value `{value}` for `{key}`", place=(place,), remedy="use true or false")
    if key in ("aliases", "verification_key") and isinstance(value, str) and value:
        return file.path.parent / value
    if key not in LISTS:
        return value
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(entry, str) and entry for entry in listed):
        raise UsageError(f"`{key}` is not a list of strings", place=(place,), remedy=f'write `{key} = ["..."]`')
    if key == "exclude":
        return excluded(listed, file.path.parent)
    if key == "frameworks":
        return [str(file.path.parent / entry) if is_framework_file(entry) else entry for entry in listed]
    return [file.path.parent / entry for entry in listed] if key in ("azure_policy", "exemptions") else listed
