"""The encodings that programs on Windows write: UTF-8 with a byte order mark, and UTF-16."""

from __future__ import annotations

import codecs

_UTF_32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_UTF_16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
#: Where the zeros are among the first bytes of UTF-16 without a mark that begins with two ASCII characters, or with the
#: one that it has. Source: RFC 4627, section 3.
_ZEROS = {(0, 1, 0, 1): "utf-16-le", (1, 0, 1, 0): "utf-16-be", (0, 1): "utf-16-le", (1, 0): "utf-16-be"}


def as_utf8(content: bytes) -> bytes:
    """Convert text to UTF-8 without a byte order mark; return what is neither UTF-8 nor UTF-16 unchanged."""
    if content.startswith(codecs.BOM_UTF8):
        return content[len(codecs.BOM_UTF8) :]
    if content.startswith(_UTF_32):
        return content
    encoding = _UTF_16.get(content[:2]) or _ZEROS.get(tuple(int(not byte) for byte in content[:4]))
    if encoding is None:
        return content
    try:
        return content.decode(encoding).removeprefix("\ufeff").encode()
    except UnicodeError:
        return content
