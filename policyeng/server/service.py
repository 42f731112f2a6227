"""The state that changes are judged against: where it comes from, and how old it is."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from http import HTTPStatus
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from policyeng.admission import Changes, admit
from policyeng.bundle.loader import WantedInputs
from policyeng.context import EvaluationSetup
from policyeng.errors import InputError, PolicyengError
from policyeng.facts.ids import fold_id
from policyeng.models import Blame, Change, Decision, Evaluation, Operation, Snapshot
from policyeng.server.file_watcher import Watched
from policyeng.server.options import ServerOptions
from policyeng.server.request_body import Bodies, RequestRefusedError, refuse_busy
from policyeng.server.shared_memory import Shared
from policyeng.server.tls import Certificates
from policyeng.server.tokens import Tokens, TokenScope
from policyeng.sources import Inputs, read_inputs
from policyeng.sources.kubernetes.owners import BesideSnapshot
from policyeng.sources.problems import raise_errors

if TYPE_CHECKING:
    from policyeng.server.history_site import Reports

#: How far ahead of ours, in seconds, the clock of who took a snapshot may be.
_AHEAD = 60.0


@dataclass(frozen=True)
class SnapshotState:
    """A state, and the moment of which it says what is there."""

    snapshot: Snapshot
    since: datetime

    @cached_property
    def beside(self) -> BesideSnapshot:
        """The state as the objects of a cluster are read beside it."""
        return BesideSnapshot(self.snapshot)

    def age(self, now: datetime) -> float:
        """Its age in seconds; less than zero where the clock that it was taken by is ahead."""
        return round((now - self.since).total_seconds(), 3)


def read_state(paths: Sequence[Path], wanted: WantedInputs) -> SnapshotState:
    """Read a state from files and directories, all of it or nothing.

    Its moment is the `takenAt` that it states, else that of the file that was written first.

    Args:
        paths: as the user named them.
        wanted: what is read of them.

    Raises:
        InputError: something in it cannot be read.
    """
    read = read_inputs(paths, **wanted)
    raise_errors(read.problems)
    return SnapshotState(read.snapshot, read.snapshot.taken_at or _write(read))


def require_fresh(standing: SnapshotState, now: datetime, longest: float | None) -> float:
    """Return the age in seconds of a state, if it is recent enough to decide by.

    Raises:
        RefusedError: it is older than that, or was taken at a time that has not come yet.
    """
    age = standing.age(now)
    if longest is not None and not -_AHEAD <= age <= longest:
        how = f"{age:g} seconds old, which is more than {longest:g}" if age > 0 else "of a time that has not come yet"
        raise refuse_busy(f"nothing is decided by the state, which is {how}")
    return age


def _write(read: Inputs) -> datetime:
    try:
        first = min(Path(file).stat().st_mtime for file in read.files)
    except (OSError, ValueError):
        raise InputError("the state disappeared while it was read", remedy="write a new file and rename it") from None
    return datetime.fromtimestamp(first, UTC)


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


_T = TypeVar("_T")


class Queue:
    """Work for threads, from one event loop.

    A request has a place from when it is let in until its work is done, also where nobody waits for the answer any
    more: a thread cannot be stopped, so the place stays taken as long as the work needs. One that waits for a thread
    gives its place back at once when its time is over or its client went away.

    Args:
        threads: how many work.
        waiting: how many may wait for one.

    Attributes:
        taken: places that are taken now.
        overdue: threads whose work nobody waits for any more.
        closed: refuse what comes; what is there ends.
    """

    def __init__(self, threads: int, waiting: int) -> None:
        self.threads = threads
        self.places = threads + waiting
        self.taken = 0
        self.overdue = 0
        self.closed = False
        self._free = asyncio.Semaphore(threads)
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="policyeng-judge")

    def require_place(self) -> None:
        """Refuse what cannot be let in now.

        Raises:
            RefusedError: there is no place (429), or nothing is let in any more (503).
        """
        if self.closed:
            raise refuse_busy("the server is about to end")
        if self.taken >= self.places:
            raise refuse_busy("too many requests at a time", status=HTTPStatus.TOO_MANY_REQUESTS)

    async def run(self, work: Callable[[], _T], until: float) -> _T:
        """Return the result of the work, or raise its error.

        Args:
            work: called on a thread of ours.
            until: the time of the loop at which the answer is due.

        Raises:
            RefusedError: there is no place (429), nothing is let in any more, or it took too long (503).
        """
        self.require_place()
        self.taken += 1
        try:
            async with asyncio.timeout_at(until):
                await self._free.acquire()
        except TimeoutError:
            self.taken -= 1
            raise refuse_busy("the request waited for its turn until its time was over") from None
        except BaseException:
            self.taken -= 1
            raise
        return await self._answer(work, until)

    async def _answer(self, work: Callable[[], _T], until: float) -> _T:
        loop = asyncio.get_running_loop()
        answer = loop.run_in_executor(self._threads, work)
        answer.add_done_callback(self._give_back)
        try:
            await asyncio.wait({answer}, timeout=max(0.0, until - loop.time()))
            if answer.done():
                return answer.result()
            raise refuse_busy("the request could not be answered in its time")
        finally:
            if not answer.done():
                self.overdue += 1
                answer.add_done_callback(self._end_overdue)

    def _give_back(self, answer: asyncio.Future[_T]) -> None:
        answer.exception()  # heard, also where nobody waits for it any more
        self.taken -= 1
        self._free.release()

    def _end_overdue(self, _: asyncio.Future[_T]) -> None:
        self.overdue -= 1


#: Threads of a worker that judge: a long document must not keep decisions waiting. They share one processor.
THREADS = 2


@dataclass(frozen=True, slots=True)
class Answered:
    """A request to judge, and what came of it.

    Attributes:
        point: `check`, `admit`, `admission-review` or `check-policy-restrictions`.
        decision_id, request_id: as the caller got them.
        requested_by: the subject of the client's certificate and the name of the token; empty where there is neither.
        at: when the request arrived.
        seconds: until it was answered.
        status: of HTTP.
        document: what was to be judged, where it was parsed as JSON.
        outcome: what was said of it; of an AdmissionReview None, too, when it is about nothing of ours.
        refusal: why nothing was said.
        held: what was in force; None when the request did not come so far.
        state_age: of the state that changes were judged against, in seconds.
        client: the address that the request came from, with its port.
        traceparent: the header of that name (W3C Trace Context); empty where there is none.
        size: bytes of the request and of its answer, together.
    """

    point: str
    decision_id: str
    request_id: str
    requested_by: str
    at: datetime
    seconds: float
    status: int
    document: object = None
    outcome: Evaluation | Decision | None = None
    refusal: PolicyengError | None = None
    held: EvaluationSetup | None = None
    state_age: float | None = None
    client: str = ""
    traceparent: str = ""
    size: int = 0


class Log(Protocol):
    """The decision log; it never blocks."""

    def start(self) -> object:
        """Begin to write."""

    def answered(self, answered: Answered) -> None:
        """Write what came of a request."""

    def close(self) -> None:
        """Write what waits, and end."""


class ServiceMetrics(Protocol):
    """What is counted."""

    def become(self, worker: int) -> None:
        """Count as the worker of a number from 0."""

    def publish(self) -> None:
        """Show the other workers what this one has now."""

    def add_ended(self, seconds: float) -> None:
        """Count the processor time of a worker that ended."""

    def answered(self, answered: Answered) -> None:
        """Count what came of a request."""

    def exposition(self) -> bytes:
        """All of it, in the text format of Prometheus 0.0.4."""


@dataclass(slots=True)
class Service:
    """The parts of a server.

    Attributes:
        state: what changes are judged against; None when each request brings its own.
        tokens: who may ask for what; None when nobody has to say who they are.
        certificates: of TLS; None for plain HTTP.
        reports: what is shown of the history of audits; None for nothing.
        log, metrics: hear of every answer; without metrics there is no route for them.
        allowed: changes that count as part of the state.
        leaving: say in readiness that the server is about to end; it answers until the queue is closed.
    """

    options: ServerOptions
    holding: Watched[EvaluationSetup]
    state: Watched[SnapshotState] | None = None
    tokens: Watched[Tokens] | None = None
    certificates: Certificates | None = None
    log: Log | None = None
    metrics: ServiceMetrics | None = None
    reports: Reports | None = None
    leaving: bool = False
    queue: Queue = field(init=False)
    bodies: Bodies = field(init=False)
    allowed: Allowed = field(init=False, default_factory=Allowed)

    def __post_init__(self) -> None:
        workers = self.options.workers
        self.queue = Queue(THREADS, ceil(self.options.waiting / workers))
        self.bodies = Bodies(self.options.max_body_bytes, self.options.max_pending_bytes // workers)

    def become(self, worker: int) -> None:
        """Be the worker of a number from 0."""
        if self.metrics is not None:
            self.metrics.become(worker)

    def start(self) -> None:
        """Begin to write the log."""
        if self.log is not None:
            self.log.start()

    def watch(self) -> None:
        """Watch the files that things are read from."""
        if (state := self.state) is not None:
            self.holding.then = state.ask  # other policies may judge other kinds of documents
        for each in self.watched():
            each.start()

    def reload(self) -> None:
        """Have everything read again soon, as if it had changed."""
        for each in self.watched():
            each.ask()

    def stop(self) -> None:
        """Watch nothing any more, and end the log."""
        for each in self.watched():
            each.stop()
        if self.log is not None:
            self.log.close()
        if self.reports is not None:
            self.reports.close()

    def hear(self, answered: Answered) -> None:
        """Tell those who want to know; whatever becomes of that, the answer stays what it is."""
        for listener in (self.log, self.metrics):
            if listener is None:
                continue
            try:
                listener.answered(answered)
            except Exception:
                _log.exception("request %s: the result could not be logged", answered.request_id)

    def unready(self) -> list[str]:
        """Why no decision should be asked for now."""
        said = ["the server is about to end"] if self.leaving or self.queue.closed else []
        if self.queue.overdue >= self.queue.threads:
            said.append("every thread is at work for which nobody waits any more")
        if self.state is not None:
            try:
                require_fresh(self.state.current, get_time(), self.options.max_snapshot_age)
            except RequestRefusedError as error:
                said.append(error.message)
        if self.options.unready_on_fault:
            said += [f"an earlier reading is in force: {fault}" for fault in self.faults()]
        return said

    def caller(self, authorization: str, subject: str, scope: TokenScope) -> str:
        """Who asks: the subject of the certificate, and the name of the token; empty where nobody has to say it.

        Args:
            authorization: the header as it came; empty when there is none.
            subject: of the certificate that the client showed; empty when it showed none.
            scope: what is asked for.

        Raises:
            RefusedError: there is no certificate (403), or the token is none that may ask for it (401, 403).
        """
        self.require_certificate(subject)
        holder = self.tokens.current.holder(authorization, scope) if self.tokens is not None else ""
        return "; ".join(name for name in (subject, holder) if name)

    def require_certificate(self, subject: str) -> None:
        """Refuse a client without a certificate where clients need one.

        Raises:
            RefusedError: it has shown none (403).
        """
        if self.options.tls_client_ca is not None and not subject:
            remedy = "connect with a certificate signed by the server's trusted roots"
            raise RequestRefusedError(HTTPStatus.FORBIDDEN, "the client sent no certificate", remedy=remedy)

    def faults(self) -> list[str]:
        """Return the reasons of failed reloads, for which the last good values stay active."""
        return [f"{each.what}: {each.fault.message}" for each in self.watched() if each.fault]

    def standing(self, given: SnapshotState | None, at: datetime) -> tuple[SnapshotState, float]:
        """Return the state to evaluate changes against, and its age in seconds.

        Args:
            given: the state in the request.
            at: the time of the decision.

        Raises:
            RefusedError: there is none, or two, or it is too old.
        """
        if given is not None and self.state is not None:
            message = "the request has a `state`, but the server uses its own"
            raise RequestRefusedError(HTTPStatus.UNPROCESSABLE_ENTITY, message, place=("/state",), remedy="omit it")
        return self.fresh(given or (self.state.current if self.state is not None else None), at)

    def fresh(self, standing: SnapshotState | None, at: datetime) -> tuple[SnapshotState, float]:
        """Return the state to evaluate changes against, and its age in seconds.

        Raises:
            RefusedError: there is none, or it is too old.
        """
        if standing is None:
            remedy = "send `state`, or start the server with `--snapshot`"
            raise RequestRefusedError(
                HTTPStatus.UNPROCESSABLE_ENTITY, "no state to evaluate changes against", remedy=remedy
            )
        return standing, require_fresh(standing, at, self.options.max_snapshot_age)

    def decided(
        self,
        held: EvaluationSetup,
        standing: SnapshotState,
        changes: Sequence[Change],
        at: datetime,
        blame: Blame,
        before: Sequence[Change] = (),
        *,
        is_dry_run: bool = False,
        is_standing: bool = False,
    ) -> Decision:
        """Decide on changes of the server's own state, of which the changes that were allowed are a part.

        Args:
            held: what is in force.
            standing: the state.
            changes: what is asked for; once allowed, they are part of the state until it is newer than they are.
            at: when it is asked.
            blame: as for `decide`.
            before: changes that have been made of the state already.
            is_dry_run: nothing is made, so that nothing is kept.
            is_standing: as for `decide`.

        Raises:
            PolicyengError: as `policyeng.admit`.
        """
        while True:
            seen = self.allowed.entries
            known = counting(seen, standing.since, changes)
            decision = decide(held, standing, changes, at, blame, [*known, *before], is_standing=is_standing)
            if not decision.allowed or is_dry_run or not changes or list(changes) == list(before):
                return decision
            if self.allowed.add(changes, at, standing.since, seen):
                return decision
            # Another change was allowed meanwhile, and the two together may be one too many.

    def watched(self) -> Iterator[Watched[object]]:
        """Return the values that are reloaded when their files change."""
        parts = (self.holding, self.state, self.tokens, self.certificates)
        yield from (each for each in parts if each is not None)


def get_time() -> datetime:
    """Return the time of evaluations, to the second."""
    return datetime.now(UTC).replace(microsecond=0)


def decide(
    held: EvaluationSetup,
    standing: SnapshotState,
    change: Changes,
    at: datetime,
    blame: Blame,
    before: Sequence[Change] = (),
    *,
    is_standing: bool = False,
) -> Decision:
    """Decide on a change with the active setup; `before` are changes already made to the state.

    `blame` counts where the settings say nothing of it. With `is_standing` failures of before are listed, too.

    Raises:
        PolicyengError: as `policyeng.admit`.
    """
    decision = admit(
        held.bundle,
        standing.snapshot,
        change,
        as_of=at,
        before=before,
        exemptions=held.exemptions,
        parameters=held.parameters,
        fail_on=held.settings.fail_on,
        strict_unknown=held.settings.strict_unknown,
        modes=held.settings.modes,
        blame=held.settings.blame or blame,
        standing=is_standing,
    )
    return decision.model_copy(update={"settings": held.applied})
