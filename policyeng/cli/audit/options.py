"""The options of the audit commands, each declared once."""

from __future__ import annotations

from collections.abc import Mapping
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
        help="The database of audits: sqlite:///audits.db, or postgresql://user@host/database.",
    ),
]


def notifying_settings_of(flags: Mapping[str, object], config: Path | None) -> Settings:
    """Read the settings of a command that sends notifications.

    Raises:
        UsageError: as of `settings_of`, and where a URL of them needs the environment and may not have it.
    """
    settings = settings_of(flags, config)
    if settings.notify:
        from policyeng.audit.notifications.sender import require_expandable

        for target in settings.notify:
            require_expandable(target)
    return settings


def store_of(url: str | None, config: Path | None) -> Store:
    """The store that an option, the environment or the configuration names, which has to be there.

    Raises:
        UsageError: the settings do not fit, or the libraries are not installed.
        StoreError: there is no store, or it cannot be used.
    """
    from policyeng.audit.store import open_store

    return open_store(settings_of({"store": url}, config).store)
