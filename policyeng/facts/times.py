"""Moments as documents write them. `policies/lib/times.rego` orders them in Rego."""

from __future__ import annotations

from datetime import UTC, datetime

from policyeng.facts.words import trim
from policyeng.later import lazy_pattern

_MOMENT = lazy_pattern(r"\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d))?")


def moment(text: object) -> datetime | None:
    """Return the aware moment that an RFC 3339 text names, a date alone its midnight UTC; None for anything else.

    Fractions of a second count to the microsecond.
    """
    if not isinstance(text, str) or not _MOMENT.fullmatch(trim(text)):
        return None
    try:
        read = datetime.fromisoformat(trim(text).upper())
    except ValueError:  # the 31st of June, or a leap second
        return None
    return read if read.tzinfo else read.replace(tzinfo=UTC)
