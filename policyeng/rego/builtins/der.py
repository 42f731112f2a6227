"""DER as Go reads it for certificates: strict, without tags of more than a byte."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

from policyeng.rego.builtins.registry import BuiltinError

BOOLEAN, INTEGER, BIT_STRING, OCTET_STRING, OBJECT_IDENTIFIER = 0x01, 0x02, 0x03, 0x04, 0x06
UTC_TIME, GENERALIZED_TIME, SEQUENCE, SET = 0x17, 0x18, 0x30, 0x31
_TIMES = {
    UTC_TIME: re.compile(rb"([0-9]{2})([0-9]{8})([0-9]{2})?(Z|[+-][0-9]{4})"),
    GENERALIZED_TIME: re.compile(rb"([0-9]{4})([0-9]{8})([0-9]{2})(Z|[+-][0-9]{4})"),
}
_LARGEST_ARC = (1 << 31) - 1


class DerError(BuiltinError):
    """Bytes that are no DER, or no such DER."""


class Der:
    """What is left to read of some DER."""

    __slots__ = ("rest",)

    def __init__(self, content: bytes) -> None:
        """Read from the beginning."""
        self.rest = content

    def __bool__(self) -> bool:
        """Return whether something is left."""
        return bool(self.rest)

    def next_tag(self) -> int:
        """Return the tag of the next element, -1 at the end."""
        return self.rest[0] if self.rest else -1

    def read_element(self, tag: int) -> bytes:
        """Take an element with its header."""
        if self.next_tag() != tag:
            raise DerError(f"x509: malformed ASN.1: tag {self.next_tag()} where {tag} is due")
        start, end = self._span()
        del start
        element, self.rest = self.rest[:end], self.rest[end:]
        return element

    def read_any(self) -> tuple[int, bytes]:
        """Take an element: its tag and its content."""
        tag = self.next_tag()
        start, end = self._span()
        content, self.rest = self.rest[start:end], self.rest[end:]
        return tag, content

    def read(self, tag: int) -> Der:
        """Take an element: its content."""
        if self.next_tag() != tag:
            raise DerError(f"x509: malformed ASN.1: tag {self.next_tag()} where {tag} is due")
        return Der(self.read_any()[1])

    def read_optional(self, tag: int) -> Der | None:
        """Take an element if it has a tag."""
        return self.read(tag) if self.next_tag() == tag else None

    def read_integer(self, tag: int = INTEGER) -> int:
        """Take an integer."""
        content = self.read(tag).rest
        if not content or (len(content) > 1 and content[0] in {0, 0xFF} and content[0] >> 7 == content[1] >> 7):
            raise DerError("x509: malformed integer")
        return int.from_bytes(content, "big", signed=True)

    def read_boolean(self) -> bool:
        """Take a boolean."""
        content = self.read(BOOLEAN).rest
        if content not in {b"\0", b"\xff"}:
            raise DerError("x509: malformed boolean")
        return content == b"\xff"

    def read_bits(self) -> tuple[bytes, int]:
        """Take a bit string: its bytes and how many bits of the last are padding."""
        content = self.read(BIT_STRING).rest
        padding = content[0] if content else 8
        bits = content[1:]
        if padding > 7 or (padding and not bits) or (bits and bits[-1] & ((1 << padding) - 1)):
            raise DerError("x509: malformed bit string")
        return bits, padding

    def read_identifier(self) -> list[int]:
        """Take an object identifier."""
        arcs = split_identifier(self.read(OBJECT_IDENTIFIER).rest)
        if max(arcs) > _LARGEST_ARC:
            raise DerError("x509: malformed OID")
        return arcs

    def read_time(self) -> datetime:
        """Take a time."""
        tag, content = self.read_any()
        found = _TIMES[tag].fullmatch(content) if tag in _TIMES else None
        if not found or found[4][1:] == b"0000":
            raise DerError("x509: malformed time")
        year, zone = int(found[1]), found[4].decode()
        if tag == UTC_TIME:
            year += 1900 if year >= 50 else 2000
        offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[3:])) if zone != "Z" else timedelta()
        digits = found[2].decode() + (found[3] or b"00").decode()
        month, day, hour, minute, second = (int(digits[index : index + 2]) for index in range(0, 10, 2))
        try:
            place = timezone(-offset if zone[0] == "-" else offset) if offset else UTC
            return datetime(year, month, day, hour, minute, second, tzinfo=place)
        except ValueError:
            raise DerError("x509: malformed time") from None

    def _span(self) -> tuple[int, int]:
        """Return where the content of the next element starts and ends."""
        rest = self.rest
        if len(rest) < 2 or rest[0] & 0x1F == 0x1F:
            raise DerError("x509: malformed ASN.1")
        start, length = 2, rest[1]
        if length & 0x80:
            start += length & 0x7F
            count = rest[2:start]
            if not 0 < len(count) <= 4 or len(count) < start - 2 or count[0] == 0:
                raise DerError("x509: malformed ASN.1 length")
            length = int.from_bytes(count, "big")
            if length < 0x80:
                raise DerError("x509: malformed ASN.1 length")
        if start + length > len(rest):
            raise DerError("x509: malformed ASN.1: truncated")
        return start, start + length


def split_identifier(content: bytes) -> list[int]:
    """Return the arcs of an encoded object identifier."""
    arcs, value, started = [], 0, False
    for byte in content:
        if byte == 0x80 and not started:
            raise DerError("x509: malformed OID")
        value, started = value << 7 | byte & 0x7F, byte >= 0x80
        if not started:
            arcs.append(value)
            value = 0
    if started or not arcs:
        raise DerError("x509: malformed OID")
    first = min(arcs[0] // 40, 2)
    return [first, arcs[0] - 40 * first, *arcs[1:]]
