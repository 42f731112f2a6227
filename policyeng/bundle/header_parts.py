"""What the parts of a header share: fields that it does not know are refused, and JSON Pointers are well formed."""

from __future__ import annotations

import re

from pydantic import BaseModel, ConfigDict

_POINTER = re.compile(r"(workspace:)?(/([^~/]|~[01])*)+")

#: What stands before a JSON Pointer into the workspace of the judged resource.
WORKSPACE = "workspace:"


class Strict(BaseModel):
    """A part of a header: frozen, and without unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


def require_pointer(pointer: str, *, own: bool = False) -> None:
    """Raise ValueError for what is no JSON Pointer; with `own` also for one into the workspace."""
    if not _POINTER.fullmatch(pointer) or (own and pointer.startswith(WORKSPACE)):
        also = "" if own else " or `workspace:/properties/x`"
        raise ValueError(f"`{pointer}` is not a JSON Pointer such as `/properties/x`{also}")
