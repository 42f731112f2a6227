"""Cache of results for later runs: one directory, one file for each entry, safe to delete.

An entry is valid when its key is the digest of everything that its content follows from, so nothing is ever updated. It
is ignored unless this user owns it and its directory, no one else may write to either, and its content has the digest
that it begins with. Anyone who can write as this user can also write the policies; that is where the protection ends.

The directory is `POLICYENG_CACHE_DIR`, else `policyeng` in `XDG_CACHE_HOME` or `~/.cache`. `POLICYENG_NO_CACHE`
switches the cache off. No failure of the cache is a failure of the run: missing entries are computed again.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from time import time

_MAGIC = b"policyeng cache 1\n"
_SUFFIX = ".entry"
_HEAD = len(_MAGIC) + hashlib.sha256().digest_size
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
#: Bounds: the entries that are kept, their bytes together, and the seconds after which a half-written one is litter.
MOST_ENTRIES = 1024
MOST_BYTES = 256 << 20
_LITTER_AGE = 3600

_off: ContextVar[bool] = ContextVar("policyeng_cache_off", default=False)


@contextmanager
def switched_off(off: bool = True) -> Iterator[None]:
    """Neither read nor write entries inside the block."""
    token = _off.set(off or _off.get())
    try:
        yield
    finally:
        _off.reset(token)


def directory() -> Path | None:
    """Return where entries are kept; None when the cache is switched off or there is no place for it.

    Windows has no owners and modes by which an entry is known to be of this user, so there is none.
    """
    if not hasattr(os, "geteuid") or _off.get() or os.environ.get("POLICYENG_NO_CACHE", "") not in ("", "0", "false"):
        return None
    if named := os.environ.get("POLICYENG_CACHE_DIR"):
        return Path(named)
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if base.is_absolute():
        return base / "policyeng"
    try:
        return Path.home() / ".cache" / "policyeng"
    except RuntimeError:  # a user without a home
        return None


def key_of(*parts: str) -> str:
    """Return the key of an entry that follows from these parts and from nothing else."""
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(content))
        digest.update(content)
    return digest.hexdigest()


def load(key: str) -> list[bytes | memoryview] | None:
    """Return the parts of an entry; None when there is none that can be trusted.

    An entry may be large: nothing is copied.
    """
    place = directory()
    if place is None:
        return None
    try:
        if not _is_ours(os.lstat(place), stat.S_ISDIR):
            return None
        content = memoryview(_content(place / f"{key}{_SUFFIX}"))
    except OSError:
        return None
    body = content[_HEAD:]
    if content[:_HEAD] != _MAGIC + _digest(key, body):
        return None
    return _split(body)


def store(key: str, parts: Sequence[bytes]) -> None:
    """Keep an entry, all of it or nothing, and remove the oldest ones beyond the bounds."""
    place = directory()
    if place is None:
        return
    body = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
    with suppress(OSError):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _is_ours(os.lstat(place), stat.S_ISDIR):
            _write(place, key, _MAGIC + _digest(key, body) + body)
            _prune(place)


def _is_ours(status: os.stat_result, of_kind: Callable[[int], bool]) -> bool:
    return of_kind(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & _OTHERS_WRITE


def _content(path: Path) -> bytes:
    """Return the bytes of a regular file of ours; empty for anything else."""
    # Without O_NONBLOCK a pipe laid in the way would wait for a writer for ever.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        return file.read() if _is_ours(status, stat.S_ISREG) and status.st_size <= MOST_BYTES else b""


@lru_cache(maxsize=8)
def state_of_code(*folders: str) -> str:
    """Return names, sizes and times of the files in folders of this package, so that editing one is seen at once."""
    seen = []
    for entry in _code_in(folders):
        status = entry.stat()
        seen.append(f"{entry.path} {status.st_size} {status.st_mtime_ns}")
    return "\n".join(sorted(seen))


@lru_cache(maxsize=8)
def digest_of_code(*folders: str) -> str:
    """Return the digest of the files in folders of this package, wherever it is installed."""
    digest = hashlib.sha256()
    start = len(os.path.dirname(__file__))  # noqa: PTH120  # as below
    files = {entry.path[start:].replace(os.sep, "/"): entry.path for entry in _code_in(folders)}
    for name, path in sorted(files.items()):
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123  # as below
            content = file.read()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def _code_in(folders: Iterable[str]) -> Iterator[os.DirEntry[str]]:
    package = os.path.dirname(__file__)  # noqa: PTH120  # strings: a walk over paths takes several times as long
    left = [f"{package}/{folder}" for folder in folders]
    while left:
        with os.scandir(left.pop()) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    yield entry
                elif "." not in entry.name and entry.name != "__pycache__" and entry.is_dir():
                    left.append(entry.path)


@lru_cache(maxsize=1)
def package_digest() -> str:
    """Return the digest of the code of this package, which may change between two versions."""
    root = Path(__file__).parent
    digest = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        digest.update(f"{file.relative_to(root)}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _digest(key: str, body: bytes | memoryview) -> bytes:
    """Over the key too: an entry is worth nothing under another name."""
    digest = hashlib.sha256(key.encode() + b"\n")
    digest.update(body)
    return digest.digest()


def _split(body: memoryview) -> list[bytes | memoryview] | None:
    parts: list[bytes | memoryview] = []
    place = 0
    while place < len(body):
        start = place + 8
        place = start + int.from_bytes(body[start - 8 : start], "big")
        parts.append(body[start:place])
    return parts if place == len(body) else None


def _write(place: Path, key: str, content: bytes) -> None:
    # Others see the old entry or the new one; of two processes at once the later wins, with the same content.
    draft = place / f".{key}.{os.getpid()}.{os.urandom(4).hex()}"
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        draft.replace(place / f"{key}{_SUFFIX}")
    except OSError:
        with suppress(OSError):
            draft.unlink()
        raise


def _prune(place: Path) -> None:
    entries: list[tuple[float, int, Path]] = []
    for path in place.iterdir():
        with suppress(OSError):
            status = path.lstat()
            if path.suffix == _SUFFIX:
                entries.append((status.st_mtime, status.st_size, path))
            elif path.name.startswith(".") and status.st_mtime < time() - _LITTER_AGE:
                path.unlink()
    kept = 0
    for number, (_, size, path) in enumerate(sorted(entries, reverse=True)):
        kept += size
        if number >= MOST_ENTRIES or (kept > MOST_BYTES and number):
            with suppress(OSError):
                path.unlink()
