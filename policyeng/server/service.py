"""The parts of a running server: the current state, allowed changes, the request queue and the service."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import mmap
import os
import pickle
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from http import HTTPStatus
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from policyeng.admission import Changes, admit, list_effective
from policyeng.bundle.loader import WantedInputs
from policyeng.context import EvaluationSetup
from policyeng.errors import InputError, PolicyengError
from policyeng.facts.ids import fold_id
from policyeng.models import Blame, Change, Decision, Evaluation, Operation, Snapshot
from policyeng.server.authentication import Certificates, Tokens, TokenScope
from policyeng.server.file_watcher import Watched
from policyeng.server.options import ServerOptions
from policyeng.server.request_body import Bodies, RequestRefusedError, refuse_busy
from policyeng.sources import Inputs, read_inputs
from policyeng.sources.kubernetes.single_object import BesideSnapshot
from policyeng.sources.parsed import raise_errors

if TYPE_CHECKING:
    from policyeng.server.decision_log import DecisionLog
    from policyeng.server.history_site import Reports
    from policyeng.server.metrics import ServerMetrics

_T = TypeVar("_T")


class SharedLock:
    """A lock for threads of several processes; the system releases it when its holder is killed.

    `with` gives whether the last holder was killed, and may have left what it wrote unfinished.
    """

    def __init__(self) -> None:
        self.file = _file_in_memory()
        self._threads = threading.Lock()
        self._is_locked = mmap.mmap(-1, 1)

    def __enter__(self) -> bool:
        """Wait for the lock."""
        self._threads.acquire()
        fcntl.lockf(self.file, fcntl.LOCK_EX)
        was_killed = self._is_locked[0] != 0
        self._is_locked[0] = 1
        return was_killed

    def __exit__(self, *_: object) -> None:
        """Release the lock."""
        self._is_locked[0] = 0
        fcntl.lockf(self.file, fcntl.LOCK_UN)
        self._threads.release()


class Shared(Generic[_T]):
    """A value that one worker replaces and all of them read.

    A worker that is killed while it replaces the value leaves the earlier one.
    """

    #: Bytes of the header: a version, and where the pickled value begins and ends.
    _HEADER = 24

    def __init__(self, value: _T) -> None:
        self._lock = SharedLock()
        self._file = self._lock.file
        self._version, self._value = 0, value
        self._write(value)

    @property
    def value(self) -> _T:
        """The value; the same object until it is replaced."""
        if os.pread(self._file, 8, 0) != self._version.to_bytes(8, "little"):
            with self._lock:
                self._read()
        return self._value

    def replace(self, make: Callable[[_T], _T]) -> _T:
        """Replace the value by what is made of it, maybe the same object; no other worker replaces it meanwhile."""
        with self._lock:
            self._read()
            if (made := make(self._value)) is not self._value:
                self._write(made)
            return made

    def _read(self) -> None:
        version, begin, end = self._header()
        if version != self._version:
            self._value = pickle.loads(os.pread(self._file, end - begin, begin))  # noqa: S301  # a worker wrote it
            self._version = version

    def _write(self, value: _T) -> None:
        """Write the value next to the earlier one, and then, in one step, the header with its place."""
        content = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        version, begin, end = self._header()
        to = self._HEADER if begin >= self._HEADER + len(content) else max(end, self._HEADER)
        written = 0
        while written < len(content):
            written += os.pwrite(self._file, content[written:], to + written)
        header = (version + 1, to, to + len(content))
        os.pwrite(self._file, b"".join(number.to_bytes(8, "little") for number in header), 0)
        self._version, self._value = version + 1, value

    def _header(self) -> tuple[int, int, int]:
        header = os.pread(self._file, self._HEADER, 0).ljust(self._HEADER, b"\0")
        version, begin, end = (int.from_bytes(header[place : place + 8], "little") for place in (0, 8, 16))
        return version, begin, end


def _file_in_memory() -> int:
    """Create an unnamed file, which disappears with its last process."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("policyeng")
    with tempfile.TemporaryFile() as file:  # not on Linux
        return os.dup(file.fileno())


