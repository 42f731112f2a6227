"""The web pages of the audit history: sessions, sign-in limits, and cached reports rendered on threads."""

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
from policyeng.server.authentication import Tokens, TokenScope, digest_of
from policyeng.server.request_body import RequestRefusedError, refuse_busy
from policyeng.server.service import Shared

if TYPE_CHECKING:
    from policyeng.audit.store import Store

#: The lifetime of a session in seconds, and the maximum number of sessions; the oldest is removed.
LASTING = 8 * 3600
_MOST = 10_000
#: The window for refused attempts in seconds, their limits per address and in total, and the maximum of addresses.
_WINDOW, _FROM_ONE, _FROM_ALL, _ADDRESSES = 60, 10, 200, 1_000


@dataclass(frozen=True, slots=True)
class _Session:
    digest: bytes
    ends: float


class Sessions:
    """Browser sessions in memory shared by all workers; a restart ends them.

    A session is stored under the hash of its key. It is valid only while its token is.

    Args:
        clock: a monotonic clock in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: Shared[Mapping[bytes, _Session]] = Shared({})

    def begin(self, token: str) -> str:
        """Start a session for a checked token, and return its key for the cookie."""
        key = secrets.token_urlsafe(32)
        session = {digest_of(key): _Session(digest_of(token), self._clock() + LASTING)}
        self._known.replace(lambda known: dict([*known.items()][-(_MOST - 1) :]) | session)
        return key

    def holder(self, key: str, tokens: Tokens) -> str | None:
        """Return the name of the owner of a session; None if it does not exist or has ended."""
        session = self._known.value.get(digest_of(key))
        if session is None or session.ends <= self._clock():
            return None
        return tokens.name_of(session.digest, TokenScope.HISTORY)

    def end(self, key: str) -> None:
        """End a session, if it exists."""
        ended = digest_of(key)
        self._known.replace(lambda known: {one: session for one, session in known.items() if one != ended})


class _RefusedAttempts(NamedTuple):
    """The times of refused attempts: of all, and of those from each address, the latest address last."""

    all: Sequence[float] = ()
    by_address: Mapping[str, Sequence[float]] = {}


class Attempts:
    """Recent refused attempts to sign in, shared by all workers.

    Args:
        clock: a monotonic clock in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._refused = Shared(_RefusedAttempts())

    def require_patience(self, address: str) -> None:
        """Refuse an attempt after too many.

        Raises:
            RequestRefusedError: with the time to retry (429).
        """
        refused = self._refused.value
        for times, most in ((refused.by_address.get(address, ()), _FROM_ONE), (refused.all, _FROM_ALL)):
            recent = self._recent(times)
            if len(recent) >= most:
                wait = str(int(recent[0] + _WINDOW - self._clock()) + 1)
                message = "too many failed sign-in attempts"
                headers = {"Retry-After": wait}
                raise RequestRefusedError(
                    HTTPStatus.TOO_MANY_REQUESTS, message, remedy=f"retry in {wait} seconds", headers=headers
                )

    def refused(self, address: str) -> None:
        """Record a refused attempt."""

        def counted(refused: _RefusedAttempts) -> _RefusedAttempts:
            others = {one: times for one, times in refused.by_address.items() if one != address}
            from_one = (*self._recent(refused.by_address.get(address, ())), self._clock())
            latest = dict([*others.items()][-(_ADDRESSES - 1) :]) | {address: from_one}
            return _RefusedAttempts((*self._recent(refused.all), self._clock()), latest)

        self._refused.replace(counted)

    def _recent(self, times: Sequence[float]) -> Sequence[float]:
        return tuple(each for each in times if each > self._clock() - _WINDOW)


#: How many reports are rendered at the same time, may wait, and are cached.
_PARALLEL, _WAITING, _CACHED = 2, 16, 8
#: How many runs of each estate the list of estates links.
_LISTED = 20


@dataclass(frozen=True, slots=True)
class EstateStatus:
    """An estate in the list: its latest run, and earlier ones."""

    name: str
    run: AuditRun
    earlier: Sequence[AuditRun]


class Reports:
    """The pages of an audit store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._reports: OrderedDict[str, asyncio.Future[bytes]] = OrderedDict()
        self._room = asyncio.Semaphore(_PARALLEL)

    async def estates(self, holder: str) -> bytes:
        """Return the page that lists the estates.

        Raises:
            StoreError: the store cannot be read.
        """
        return await asyncio.to_thread(self._estates, holder)

    async def newest(self, estate: str) -> AuditRun | None:
        """Return the latest run of an estate; None without any.

        Raises:
            StoreError: the store cannot be read.
        """
        runs = await asyncio.to_thread(self._store.runs, estate, last=1)
        return runs[0] if runs else None

    async def run(self, number: int) -> AuditRun:
        """Return a run.

        Raises:
            UsageError: no run has that number.
            StoreError: the store cannot be read.
        """
        return await asyncio.to_thread(self._store.run, number)

    async def report(self, run: AuditRun) -> bytes:
        """Return the report of a run; concurrent requests for a run share one rendering.

        Raises:
            RefusedError: too many wait (503).
            UsageError: retention has deleted the findings of the run.
            StoreError: the store cannot be read.
        """
        report = self._reports.get(run.hash)
        if report is None:
            if sum(not each.done() for each in self._reports.values()) >= _PARALLEL + _WAITING:
                raise refuse_busy("too many reports are being rendered")
            report = self._reports[run.hash] = asyncio.ensure_future(self._render_async(run))
        self._reports.move_to_end(run.hash)
        try:
            return await asyncio.shield(report)
        finally:
            self._forget()

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    async def _render_async(self, run: AuditRun) -> bytes:
        async with self._room:
            return await asyncio.to_thread(self._render, run)

    def _render(self, run: AuditRun) -> bytes:
        stored = reported(self._store, run)
        return render(stored.evaluation, about=stored.about, served=True).encode()

    def _estates(self, holder: str) -> bytes:
        statuses = []
        for name in self._store.estates():
            *earlier, newest = self._store.runs(name, last=_LISTED)
            statuses.append(EstateStatus(name, newest, earlier[::-1]))
        return page("estates.html", estates=statuses, holder=holder).encode()

    def _forget(self) -> None:
        """Remove failed reports and the least recently used ones."""
        for key, report in [*self._reports.items()]:
            if report.done() and (report.cancelled() or report.exception() is not None):
                del self._reports[key]
        done = [key for key, report in self._reports.items() if report.done()]
        for key in done[:-_CACHED]:
            del self._reports[key]
