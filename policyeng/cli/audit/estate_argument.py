"""The argument that selects estates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from policyeng.cli.completion import complete_estates
from policyeng.errors import UsageError, suggest_nearest

if TYPE_CHECKING:
    from policyeng.audit.records import History

EstateName = Annotated[
    str | None,
    typer.Argument(metavar="ESTATE", help="Estate. Default: all estates with runs.", autocompletion=complete_estates),
]


def estates_of(kept: History, named: str | None) -> list[str]:
    """Return the names of the selected estates.

    Raises:
        UsageError: the estate has no run, or there is no run at all.
    """
    estates = list(kept.estates())
    if not estates:
        raise UsageError("the store has no run yet", remedy="run `policyeng audit run` to create one")
    if named is None:
        return estates
    if named not in estates:
        remedy = f"choose from {', '.join(estates)}"
        raise UsageError(f"no run of an estate `{named}`{suggest_nearest(named, estates)}", remedy=remedy)
    return [named]
