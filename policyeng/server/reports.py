"""The reports that the server shows of the runs of a store, made on threads, a few at a time, and kept for a while."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from policyeng.audit.history import Run
from policyeng.audit.reporting import reported
from policyeng.report.html import page, render
from policyeng.server.problems import too_busy

if TYPE_CHECKING:
    from policyeng.audit.store import Store

#: Reports that are made at a time, that may wait for it, and that are kept when they are made.
_AT_A_TIME, _WAITING, _KEPT = 2, 16, 8
#: Runs of an estate that the list of estates leads to.
_LISTED = 20


@dataclass(frozen=True, slots=True)
class Standing:
    """An estate in the list: its newest run, and those before."""

    name: str
    run: Run
    earlier: Sequence[Run]


class Reports:
    """What there is to be seen of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._making: OrderedDict[str, asyncio.Future[bytes]] = OrderedDict()
        self._room = asyncio.Semaphore(_AT_A_TIME)

    async def estates(self, holder: str) -> bytes:
        """Give the page that lists the estates.

        Raises:
            StoreError: the store cannot be read.
        """
        return await asyncio.to_thread(self._estates, holder)

    async def newest(self, estate: str) -> Run | None:
        """Give the newest run of an estate; None where there is none.

        Raises:
            StoreError: the store cannot be read.
        """
        runs = await asyncio.to_thread(self._store.runs, estate, last=1)
        return runs[0] if runs else None

    async def run(self, number: int) -> Run:
        """Give a run.

        Raises:
            UsageError: there is none of that number.
            StoreError: the store cannot be read.
        """
        return await asyncio.to_thread(self._store.run, number)

    async def report(self, run: Run) -> bytes:
        """Give the report on a run; who asks for the same at the same time waits for the same.

        Raises:
            RefusedError: too many wait (503).
            UsageError: retention has taken what the run found.
            StoreError: the store cannot be read.
        """
        made = self._making.get(run.hash)
        if made is None:
            if sum(not each.done() for each in self._making.values()) >= _AT_A_TIME + _WAITING:
                raise too_busy("too many reports are being made")
            made = self._making[run.hash] = asyncio.ensure_future(self._made(run))
        self._making.move_to_end(run.hash)
        try:
            return await asyncio.shield(made)
        finally:
            self._forget()

    def close(self) -> None:
        """Give the store free."""
        self._store.close()

    async def _made(self, run: Run) -> bytes:
        async with self._room:
            return await asyncio.to_thread(self._rendered, run)

    def _rendered(self, run: Run) -> bytes:
        told = reported(self._store, run)
        return render(told.evaluation, about=told.about, served=True).encode()

    def _estates(self, holder: str) -> bytes:
        standings = []
        for name in self._store.estates():
            *earlier, newest = self._store.runs(name, last=_LISTED)
            standings.append(Standing(name, newest, earlier[::-1]))
        return page("estates.html", estates=standings, holder=holder).encode()

    def _forget(self) -> None:
        """Keep the reports that were asked for last, and none that could not be made."""
        for key, made in [*self._making.items()]:
            if made.done() and (made.cancelled() or made.exception() is not None):
                del self._making[key]
        done = [key for key, made in self._making.items() if made.done()]
        for key in done[:-_KEPT]:
            del self._making[key]