#: How far ahead of ours, in seconds, the clock of who took a snapshot may be.
_AHEAD = 60.0


@dataclass(frozen=True)
class SnapshotState:
    """A snapshot, and the time at which it was taken."""

    snapshot: Snapshot
    since: datetime

    @cached_property
    def context(self) -> BesideSnapshot:
        """Return the state as context for reading Kubernetes objects."""
        return BesideSnapshot(self.snapshot)

    def age(self, now: datetime) -> float:
        """Return the age in seconds; negative if the clock of the machine that took the snapshot is ahead."""
        return round((now - self.since).total_seconds(), 3)


def read_state(paths: Sequence[Path], wanted: WantedInputs) -> SnapshotState:
    """Read a state from files and directories, all of it or nothing.

    Its time is its `takenAt`, or else the earliest modification time of its files.

    Args:
        paths: as the user named them.
        wanted: what is read of them.

    Raises:
        InputError: something in it cannot be read.
    """
    read = read_inputs(paths, **wanted)
    raise_errors(read.problems)
    return SnapshotState(read.snapshot, read.snapshot.taken_at or _write(read))


def require_fresh(state: SnapshotState, now: datetime, longest: float | None) -> float:
    """Return the age in seconds of a state, if it is recent enough to decide by.

    Raises:
        RefusedError: it is older than that, or was taken at a time that has not come yet.
    """
    age = state.age(now)
    if longest is not None and not -_AHEAD <= age <= longest:
        how = f"{age:g} seconds old, which is more than {longest:g}" if age > 0 else "of a time that has not come yet"
        raise refuse_busy(f"no decision: the state is {how}")
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
        """Return how many changes were dropped because the limit was reached."""
        return self._kept.value.forgotten

    def add(self, changes: Sequence[Change], at: datetime, since: datetime, seen: tuple[AllowedChange, ...]) -> bool:
        """Store changes that were just allowed, and drop those that the state already includes.

        Args:
            changes: in the order in which they are made.
            at: when they were allowed.
            since: the time at which the state was taken.
            seen: the entries that the decision was based on.

        Returns:
            whether the changes were stored; False if others were added meanwhile, so the decision must be repeated.
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
    """Return the allowed changes that count as part of a state when deciding on other changes.

    Resources that are put again are omitted: their earlier content must not affect the new decision.

    Args:
        entries: the changes that were allowed.
        since: the time at which the state was taken.
        changes: the changes to decide on.
    """
    put = {fold_id(change.id) for change in changes if change.operation in _PUTS}
    return [entry.change for entry in entries if entry.at > since and not _is_put_again(entry, put)]


def _is_put_again(entry: AllowedChange, put: set[str]) -> bool:
    # A deletion takes more with it than what is put again.
    return entry.change.operation is not Operation.DELETE and fold_id(entry.change.id) in put


class Queue:
    """Work for threads, from one event loop.

    A request occupies a place from its acceptance until its work is done, even after its client disconnects: a
    thread cannot be stopped, so the place stays taken until the work ends. A request that still waits for a thread
    releases its place at once when it times out or its client disconnects.

    Args:
        threads: the number of threads.
        waiting: how many requests may wait for a thread.

    Attributes:
        taken: places that are taken now.
        overdue: threads that still work on abandoned requests.
        closed: refuse new requests; accepted ones are completed.
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
        """Refuse a request that cannot be accepted now.

        Raises:
            RefusedError: there is no place (429), or no requests are accepted any more (503).
        """
        if self.closed:
            raise refuse_busy("the server is about to end")
        if self.taken >= self.places:
            raise refuse_busy("too many requests at a time", status=HTTPStatus.TOO_MANY_REQUESTS)

    async def run(self, work: Callable[[], _T], until: float) -> _T:
        """Return the result of the work, or raise its error.

        Args:
            work: called on a thread of ours.
            until: the time of the loop at which the response is due.

        Raises:
            RefusedError: there is no place (429), nothing is let in any more, or it took too long (503).
        """
        self.require_place()
        self.taken += 1
        try:
            async with asyncio.timeout_at(until) if self._free.locked() else nullcontext():  # or it need not wait
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
            raise refuse_busy("the request timed out")
        finally:
            if not answer.done():
                self.overdue += 1
                answer.add_done_callback(self._end_overdue)

    def _give_back(self, answer: asyncio.Future[_T]) -> None:
        answer.exception()  # mark it as retrieved, because an abandoned request has no other reader
        self.taken -= 1
        self._free.release()

    def _end_overdue(self, _: asyncio.Future[_T]) -> None:
        self.overdue -= 1


