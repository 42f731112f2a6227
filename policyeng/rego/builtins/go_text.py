"""JSON and URLs as Go reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from ipaddress import IPv6Address
from typing import NoReturn

from policyeng.rego.builtins.registry import BuiltinError
from policyeng.rego.numbers import parse_number
from policyeng.rego.values import Value

_SURROGATE = re.compile("[\ud800-\udfff]")


class InvalidJsonError(BuiltinError):
    """A text that is not JSON."""


def to_value(text: str) -> str:
    """Return a string with each byte that is not UTF-8 replaced, as Go does in JSON."""
    return _SURROGATE.sub("\ufffd", text)


def _from_bytes(content: bytes) -> str:
    """Return bytes as a string, with those that are not UTF-8 as lone surrogates."""
    return content.decode("utf-8", "surrogateescape")


def _to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"invalid character {name[0]!r} looking for beginning of value")


def parse_json(text: str) -> Value:
    """Read a JSON document.

    Raises:
        InvalidJsonError: it is not valid.
    """
    value, end = read_json(text, parse_number)
    if skip_space(text, end) < len(text):
        raise InvalidJsonError(f"invalid character {text[end]!r} after top-level value")
    return value


def read_json(text: str, number: Callable[[str], Value]) -> tuple[Value, int]:
    """Read the JSON document that a text begins with; return it, and where it ends.

    Args:
        text: what is read.
        number: what reads numbers.

    Raises:
        InvalidJsonError: it is not valid.
    """
    decoder = json.JSONDecoder(parse_int=number, parse_float=number, parse_constant=_refuse_constant)
    try:
        value, end = decoder.raw_decode(text, skip_space(text, 0))
    except ValueError as error:
        raise InvalidJsonError(f"invalid JSON: {error}") from None
    return _replace_surrogates(value) if "\\u" in text else value, end


def skip_space(text: str, start: int) -> int:
    """Return where the space of JSON at a place of a text ends."""
    return len(text) - len(text[start:].lstrip(" \t\n\r"))


def _replace_surrogates(value: Value) -> Value:
    kind = type(value)
    if kind is str:
        return to_value(value)
    if kind is list:
        return [_replace_surrogates(item) for item in value]
    if kind is dict:
        return {to_value(key): _replace_surrogates(item) for key, item in value.items()}
    return value


_PLAIN = "A-Za-z0-9"
#: What need not be escaped where.
_PATH = re.compile(f"[^-{_PLAIN}$&+,./:;=@_~]".encode())
_HOST = re.compile(f"[^-{_PLAIN}!\"$&'()*+,.:;<=>\\[\\]_~]".encode())
_USER = re.compile(f"[^-{_PLAIN}$&+,.;=_~]".encode())
_FRAGMENT = re.compile(f"[^-{_PLAIN}!$&()*+,./:;=?@_~]".encode())
_VALID_PATH = re.compile(f"[-{_PLAIN}$&+,./:;=@_~!'()*\\[\\]%]*".encode())
_VALID_FRAGMENT = re.compile(f"[-{_PLAIN}$&+,./:;=@_~!'()*\\[\\]%?]*".encode())
_USERINFO = re.compile(f"[-{_PLAIN}._:~!$&'()*+,;=%@]*")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)?:")
_CONTROL = re.compile("[\x00-\x1f\x7f]")
_PORT = re.compile("(?::[0-9]*)?")
_ESCAPE = re.compile(b"%[0-9A-Fa-f]{2}")


class UrlError(ValueError):
    """Text that is no URL."""


@dataclass(frozen=True)
class Url:
    """The parts of a URL, as `url.URL` of Go has them.

    Attributes:
        user: user and password in their escaped form, None without one.
    """

    scheme: str = ""
    opaque: str = ""
    user: str | None = None
    host: str = ""
    path: str = ""
    raw_path: str = ""
    omit_host: bool = False
    force_query: bool = False
    raw_query: str = ""
    fragment: str = ""
    raw_fragment: str = ""

    def split_host(self) -> tuple[str, str]:
        """Return the host without the brackets of an address, and the port, an empty text without one."""
        host, colon, port = self.host.rpartition(":")
        if not _PORT.fullmatch(colon + port):
            host, port = self.host, ""
        return host[1:-1] if host.startswith("[") and host.endswith("]") else host, port

    @property
    def escaped_path(self) -> str:
        """The path as it is written."""
        if self.raw_path and _VALID_PATH.fullmatch(_to_bytes(self.raw_path)) and _unescape(self.raw_path) == self.path:
            return self.raw_path
        return "*" if self.path == "*" else _escape(_PATH, self.path)

    @property
    def escaped_fragment(self) -> str:
        """The fragment as it is written."""
        raw = self.raw_fragment
        if raw and _VALID_FRAGMENT.fullmatch(_to_bytes(raw)) and _unescape(raw) == self.fragment:
            return raw
        return _escape(_FRAGMENT, self.fragment)

    def __str__(self) -> str:
        """Return the URL as text."""
        text = f"{self.scheme}:" if self.scheme else ""
        if self.opaque:
            text += self.opaque
        else:
            named = bool(self.host) or self.user is not None
            if (self.scheme or named) and not (self.omit_host and not named):
                text += "//" if named or self.path else ""
                text += "" if self.user is None else f"{self.user}@"
                text += _escape(_HOST, self.host)
            path = self.escaped_path
            if path and not path.startswith("/") and self.host:
                text += "/"
            if not text and ":" in path.partition("/")[0]:
                text = "./"
            text += path
        if self.force_query or self.raw_query:
            text += f"?{self.raw_query}"
        return f"{text}#{self.escaped_fragment}" if self.fragment else text


def parse_url(text: str) -> Url:
    """Read a URL.

    Raises:
        UrlError: it is not valid.
    """
    before, _, fragment = text.partition("#")
    url = _parse(before)
    if not fragment:
        return url
    plain = _unescape(fragment)
    raw = "" if _escape(_FRAGMENT, plain) == fragment else fragment
    return replace(url, fragment=plain, raw_fragment=raw)


def resolve_url(base: Url, reference: Url) -> Url:
    """Return what a reference means in a document of a URL."""
    if reference.scheme or reference.host or reference.user is not None:
        path = _resolve_path(reference.escaped_path, "")
        return _with_path(replace(reference, scheme=reference.scheme or base.scheme), path)
    found = replace(reference, scheme=base.scheme)
    if reference.opaque:
        return replace(found, user=None, host="", path="")
    if not reference.path and not reference.force_query and not reference.raw_query:
        found = replace(found, raw_query=base.raw_query)
        if not reference.fragment:
            found = replace(found, fragment=base.fragment, raw_fragment=base.raw_fragment)
    if not reference.path and base.opaque:
        return replace(found, opaque=base.opaque, user=None, host="", path="")
    path = _resolve_path(base.escaped_path, reference.escaped_path)
    return _with_path(replace(found, host=base.host, user=base.user), path)


def _with_path(url: Url, text: str) -> Url:
    path = _unescape(text)
    return replace(url, path=path, raw_path="" if _escape(_PATH, path) == text else text)


def _resolve_path(base: str, reference: str) -> str:
    full = base
    if reference:
        full = reference if reference.startswith("/") else base[: base.rfind("/") + 1] + reference
    if not full:
        return ""
    kept: list[str] = []
    parts = full.split("/")
    for part in parts[1:] if full.startswith("/") else parts:
        if part == "..":
            del kept[-1:]
        elif part != ".":
            kept.append(part)
    if parts[-1] in {".", ".."}:
        kept.append("")
    return "/" + "/".join(kept)


def _parse(text: str) -> Url:
    if _CONTROL.search(text):
        raise UrlError("net/url: invalid control character in URL")
    if text == "*":
        return Url(path="*")
    scheme, rest = _split_scheme(text)
    force_query = rest.endswith("?") and rest.count("?") == 1
    rest, _, query = rest.partition("?")
    make = partial(Url, scheme=scheme, force_query=force_query, raw_query=query)
    if not rest.startswith("/"):
        if scheme:
            return make(opaque=rest)
        if ":" in rest.partition("/")[0]:
            raise UrlError("first path segment in URL cannot contain colon")
    user, host, omit_host = None, "", False
    if (scheme or not rest.startswith("///")) and rest.startswith("//"):
        authority, slash, rest = rest[2:].partition("/")
        rest = slash + rest
        user, host = _parse_authority(scheme, authority)
    elif scheme and rest.startswith("/"):
        omit_host = True
    return _with_path(make(user=user, host=host, omit_host=omit_host), rest)


def _split_scheme(text: str) -> tuple[str, str]:
    found = _SCHEME.match(text)
    if not found:
        return "", text
    if not found[1]:
        raise UrlError("missing protocol scheme")
    return found[1].lower(), text[found.end() :]


def _parse_authority(scheme: str, authority: str) -> tuple[str | None, str]:
    userinfo, separator, address = authority.rpartition("@")
    host = _parse_host(scheme, address)
    if not separator:
        return None, host
    if not _USERINFO.fullmatch(userinfo):
        raise UrlError("net/url: invalid userinfo")
    return ":".join(_escape(_USER, _unescape(part)) for part in userinfo.split(":", 1)), host


def _parse_host(scheme: str, host: str) -> str:
    bracket = host.rfind("[")
    if bracket > 0:
        raise UrlError("invalid IP-literal")
    if bracket == 0:
        return _parse_literal(host)
    colon = host.find(":")
    if colon >= 0:
        if scheme not in {"http", "https"}:
            colon = host.rfind(":")
        if not _PORT.fullmatch(host[colon:]):
            raise UrlError(f"invalid port {host[colon:]!r} after host")
    return _unescape_host(host)


def _parse_literal(host: str) -> str:
    inside, bracket, port = host[1:].rpartition("]")
    if not bracket:
        raise UrlError("missing ']' in host")
    if not _PORT.fullmatch(port):
        raise UrlError(f"invalid port {port!r} after host")
    address, escaped, zone = inside.partition("%25")
    name = _unescape_host(address)
    try:
        IPv6Address(name)
    except ValueError as error:
        raise UrlError(f"invalid host: {error}") from None
    if escaped:
        name += _unescape_zone(escaped + zone)
        if name.endswith("%"):
            raise UrlError("invalid host: zone must be a non-empty string")
    return f"[{name}]{port}"


def _unescape(text: str) -> str:
    content = _to_bytes(text)
    if b"%" not in content:
        return text
    if content.count(b"%") != len(_ESCAPE.findall(content)):
        raise UrlError("invalid URL escape")
    return _from_bytes(_ESCAPE.sub(lambda found: bytes([int(found[0][1:], 16)]), content))


def _unescape_host(text: str) -> str:
    content = _to_bytes(text)
    for found in _ESCAPE.findall(content):
        if int(found[1:], 16) < 0x80 and found != b"%25":
            raise UrlError("invalid URL escape")
    plain = _ESCAPE.sub(b"", content)
    if any(byte < 0x80 and byte != ord("%") and _HOST.match(bytes([byte])) for byte in plain):
        raise UrlError("invalid character in host name")
    return _unescape(text)


def _unescape_zone(text: str) -> str:
    content = _to_bytes(text)
    for found in _ESCAPE.findall(content):
        byte = bytes([int(found[1:], 16)])
        if found != b"%25" and byte != b" " and _HOST.match(byte):
            raise UrlError("invalid URL escape")
    if any(byte < 0x80 and byte != ord("%") and _HOST.match(bytes([byte])) for byte in _ESCAPE.sub(b"", content)):
        raise UrlError("invalid character in host name")
    return _unescape(text)


def _escape(special: re.Pattern[bytes], text: str) -> str:
    return _from_bytes(special.sub(lambda found: b"%%%02X" % found[0][0], _to_bytes(text)))
