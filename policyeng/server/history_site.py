"""The reports that the server shows of the runs of a store, made on threads, a few at a time, and kept for a while."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

from policyeng.audit.records import AuditRun
from policyeng.audit.run_report import reported
from policyeng.report.html import page, render
from policyeng.server.problems import RequestRefusedError, too_busy
from policyeng.server.shared_memory import Shared
from policyeng.server.tokens import Tokens, TokenScope, digest_of

if TYPE_CHECKING:
    from policyeng.audit.store import Store

#: Seconds that a session lasts, and how many there are at a time; the oldest goes.
LASTING = 8 * 3600
_MOST = 10_000
#: Refused attempts within so many seconds: from one address, from all of them, and addresses that are remembered.
_WINDOW, _FROM_ONE, _FROM_ALL, _ADDRESSES = 60, 10, 200, 1_000


@dataclass(frozen=True, slots=True)
class _Session:
    digest: bytes
    ends: float


class Sessions:
    """The sessions of browsers, in the memory of all workers: who restarts the server signs everybody out.

    A session is kept under the hash of its key, and asks for its token each time: with that it ends.

    Args:
        clock: in seconds, and never set back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: Shared[Mapping[bytes, _Session]] = Shared({})

    def begin(self, token: str) -> str:
        """Begin a session of a token that was looked at; gives its key, for a cookie."""
        key = secrets.token_urlsafe(32)
        begun = {digest_of(key): _Session(digest_of(token), self._clock() + LASTING)}
        self._known.replace(lambda known: dict([*known.items()][-(_MOST - 1) :]) | begun)
        return key

    def holder(self, key: str, tokens: Tokens) -> str | None:
        """Give the name of who has the session; None where there is none, or none any more."""
        session = self._known.value.get(digest_of(key))
        if session is None or session.ends <= self._clock():
            return None
        return tokens.name_of(session.digest, TokenScope.HISTORY)

    def end(self, key: str) -> None:
        """End a session, if it is one."""
        ended = digest_of(key)
        self._known.replace(lambda known: {one: session for one, session in known.items() if one != ended})


class _RefusedAttempts(NamedTuple):
    """The times of refused attempts: of all, and of those from each address, the latest address last."""

    all: Sequence[float] = ()
    by_address: Mapping[str, Sequence[float]] = {}


class Attempts:
    """Refused attempts to sign in, of late, of all workers.

    Args:
        clock: in seconds, and never set back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._refused = Shared(_RefusedAttempts())

    def require_patience(self, address: str) -> None:
        """Refuse an attempt after too many.

        Raises:
            RefusedError: with when to try again (429).
        """
        refused = self._refused.value
        for times, most in ((refused.by_address.get(address, ()), _FROM_ONE), (refused.all, _FROM_ALL)):
            late = self._late(times)
            if len(late) >= most:
                wait = str(int(late[0] + _WINDOW - self._clock()) + 1)
                message = "too many attempts to sign in were refused"
                headers = {"Retry-After": wait}
                raise RequestRefusedError(
                    HTTPStatus.TOO_MANY_REQUESTS, message, remedy=f"try again in {wait} seconds", headers=headers
                )

    def refused(self, address: str) -> None:
        """Count an attempt that was refused."""

        def counted(refused: _RefusedAttempts) -> _RefusedAttempts:
            others = {one: times for one, times in refused.by_address.items() if one != address}
            from_one = (*self._late(refused.by_address.get(address, ())), self._clock())
            latest = dict([*others.items()][-(_ADDRESSES - 1) :]) | {address: from_one}
            return _RefusedAttempts((*self._late(refused.all), self._clock()), latest)

        self._refused.replace(counted)

    def _late(self, times: Sequence[float]) -> Sequence[float]:
        return tuple(each for each in times if each > self._clock() - _WINDOW)


#: Reports that are made at a time, that may wait for it, and that are kept when they are made.
_AT_A_TIME, _WAITING, _KEPT = 2, 16, 8
#: Runs of an estate that the list of estates leads to.
_LISTED = 20


@dataclass(frozen=True, slots=True)
class EstateStatus:
    """An estate in the list: its newest run, and those before."""

    name: str
    run: AuditRun
    earlier: Sequence[AuditRun]


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

    async def newest(self, estate: str) -> AuditRun | None:
        """Give the newest run of an estate; None where there is none.

        Raises:
            StoreError: the store cannot be read.
        """
        runs = await asyncio.to_thread(self._store.runs, estate, last=1)
        return runs[0] if runs else None

    async def run(self, number: int) -> AuditRun:
        """Give a run.

        Raises:
            UsageError: there is none of that number.
            StoreError: the store cannot be read.
        """
        return await asyncio.to_thread(self._store.run, number)

    async def report(self, run: AuditRun) -> bytes:
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

    async def _made(self, run: AuditRun) -> bytes:
        async with self._room:
            return await asyncio.to_thread(self._rendered, run)

    def _rendered(self, run: AuditRun) -> bytes:
        told = reported(self._store, run)
        return render(told.evaluation, about=told.about, served=True).encode()

    def _estates(self, holder: str) -> bytes:
        standings = []
        for name in self._store.estates():
            *earlier, newest = self._store.runs(name, last=_LISTED)
            standings.append(EstateStatus(name, newest, earlier[::-1]))
        return page("estates.html", estates=standings, holder=holder).encode()

    def _forget(self) -> None:
        """Keep the reports that were asked for last, and none that could not be made."""
        for key, made in [*self._making.items()]:
            if made.done() and (made.cancelled() or made.exception() is not None):
                del self._making[key]
        done = [key for key, made in self._making.items() if made.done()]
        for key in done[:-_KEPT]:
            del self._making[key]
