"""The options that several audit commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from policyeng.cli.context import settings_of

if TYPE_CHECKING:
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
        from policyeng.audit.notifications.sender import require_expandable

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
