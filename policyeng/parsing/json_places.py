"""The lines and columns of values in a JSON document, by JSON Pointer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from policyeng.later import lazy_pattern
from policyeng.parsing.json_pointer import keys_of, unescaped

#: A line and a column in characters, both from 1.
Place = tuple[int, int]
#: The bytes of a value: its first one, and the one after its last.
_Range = tuple[int, int]

_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_GAP = lazy_pattern(rb"[ \t\n\r,]*+")
_KEY = lazy_pattern(rb'[ \t\n\r,]*+"([^"\\]*+(?:\\.[^"\\]*+)*+)"[ \t\n\r]*+:[ \t\n\r]*+', re.DOTALL)
#: An unterminated string extends to the end, so each byte is read once.
_STRING = lazy_pattern(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
#: Replaces control characters, which JSON does not allow in strings.
_WITHOUT_CONTROLS = bytes(byte if byte >= ord(" ") else 0x7F for byte in range(256))
#: The maximum number of places that are cached, in addition to those of the last lookup.
_MOST_PLACES = 1 << 16
#: The members of lists and objects with more bytes are cached.
_LARGE = 1 << 14
_NO_MEMBERS: Mapping[str, _Range] = {}


class JsonPlaces:
    """Find the places of values in a document that `parse_json` accepts, or with strings of several lines.

    Only lists and objects above a value are read. Places are cached, because every decision requests the same ones.
    """

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._is_ascii = content.isascii()
        #: The same length as the document, and valid JSON.
        self._text = content
        self._members: dict[int, Mapping[str, _Range]] = {}
        self._places: dict[str, tuple[Place, bool]] = {}

    def nearest(self, pointers: Sequence[str]) -> list[Place]:
        """Return the line and column of each JSON Pointer's value, or of the nearest existing one above it."""
        return [place for place, _ in self._look_up(pointers)]

    def exact(self, pointers: Sequence[str]) -> list[Place | None]:
        """Return the line and column of each JSON Pointer's value; None if it does not exist."""
        return [place if exists else None for place, exists in self._look_up(pointers)]

    def _look_up(self, pointers: Sequence[str]) -> list[tuple[Place, bool]]:
        """Return the place of each pointer, and whether its value exists."""
        missing = [pointer for pointer in pointers if pointer not in self._places]
        if len(self._places) + len(missing) > _MOST_PLACES:
            self._places, missing = {}, [*pointers]
        if missing:
            holders: dict[str, tuple[int, Mapping[str, _Range]]] = {}
            starts = [self._find_start(pointer, holders) for pointer in missing]
            places = self._measure(start for start, _ in starts)
            for pointer, (start, exists) in zip(missing, starts, strict=True):
                self._places[pointer] = places[start], exists
        return [self._places[pointer] for pointer in pointers]

    def _find_start(self, pointer: str, holders: dict[str, tuple[int, Mapping[str, _Range]]]) -> tuple[int, bool]:
        """Return where the nearest value begins, and whether it is that of the pointer.

        Args:
            pointer: to the value.
            holders: by pointer, where lists and objects begin, and their members; it is added to.
        """
        if not pointer.startswith("/"):
            return (0, False) if pointer else (self._root, bool(self._text))
        above, _, token = pointer.rpartition("/")
        if (holder := holders.get(above)) is None:
            holder = holders[above] = self._find_holder(above)
        start, members = holder
        member = members.get(unescaped(token))
        return (start, False) if member is None else (member[0], True)

    @property
    def _root(self) -> int:
        return _skip_gap(self._text, 0)

    def _find_holder(self, pointer: str) -> tuple[int, Mapping[str, _Range]]:
        """Return where the nearest value begins; with its members if it is that of the pointer."""
        start, end = self._root, len(self._text)
        for key in keys_of(pointer):
            if (member := self._members_of(start, end).get(key)) is None:
                return start, _NO_MEMBERS
            start, end = member
        return start, self._members_of(start, end)

    def _members_of(self, start: int, end: int) -> Mapping[str, _Range]:
        """Return the members of a list or an object by key; none for other values."""
        if (cached := self._members.get(start)) is not None:
            return cached
        try:
            members = _read_members(self._text, self._content, start, end)
        except RecursionError:
            return _NO_MEMBERS
        except msgspec.DecodeError:
            if self._text is not self._content:
                return _NO_MEMBERS
            self._text = _STRING.sub(lambda string: string[0].translate(_WITHOUT_CONTROLS), self._content)
            return self._members_of(start, end)
        if end - start > _LARGE:
            self._members[start] = members
        return members

    def _measure(self, starts: Iterable[int]) -> dict[int, Place]:
        """Return the line and column of each position, in one pass."""
        content, places = self._content, dict[int, Place]()
        line, column, before = 1, 1, 0
        for start in sorted(set(starts)):
            if newlines := content.count(b"\n", before, start):
                line, column = line + newlines, 1
                before = content.rindex(b"\n", before, start) + 1
            column += start - before if self._is_ascii else len(content[before:start].decode(errors="replace"))
            before = start
            places[start] = line, column
        return places


def _read_members(text: bytes, content: bytes, start: int, end: int) -> dict[str, _Range]:
    """Return the members of the value in a range; keys are as they are written in `content`."""
    members: dict[str, _Range] = {}
    cursor = start + 1
    if text.startswith(b"{", start):
        for key, raw in _OBJECT.decode(memoryview(text)[start:end]).items():
            if (match := _KEY.match(text, cursor)) is None:
                break
            quoted, begin = content[slice(*match.span(1))], match.end()
            cursor = begin + len(memoryview(raw))
            members[key if b"\\" in quoted else quoted.decode(errors="replace")] = begin, cursor
    elif text.startswith(b"[", start):
        for index, raw in enumerate(_LIST.decode(memoryview(text)[start:end])):
            begin = _skip_gap(text, cursor)
            cursor = begin + len(memoryview(raw))
            members[str(index)] = begin, cursor
    return members


def _skip_gap(text: bytes, position: int) -> int:
    match = _GAP.match(text, position)
    return match.end() if match else position


def lines_of(content: bytes, pointers: Sequence[str]) -> list[int]:
    """Return the line, from 1, at which each JSON Pointer's value begins; 1 where there is none."""
    return [place[0] if place else 1 for place in JsonPlaces(content).exact(pointers)] if pointers else []
