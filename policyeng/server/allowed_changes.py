"""Changes that were allowed: they count as part of the state until it is newer than they are.

Without them a violation could be split over several requests, each of which is compliant beside the same old state.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from policyeng.facts.ids import fold_id
from policyeng.models import Change, Operation
from policyeng.server.shared_memory import Shared

#: Of so many changes the latest are kept.
MOST = 100
_PUTS = (Operation.CREATE, Operation.REPLACE)
_log = logging.getLogger("policyeng.server")


class AllowedChange(NamedTuple):
    """A change, and when it was allowed."""

    change: Change
    at: datetime


class _Kept(NamedTuple):
    entries: tuple[AllowedChange, ...] = ()
    forgotten: int = 0


class Allowed:
    """The latest changes that were allowed, oldest first; all workers and their threads share it."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._kept = Shared(_Kept())

    @property
    def entries(self) -> tuple[AllowedChange, ...]:
        """All that are kept, as they are now; the same object until they change."""
        return self._kept.value.entries

    @property
    def forgotten(self) -> int:
        """How many were left out because there were more than are kept."""
        return self._kept.value.forgotten

    def add(self, changes: Sequence[Change], at: datetime, since: datetime, seen: tuple[AllowedChange, ...]) -> bool:
        """Keep changes that were just allowed, and leave out those that the state shows already.

        Args:
            changes: in the order in which they are made.
            at: when they were allowed.
            since: the moment of which the state says what is there.
            seen: the entries that the decision was made with.

        Returns:
            whether they are kept; not where others came in meanwhile, so that the decision has to be made again.
        """
        put = {fold_id(change.id) for change in changes if change.operation in _PUTS}
        entries = [
            entry
            for entry in seen
            if entry.at > since and not _is_put_again(entry, put) and entry.change not in changes
        ]
        entries += (AllowedChange(change, at) for change in changes)
        more = max(len(entries) - self._most, 0)
        after = tuple(entries[more:])

        def kept(before: _Kept) -> _Kept:
            return _Kept(after, before.forgotten + more) if before.entries is seen else before

        if self._kept.replace(kept).entries is not after:
            return False
        if more:
            _log.warning("%d allowed changes no longer count as part of the state: only %d do", more, self._most)
        return True


def counting(entries: Sequence[AllowedChange], since: datetime, changes: Sequence[Change]) -> list[Change]:
    """Return the changes that count as part of a state when others are decided on.

    What is put again is left out: what it was allowed to be is no reason to allow it.

    Args:
        entries: the changes that were allowed.
        since: the moment of which the state says what is there.
        changes: what is decided on.
    """
    put = {fold_id(change.id) for change in changes if change.operation in _PUTS}
    return [entry.change for entry in entries if entry.at > since and not _is_put_again(entry, put)]


def _is_put_again(entry: AllowedChange, put: set[str]) -> bool:
    # A deletion takes more with it than what is put again.
    return entry.change.operation is not Operation.DELETE and fold_id(entry.change.id) in put
