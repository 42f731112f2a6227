"""Results that come with the wheel, so that a first run costs what the second does.

Each form is a file in the folder `compiled` of this package, which a checkout does not have. It begins with the digest
of everything that its content follows from, as in the cache: where a policy or the code was edited, the result is
worked out again.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from typing import NamedTuple

from policyeng import __version__, cache

#: The folders of this package with the code that compiled policies follow from.
_COMPILED_BY = ("bundle", "engines", "facts", "models", "parsing", "rego")
_FOLDER = f"{os.path.dirname(__file__)}/compiled"  # noqa: PTH120  # strings: this is loaded by every run
_KEY_LENGTH = 64


class PythonVersion(NamedTuple):
    """A version of Python, as far as compiled code depends on it."""

    tag: str
    magic: str


#: For what every version of Python reads.
ANY_PYTHON = PythonVersion("", "")


def this_python() -> PythonVersion:
    """Return the version of Python that runs."""
    import sys

    return PythonVersion(sys.implementation.cache_tag or "", MAGIC_NUMBER.hex())


def is_installed() -> bool:
    """Return whether this package has such results, which a checkout does not have."""
    return os.path.isdir(_FOLDER)  # noqa: PTH112  # as above


def load(form: str, parts: tuple[str, ...], python: PythonVersion = ANY_PYTHON) -> bytes | None:
    """Return the content of a form; None where none follows from these parts and the code of this package.

    Args:
        form: its name.
        parts: what it follows from besides the code of this package.
        python: the version that reads it.
    """
    try:
        with open(f"{_FOLDER}/{_name(form, python)}", "rb", buffering=0) as file:  # noqa: PTH123  # as above
            content = file.read()
        if content[:_KEY_LENGTH] != _key(form, parts, python):
            return None
        return zlib.decompress(memoryview(content)[_KEY_LENGTH:])
    except (OSError, zlib.error):
        return None


def write(folder: Path, form: str, parts: tuple[str, ...], content: bytes, python: PythonVersion = ANY_PYTHON) -> None:
    """Write the content of a form into a folder `compiled`; see `load`."""
    packed = zlib.compress(content, 9)
    (folder / _name(form, python)).write_bytes(_key(form, parts, python) + packed)


def digest_of(contents: Mapping[str, bytes]) -> str:
    """Return the digest of files, by their paths relative to a folder."""
    import hashlib

    digest = hashlib.sha256()
    for path, content in sorted(contents.items()):
        digest.update(f"{path}\0{len(content)}\0".encode("utf-8", "surrogateescape"))
        digest.update(content)
    return digest.hexdigest()


def _name(form: str, python: PythonVersion) -> str:
    return f"{form}.{python.tag}" if python.tag else form


def _key(form: str, parts: tuple[str, ...], python: PythonVersion) -> bytes:
    return cache.key_of(form, __version__, cache.digest_of_code(*_COMPILED_BY), python.magic, *parts).encode()
