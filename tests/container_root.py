"""A root file system as the image has it: read-only, for a user without a name or rights, with one folder to write to.

It takes a mount namespace, in which the programs and libraries of this machine replace those of the image. What a
program tries to write elsewhere is read off its system calls.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

#: Of the machine: the libraries that Python is linked with, as the slim image has them.
_SYSTEM = ("/bin", "/lib", "/lib64", "/usr")
_DEVICES = (Path("/dev/null"), Path("/dev/urandom"))
#: Make the root, and become its user; `$0` is the new root, then user, group, what is there, what is started.
_SCRIPT = r"""
set -eu
root=$0 user=$1 group=$2
shift 2
mount -t tmpfs -o mode=755 none "$root"
bound() { mount --bind "$1" "$root$1"; }
while [ "$1" != -- ]; do
    case $1 in
        link) ln -s "$(readlink "$2")" "$root$2" ;;
        device) mkdir -p "$root/dev"; : > "$root$2"; bound "$2" ;;
        kept) mkdir -p "$root$2"; bound "$2" ;;
        shown) mkdir -p "$root$2"; bound "$2"; mount -o remount,bind,ro "$root$2" ;;
    esac
    shift 2
done
shift
mkdir -p "$root/proc" "$root/tmp"
mount --rbind /proc "$root/proc"
mount -o remount,ro "$root"
exec chroot "$root" setpriv --reuid "$user" --regid "$group" --clear-groups --bounding-set=-all --inh-caps=-all \
    --no-new-privs "$@"
"""
_STRACE = ("strace", "-D", "-f", "-qq", "-y", "-e", "trace=%file")
#: Calls that change what a path leads to; opening is one of them with the flags below.
_CHANGES = re.compile(
    r"(?:\d+ +)?(?:creat|mkdir|rmdir|unlink|rename|link|symlink|mknod|truncate|ch(?:mod|own)|lchown|f?utimens?|utimes"
    r"|setxattr|removexattr)[a-z0-9]*\("
)
_OPENS = re.compile(r"(?:\d+ +)?open[a-z0-9]*\(.*\bO_(?:WRONLY|RDWR|CREAT|TMPFILE)\b")


def missing() -> str:
    """What this machine lacks for it; empty for nothing."""
    if os.geteuid() != 0:
        return "only root may make a root file system"
    programs = [name for name in ("unshare", "mount", "chroot", "setpriv") if shutil.which(name) is None]
    return f"there is no `{programs[0]}`" if programs else ""


def within(root: Path, user: str, shown: Sequence[Path], kept: Sequence[Path]) -> list[str]:
    """The beginning of a command that runs the rest of it in such a root; it stays one process.

    Args:
        root: an empty folder, over which the root is mounted for this process alone.
        user: the user and the group, as numbers with a colon between them.
        shown: folders that can be read there, besides those of the machine.
        kept: folders that can be written there.
    """
    system = [Path(name) for name in _SYSTEM if Path(name).exists()]
    there = [("link" if path.is_symlink() else "shown", path) for path in system]
    there += [("shown", path) for path in shown] + [("device", path) for path in _DEVICES]
    there += [("kept", path) for path in kept]
    parts = [str(part) for pair in there for part in pair]
    return ["unshare", "--mount", "sh", "-c", _SCRIPT, str(root), *user.split(":"), *parts, "--"]


def base_python() -> Path:
    """The folder of the installation of Python that environments here are made of."""
    return Path(sys.base_prefix).resolve()


def traced(log: Path) -> list[str]:
    """The beginning of a command whose system calls about files go to a log; empty where the machine has no strace."""
    return [*_STRACE, "-o", str(log)] if shutil.which(_STRACE[0]) else []


def written(log: Path, program: str, kept: Path) -> Iterator[str]:
    """The calls by which a program tried to write elsewhere than to the folder that it is given, or to nowhere.

    Args:
        log: of `traced`.
        program: what the calls before are not those of.
        kept: the folder.
    """
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    began = next(number for number, line in enumerate(lines) if f'execve("{program}"' in line)
    for line in lines[began:]:
        if (_CHANGES.match(line) or _OPENS.match(line)) and str(kept) not in line and '"/dev/null"' not in line:
            yield line
