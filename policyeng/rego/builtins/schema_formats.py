"""The formats of strings that JSON schemas name, as the schema validator of OPA checks them."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from ipaddress import ip_address

import re2

from policyeng.rego.builtins.go_text import UrlError, parse_url
from policyeng.rego.builtins.registry import UnsupportedError

_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME = re.compile(r"([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,][0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})?")
_LABEL = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9\-]{0,61}[a-zA-Z0-9])"
_LONGEST_HOST = 255
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_MAILBOX = re.compile(rf"{_ATOM}(?:\.{_ATOM})*@{_ATOM}(?:\.{_ATOM})*")
_PLAIN_MAILBOX = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.@-]*")
_OPTIONS = re2.Options()
_OPTIONS.log_errors = False


def compile_pattern(text: str) -> Callable[[str], object] | None:
    """Return what searches for a regular expression of RE2, None if it is not valid."""
    try:
        return re2.compile(text, options=_OPTIONS).search  # type: ignore[no-any-return]  # re2 has no types
    except re2.error:
        return None


def _matcher(pattern: str) -> Callable[[str], bool]:
    compiled = re2.compile(pattern)
    return lambda text: compiled.fullmatch(text) is not None


_is_template = _matcher(r"(?:[^{]*(?:{[^}]*})?)*")
_is_host = _matcher(rf"{_LABEL}(?:\.{_LABEL})*")


def _is_date(text: str) -> bool:
    found = _DATE.fullmatch(text)
    if not found:
        return False
    year, month, day = map(int, found.groups())
    # The calendar of Go has a year 0, which is as long as 2000.
    return 1 <= month <= 12 and 1 <= day <= monthrange(year or 2000, month)[1]


def _is_time(text: str, *, zoned: bool = False) -> bool:
    found = _TIME.fullmatch(text)
    if not found or (zoned and not found[4]):
        return False
    zone = found[4] or "Z"
    in_zone = zone == "Z" or (int(zone[1:3]) <= 24 and int(zone[4:]) <= 60)
    return in_zone and int(found[1]) < 24 and int(found[2]) < 60 and int(found[3]) < 60


def _is_date_time(text: str) -> bool:
    date, separator, time = text.partition("T")
    if separator:
        return _is_date(date) and _is_time(time, zoned=True)
    return _is_date(text) or _is_time(text)


def _is_mailbox(text: str) -> bool:
    if _MAILBOX.fullmatch(text):
        return True
    if _PLAIN_MAILBOX.fullmatch(text) or "@" not in text:
        return False
    raise UnsupportedError(f"the format email for {text!r} is not supported")


def _is_address(text: str, separator: str) -> bool:
    try:
        return separator in text and "%" not in text and bool(ip_address(text))
    except ValueError:
        return False


def _is_reference(text: str, *, absolute: bool = False) -> bool:
    try:
        url = parse_url(text)
    except UrlError:
        return False
    return "\\" not in text and not (absolute and not url.scheme)


def _is_uri_template(text: str) -> bool:
    return _is_reference(text) and _is_template(parse_url(text).path)


def _is_uri(text: str) -> bool:
    return _is_reference(text, absolute=True)


#: What checks a string of each format; any string is of another format.
FORMATS: dict[str, Callable[[str], bool]] = {
    "date": _is_date,
    "time": _is_time,
    "date-time": _is_date_time,
    "hostname": lambda text: len(text.encode()) <= _LONGEST_HOST and _is_host(text),
    "email": _is_mailbox,
    "idn-email": _is_mailbox,
    "ipv4": lambda text: _is_address(text, "."),
    "ipv6": lambda text: _is_address(text, ":"),
    "uri": _is_uri,
    "uri-reference": _is_reference,
    "iri": _is_uri,
    "iri-reference": _is_reference,
    "uri-template": _is_uri_template,
    "uuid": _matcher("(?i)[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}"),
    "regex": lambda text: compile_pattern(text) is not None,
    "json-pointer": _matcher("(?:/(?:[^~/]|~0|~1)*)*"),
    "relative-json-pointer": _matcher("(?:0|[1-9][0-9]*)(?:#|(?:/(?:[^~/]|~0|~1)*)*)"),
}
