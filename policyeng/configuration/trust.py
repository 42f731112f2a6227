"""Whether a configuration file that a search found may be used: not if another user could have written it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from policyeng.errors import UsageError

_REMEDY = "name the file that you want with `--config FILE` or `POLICYENG_CONFIG`"


def require_trusted(path: Path, start: Path) -> None:
    """Refuse a configuration file that was found, not named, and that other users control.

    The file and its directory have to belong to the user who runs policyeng, to root, or to the owner of the directory
    where the search began: whoever owns that one can put a configuration there, and files of a checkout that is mounted
    into a container belong to somebody outside of it. Under sudo, the user who called it counts as well, as in git.
    In a parent directory, the file and the directory must not be writable for their group or for others either; a
    directory with the sticky bit may be, because only its owner can replace a file there. Windows has no such
    owners and modes, so nothing is refused.

    Source: git, `safe.directory` and CVE-2022-24765.

    Args:
        path: the file.
        start: the directory where the search began.

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
            message = f"the configuration was not named, and its {_noun(place, path)} belongs to another user ({owner})"
            raise UsageError(message, place=(str(path),), remedy=f"{_REMEDY}, or change the owner of `{place}`")
    if folder == start:
        return
    for place, mode in ((path, path.stat().st_mode), (folder, folder.stat().st_mode)):
        if mode & (stat.S_IWGRP | stat.S_IWOTH) and not (place == folder and mode & stat.S_ISVTX):
            owner = _owner(place.stat().st_uid)
            message = "the configuration was found in a parent directory, and other users can write to its "
            message += f"{_noun(place, path)} (owner {owner}, mode {stat.S_IMODE(mode):04o})"
            raise UsageError(message, place=(str(path),), remedy=f"{_REMEDY}, or run `chmod go-w {place}`")


def _noun(place: Path, path: Path) -> str:
    return "file" if place == path else "directory"


def _caller() -> tuple[int, ...]:
    """The user who called sudo; sudo sets this for root, and anyone else could set it to anything."""
    given = os.environ.get("SUDO_UID", "")
    return (int(given),) if os.geteuid() == 0 and given.isascii() and given.isdecimal() else ()


def _owner(number: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"uid {number}"