#: Evaluation threads of a worker: a long document must not delay decisions. They share one processor.
THREADS = 2


@dataclass(frozen=True, slots=True)
class Answered:
    """A request for an evaluation or a decision, and its result.

    Attributes:
        point: `check`, `admit`, `admission-review` or `check-policy-restrictions`.
        decision_id, request_id: as returned to the caller.
        requested_by: the subject of the client's certificate and the name of the token; empty without either.
        at: when the request arrived.
        seconds: the time until the response.
        status: the HTTP status code.
        document: the document to evaluate, if it was parsed as JSON.
        outcome: the result; also None for an AdmissionReview that no policy applies to.
        refusal: why there is no result.
        setup: the active setup; None if the request was refused earlier.
        state_age: the age in seconds of the state that changes were compared with.
        client: the address that the request came from, with its port.
        traceparent: the header of that name (W3C Trace Context); empty without one.
        size: bytes of the request and the response together.
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
    setup: EvaluationSetup | None = None
    state_age: float | None = None
    client: str = ""
    traceparent: str = ""
    size: int = 0


@dataclass(slots=True)
class Service:
    """The parts of a server.

    Attributes:
        state: the state that changes are compared with; None if each request includes its own.
        tokens: the tokens and their scopes; None if callers do not authenticate.
        certificates: the TLS certificates; None for plain HTTP.
        reports: the audit history to serve; None for no history.
        log, metrics: are notified of every response; without metrics there is no route for them.
        allowed: changes that count as part of the state.
        leaving: report not ready because the server is about to end; it responds until the queue is closed.
    """

    options: ServerOptions
    setup: Watched[EvaluationSetup]
    state: Watched[SnapshotState] | None = None
    tokens: Watched[Tokens] | None = None
    certificates: Certificates | None = None
    log: DecisionLog | None = None
    metrics: ServerMetrics | None = None
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
        """Become the worker of this number, counted from 0."""
        if self.metrics is not None:
            self.metrics.become(worker)

    def start(self) -> None:
        """Start the decision log."""
        if self.log is not None:
            self.log.start()

    def watch(self) -> None:
        """Start to watch the input files."""
        if (state := self.state) is not None:
            self.setup.then = state.request_reload  # other policies may apply to other kinds of documents
        for each in self.watched():
            each.start()

    def reload(self) -> None:
        """Schedule everything to be read again, as if it had changed."""
        for each in self.watched():
            each.request_reload()

    def stop(self) -> None:
        """Stop watching, and close the log."""
        for each in self.watched():
            each.stop()
        if self.log is not None:
            self.log.close()
        if self.reports is not None:
            self.reports.close()

    def notify(self, answered: Answered) -> None:
        """Notify the log and the metrics of a response; an error there does not change the response."""
        for listener in (self.log, self.metrics):
            if listener is None:
                continue
            try:
                listener.answered(answered)
            except Exception:
                _log.exception("request %s: the result could not be logged", answered.request_id)

    def unready(self) -> list[str]:
        """Return why the server is not ready; empty if it is."""
        reasons = ["the server is about to end"] if self.leaving or self.queue.closed else []
        if self.queue.overdue >= self.queue.threads:
            reasons.append("every thread is busy with an abandoned request")
        if self.state is not None:
            try:
                require_fresh(self.state.current, get_time(), self.options.max_snapshot_age)
            except RequestRefusedError as error:
                reasons.append(error.message)
        if self.options.unready_on_fault:
            reasons += [f"an earlier version is active: {fault}" for fault in self.faults()]
        return reasons

    def caller(self, authorization: str, subject: str, scope: TokenScope) -> str:
        """Return the caller: certificate subject and token name; empty if callers do not authenticate.

        Args:
            authorization: the `Authorization` header; empty without one.
            subject: the subject of the client certificate; empty without one.
            scope: the requested scope.

        Raises:
            RefusedError: there is no certificate (403), or no token with this scope (401, 403).
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

    def choose_state(self, given: SnapshotState | None, at: datetime) -> tuple[SnapshotState, float]:
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

    def fresh(self, state: SnapshotState | None, at: datetime) -> tuple[SnapshotState, float]:
        """Return the state to evaluate changes against, and its age in seconds.

        Raises:
            RefusedError: there is none, or it is too old.
        """
        if state is None:
            remedy = "send `state`, or start the server with `--snapshot`"
            raise RequestRefusedError(
                HTTPStatus.UNPROCESSABLE_ENTITY, "no state to evaluate changes against", remedy=remedy
            )
        return state, require_fresh(state, at, self.options.max_snapshot_age)

    def decided(
        self,
        setup: EvaluationSetup,
        state: SnapshotState,
        changes: Sequence[Change],
        at: datetime,
        blame: Blame,
        before: Sequence[Change] = (),
        *,
        is_dry_run: bool = False,
        with_standing: bool = False,
    ) -> Decision:
        """Decide on changes of the server's own state, of which the changes that were allowed are a part.

        Args:
            setup: the active setup.
            state: the state of the server.
            changes: the requested changes; those that are allowed and change the state are part of it until it is
                newer than they are.
            at: the time of the request.
            blame: as for `decide`.
            before: changes that have been made of the state already.
            is_dry_run: nothing is made, so that nothing is kept.
            with_standing: as for `decide`.

        Raises:
            PolicyengError: as `policyeng.admit`.
        """
        while True:
            seen = self.allowed.entries
            remembered = counting(seen, state.since, changes)
            decision = decide(setup, state, changes, at, blame, before, remembered, with_standing=with_standing)
            if not decision.allowed or is_dry_run:
                return decision
            effective = list_effective(
                setup.bundle,
                state.snapshot,
                changes,
                before=before,
                remembered=remembered,
                parameters=setup.parameters,
            )
            is_put_again = len(remembered) < len(counting(seen, state.since, ()))
            if not (effective or is_put_again):
                return decision
            if self.allowed.add(changes if is_put_again else effective, at, state.since, seen):
                return decision
            # Another change was allowed meanwhile, and the two together may be one too many.

    def watched(self) -> Iterator[Watched[object]]:
        """Return the values that are reloaded when their files change."""
        parts = (self.setup, self.state, self.tokens, self.certificates)
        yield from (each for each in parts if each is not None)


def get_time() -> datetime:
    """Return the time of evaluations, to the second."""
    return datetime.now(UTC).replace(microsecond=0)


def decide(
    setup: EvaluationSetup,
    state: SnapshotState,
    change: Changes,
    at: datetime,
    blame: Blame,
    before: Sequence[Change] = (),
    remembered: Sequence[Change] = (),
    *,
    with_standing: bool = False,
) -> Decision:
    """Decide on a change with the active setup; see `policyeng.admission.admit`.

    `blame` applies if the settings do not set it. With `with_standing`, earlier failures are listed, too.

    Raises:
        PolicyengError: as `policyeng.admit`.
    """
    decision = admit(
        setup.bundle,
        state.snapshot,
        change,
        setup.admission_options(at, blame=blame, standing=with_standing),
        before=before,
        remembered=remembered,
    )
    return decision.model_copy(update={"settings": setup.applied})
