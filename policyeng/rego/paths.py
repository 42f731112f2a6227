"""Paths below `data`, as Rego writes them and as tuples of names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache

#: A part of a reference: a name behind a dot, or a text or an index in brackets.
_PART = re.compile(r'\.([A-Za-z_][A-Za-z_0-9]*+)|\[("(?:[^"\\]++|\\.)*+"|0|[1-9][0-9]*+)\]')
_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*+")
#: Names that are in brackets, because they are keywords.
_KEYWORDS = frozenset(
    {"as", "contains", "default", "else", "every", "false", "if", "import", "in", "not", "null", "package", "some"}
    | {"true", "with"}
)


@lru_cache(maxsize=4096)
def read_path(text: str) -> tuple[str | int, ...]:
    """Read a path below `data`, such as `data.hooks["test.target"].deny`; a part that is not a name is in brackets.

    Raises:
        ValueError: it is not such a path.
    """
    parts: list[str | int] = []
    place = len("data") if text.startswith("data") else -1
    while 0 <= place < len(text):
        part = _PART.match(text, place)
        if part is None:
            place = -1
            break
        try:
            parts.append(part[1] if part[1] is not None else json.loads(part[2]))
        except ValueError:
            place = -1
            break
        place = part.end()
    if place < 0:
        raise ValueError(
            f'{text!r} is not the path of a rule or document: write it as `data.package.rule` or `data.a["b.c"].rule`'
        )
    return tuple(parts)


def write_path(path: Iterable[str]) -> str:
    """Return a path below `data` as Rego writes it."""
    return f"data{''.join(map(write_part, path))}"


def write_part(name: str) -> str:
    """Return a name of a path with the dot or the brackets that it needs."""
    return (
        f".{name}" if _NAME.fullmatch(name) and name not in _KEYWORDS else f"[{json.dumps(name, ensure_ascii=False)}]"
    )


def split_package(package: str) -> tuple[str, ...]:
    """Return the names of a package that is written without `data`, such as `hooks["test.target"]`."""
    return tuple(str(part) for part in read_path(f"data.{package}"))
