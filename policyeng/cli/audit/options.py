"""The options that several audit commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from policyeng.cli.context import settings_of
from policyeng.cli.options import complete_estates
from policyeng.errors import UsageError, suggest_nearest

if TYPE_CHECKING:
    from policyeng.audit.records import History
    from policyeng.audit.store import Store
    from policyeng.configuration import Settings

StoreUrl = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="Audit store: sqlite:///audits.db or postgresql://user@host/database.",
    ),
]


def require_expandable_urls(settings: Settings) -> Settings:
    """Return the settings of a command that sends notifications.

    Raises:
        UsageError: a URL refers to the environment but may not read it.
    """
    if settings.notify:
        from policyeng.audit.notifications import require_expandable

        for target in settings.notify:
            require_expandable(target)
    return settings


def store_of(url: str | None, config: Path | None) -> Store:
    """Open the existing store that an option, the environment or the configuration names.

    Raises:
        UsageError: a setting is not valid, or the libraries are not installed.
        StoreError: the store does not exist or cannot be used.
    """
    from policyeng.audit.store import open_store

    return open_store(settings_of({"store": url}, config).store)


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
