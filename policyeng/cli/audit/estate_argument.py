"""Which estates a command is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from policyeng.errors import UsageError, nearest

if TYPE_CHECKING:
    from policyeng.audit.records import History

EstateName = Annotated[
    str | None, typer.Argument(metavar="[ESTATE]", help="One estate; all that have runs unless it is given.")
]


def estates_of(kept: History, named: str | None) -> list[str]:
    """The names of the estates that are asked for.

    Raises:
        UsageError: there is none of the name, or no run at all.
    """
    estates = list(kept.estates())
    if not estates:
        raise UsageError("the store has no run yet", remedy="`policyeng audit run` makes one")
    if named is None:
        return estates
    if named not in estates:
        remedy = f"those with a run are {', '.join(estates)}"
        raise UsageError(f"no estate `{named}` has a run{nearest(named, estates)}", remedy=remedy)
    return [named]
