"""The audit store: a database of runs. Each run is stored completely or not at all, and chained to the previous one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyeng.errors import UsageError

if TYPE_CHECKING:
    from policyeng.audit.store.store import Store

__all__ = ["Store", "open_store"]


def open_store(url: str, *, create: bool = False) -> Store:
    """Open a store, a context manager that implements `policyeng.audit.records.History`.

    Args:
        url: `sqlite:///PATH` or `postgresql://...`.
        create: whether to create a missing store, and to migrate an older one.

    Raises:
        UsageError: the URL is not of a supported database, or the libraries of audits are not installed.
        StoreError: there is no store, or it cannot be used.
    """
    from importlib.util import find_spec

    if not all(map(find_spec, ("sqlalchemy", "alembic"))):
        raise UsageError("audits need SQLAlchemy and Alembic", remedy="install `policyeng[audit]`")
    from policyeng.audit.store.connection import engine_of
    from policyeng.audit.store.store import Store

    return Store(engine_of(url, create=create), url)
