"""Numbers in one form, whichever engine wrote them: OPA keeps `1.0` as it was written, the embedded engine says `1`."""

from __future__ import annotations

from policyeng.models import JsonObject


def plain(value: object) -> object:
    """A JSON value whose whole numbers are integers, as the embedded engine writes them; -0.0 stays what it is."""
    if isinstance(value, float):
        return int(value) if _is_whole(value) else value
    if isinstance(value, list | tuple):
        return [plain(member) for member in value]
    if isinstance(value, dict):
        members: JsonObject = value
        return {key: plain(member) for key, member in members.items()}
    return value


def _is_whole(value: float) -> bool:
    """Whether it is whole and fits 64 bits, with a sign or without one."""
    negative_zero = value == 0 and str(value).startswith("-")
    return value.is_integer() and -(2.0**63) <= value < 2.0**64 and not negative_zero
