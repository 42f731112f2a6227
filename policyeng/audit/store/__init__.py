"""The store: what audits judged and found, in a database; each run whole or not at all, and chained to the last."""

from __future__ import annotations

from policyeng.audit.store.kept import Store, open_store

__all__ = ["Store", "open_store"]
