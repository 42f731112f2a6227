"""The `parameters` and `modes` tables of a configuration file, and the check of who can change the file."""

from __future__ import annotations

import os
import stat
from math import isfinite
from pathlib import Path

from policyeng.configuration.toml_positions import File
from policyeng.errors import UsageError, suggest_nearest
from policyeng.frozen import fields
from policyeng.models import Enforcement, Mode, lowered

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
