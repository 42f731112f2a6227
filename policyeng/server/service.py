"""What the routes use: what is in force, the state, the queue, and who hears of answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from math import ceil
from typing import TYPE_CHECKING, Protocol, TypeVar

from policyeng.admission import Changes, admit
from policyeng.context import EvaluationSetup
from policyeng.errors import PolicyengError
from policyeng.models import Blame, Change, Decision, Evaluation
from policyeng.server.allowed_changes import Allowed, counting
from policyeng.server.file_watcher import Watched
from policyeng.server.options import ServerOptions
from policyeng.server.problems import RequestRefusedError, refuse_busy
from policyeng.server.request_body import Bodies
from policyeng.server.snapshot_state import SnapshotState, require_fresh
from policyeng.server.tls import Certificates
from policyeng.server.tokens import Tokens, TokenScope

if TYPE_CHECKING:  # it needs the libraries of the store, and a server without one does not
    from policyeng.server.history_site import Reports

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
_log = logging.getLogger("policyeng.server")


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
                _log.exception("request %s: what came of it was not heard", answered.request_id)

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
