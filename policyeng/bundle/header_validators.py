"""What the parts of a header share: fields that it does not know are refused, and JSON Pointers are well formed."""

from __future__ import annotations

from collections.abc import Container
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Annotated, Literal

from policyeng.frozen import frozen
from policyeng.later import lazy_pattern
from policyeng.models import Checked, Model

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_POINTER = lazy_pattern(r"(workspace:)?(/([^~/]|~[01])*)+")

#: The prefix of a JSON Pointer into the workspace of the evaluated resource.
WORKSPACE = "workspace:"
#: How a header names a parameter instead of a field or a value.
PARAMETER = "parameter:"


class Strict(Model):
    """A part of a header: frozen, and without unknown fields; names are written as in Python."""

    __slots__ = ()
    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012  # pydantic takes a mapping


def require_pointer(pointer: str, *, own: bool = False) -> None:
    """Raise ValueError for a string that is not a JSON Pointer; with `own` also for one into the workspace."""
    if not _POINTER.fullmatch(pointer) or (own and pointer.startswith(WORKSPACE)):
        also = "" if own else " or `workspace:/properties/x`"
        raise ValueError(f"`{pointer}` is not a JSON Pointer such as `/properties/x`{also}")


@frozen(kw_only=True)
class RelatedResource(Strict):
    """A page that explains more."""

    ref: str
    description: str = ""


def duration(text: str) -> timedelta:
    """Return a length of time in the form of ISO 8601, such as `P30D` or `PT6H`.

    Raises:
        ValueError: it is not one, or goes back in time.
    """
    try:
        read = _durations().validate_python(text) if text.startswith("P") else None
    except ValueError:
        read = None
    if read is None or read < timedelta():
        raise ValueError(f"`{text}` is no duration such as `P30D` or `PT6H`, and no `{PARAMETER}NAME`")
    return read


@cache
def _durations() -> TypeAdapter[timedelta]:
    """Return what reads them.

    Made when a header that is not stored yet needs it, as making it loads much of pydantic.
    """
    from pydantic import TypeAdapter

    return TypeAdapter(timedelta)


def require_parameters(clock: str | tuple[str, ...], known: Container[str]) -> None:
    """Raise ValueError where a `clock` refers to an unknown parameter."""
    for entry in clock if isinstance(clock, tuple) else ():
        name = entry.removeprefix(PARAMETER)
        if name != entry and name not in known:
            raise ValueError(f"`clock` names a parameter `{name}` that there is not")


def _check_clock(clock: object) -> object:
    if clock not in ("", "compared") and not isinstance(clock, list | tuple):
        raise ValueError(f"`clock` is `compared`, or a list of durations such as `P30D` and of `{PARAMETER}NAME`")
    for entry in clock if isinstance(clock, list | tuple) else ():
        if not str(entry).startswith(PARAMETER):
            duration(str(entry))
    return clock


#: How a policy uses `as_of`: it compares it with times in its inputs (`compared`), or with such times moved in either
#: direction by ISO 8601 durations and by days from parameters; empty for no promise.
Clock = Annotated[Literal["", "compared"] | tuple[str, ...], Checked(_check_clock, before=True)]
