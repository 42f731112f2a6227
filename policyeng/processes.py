"""Divide tasks among processes, each of which has what the tasks work with from its beginning on.

A process that ends before its time loses the task that it was at, and no other. Nothing that is loaded here takes long:
what processes need is imported when there are any.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from msgspec import Struct

from policyeng.errors import EngineError, UsageError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

_Worker = TypeVar("_Worker")
_Result = TypeVar("_Result")

#: What the quota of a container is, in version 2 of control groups: microseconds of CPU time, and of the clock.
_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_NO_RESULT: Any = object()
#: What can be done about a process that ended before its time.
REMEDY = "see that there is memory for all processes, or name fewer with `--jobs`"
#: What a process ends with when it runs out of memory.
_OUT_OF_MEMORY = 99


def processors() -> int:
    """Return how many processors this process may use: those that it may run on, within the quota of its container."""
    known = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):  # no such file, or `max`
        quota, period = map(int, _QUOTA.read_text("ascii").split())
        known = min(known, max(1, quota // period))
    return known


class Lost(Struct, frozen=True):
    """What a task gives whose process ended before its time.

    Attributes:
        how: the process ended, to follow "the process".
    """

    how: str


class Task(Struct, Generic[_Result]):
    """A task that was submitted.

    Attributes:
        function: called with the worker and the arguments.
        result: what it gave, how its process ended, or what it raised, once that is known.
    """

    function: Callable[..., _Result]
    arguments: Sequence[object]
    result: _Result | Lost | Exception = _NO_RESULT


class _Process(Struct):
    """A process with the tasks that it has been given, the one that it is at first."""

    process: BaseProcess
    connection: Connection
    given: deque[Task[Any]]


class Processes(Generic[_Worker]):
    """Does tasks, each in whichever process is free; what tasks take and give back is pickled.

    Args:
        worker: what the tasks work with.
        started: the processes; None has this one do the tasks.
        ahead: how many tasks a process is given at a time, so that it need not wait for this one.
    """

    def __init__(self, worker: _Worker, started: list[_Process] | None, ahead: int) -> None:
        self._worker = worker
        self._is_here = started is None
        self._alive = [] if started is None else started
        self._ahead = ahead
        self._waiting: deque[Task[Any]] = deque()
        self._ended = ""

    def submit(self, function: Callable[..., _Result], *arguments: object) -> Task[_Result]:
        """Have a task done: a function of a module is called with the worker and arguments."""
        task = Task(function, arguments)
        if not self._is_here:
            self._waiting.append(task)
            self._give()
        return task

    def result(self, task: Task[_Result]) -> _Result:
        """Wait for what a task gives, and raise what it raises.

        Raises:
            EngineError: its process ended before its time.
        """
        found = self.outcome(task)
        if isinstance(found, Lost):
            raise EngineError(f"a process {found.how} before its time", remedy=REMEDY)
        return found

    def outcome(self, task: Task[_Result]) -> _Result | Lost:
        """Wait for what a task gives, or how its process ended, and raise what it raises."""
        if self._is_here:
            return task.function(self._worker, *task.arguments)
        while task.result is _NO_RESULT:
            self._receive()
        if isinstance(task.result, Exception):
            raise task.result
        return task.result

    def each(self, function: Callable[..., _Result], arguments: Iterable[Sequence[object]]) -> Iterator[_Result]:
        """Yield what a task gives for each list of arguments, in their order; see `result`."""
        waiting = deque([self.submit(function, *given) for given in arguments])
        while waiting:
            yield self.result(waiting.popleft())

    def _give(self) -> None:
        """Give tasks to processes that have few; those that remain are lost when all have ended."""
        while self._waiting and self._alive:
            least = min(self._alive, key=lambda one: len(one.given))
            if len(least.given) == self._ahead:
                return
            task = self._waiting[0]
            try:
                least.connection.send((task.function, task.arguments))
            except OSError:
                self._remove(least)
                continue
            least.given.append(self._waiting.popleft())
        while self._waiting:
            self._waiting.popleft().result = Lost(self._ended)

    def _receive(self) -> None:
        """Receive results as soon as there are any."""
        from multiprocessing.connection import wait

        by_connection = {one.connection: one for one in self._alive}
        for ready in wait(list(by_connection)):
            one = by_connection[cast("Connection", ready)]
            try:
                result = one.connection.recv()
            except (EOFError, OSError):
                self._remove(one)
            else:
                one.given.popleft().result = result
        self._give()

    def _remove(self, one: _Process) -> None:
        """Remove a process that ended; others do what it had not begun."""
        self._alive.remove(one)
        one.connection.close()
        one.process.join()
        self._ended = _how(one.process.exitcode)
        if one.given:
            one.given.popleft().result = Lost(self._ended)
        self._waiting.extendleft(reversed(one.given))

    def end(self) -> None:
        """End the processes, those that are at a task at once."""
        for one in self._alive:
            one.connection.close()
            if one.given:
                one.process.kill()
        for one in self._alive:
            one.process.join()


def _how(code: int | None) -> str:
    if code == _OUT_OF_MEMORY:
        return "ran out of memory"
    if code is not None and code < 0:
        names = {each.value: each.name for each in signal.Signals}
        return f"was ended by {names.get(-code, f'signal {-code}')}"
    return f"ended with {code}"


def require_posix(what: str, remedy: str) -> None:
    """Require file locks, signals and forks, which Windows lacks.

    Args:
        what: the feature that needs them, for the message.
        remedy: what to use instead.

    Raises:
        UsageError: the platform lacks them.
    """
    from importlib.util import find_spec

    if not hasattr(os, "fork") or find_spec("fcntl") is None:
        raise UsageError(f"{what} requires a POSIX platform such as Linux or macOS", remedy=remedy)


@contextmanager
def processes(worker: _Worker, count: int, *, ahead: int = 1, is_sent: bool = False) -> Iterator[Processes[_Worker]]:
    """Start processes that have a worker.

    Args:
        worker: what the tasks work with.
        count: how many.
        ahead: how many tasks a process is given at a time.
        is_sent: new processes are started and the worker is pickled for them, as a process with threads has to. Others
            are forked. Where the platform lacks either (Windows), this process does the tasks.

    Raises:
        EngineError: a process cannot be started.
    """
    if not hasattr(signal, "pthread_sigmask") or not (is_sent or hasattr(os, "fork")):
        yield Processes(worker, None, ahead)
        return
    started: list[_Process] = []
    found = Processes(worker, started, ahead)
    try:
        _start(worker, count, started, is_sent=is_sent)
        yield found
    finally:
        found.end()


def _start(worker: object, count: int, started: list[_Process], *, is_sent: bool) -> None:
    from multiprocessing import get_context

    context = get_context("spawn" if is_sent else "fork")
    # An interrupt is for this process, which ends the others.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        for _ in range(count):
            ours, theirs = context.Pipe()
            others = () if is_sent else (ours, *(one.connection for one in started))
            process = context.Process(target=_work, args=(theirs, others, worker))  # type: ignore[attr-defined]  # each has it
            process.start()
            theirs.close()
            started.append(_Process(process, ours, deque()))
    except OSError as error:
        what = f"{count} processes cannot be started: {(error.strerror or str(error)).lower()}"
        raise EngineError(what, remedy="name fewer with `--jobs`") from error
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(connection: Connection, others: Sequence[Connection], worker: object) -> None:
    """Do tasks until the process that started this one has no more, or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    for other in others:  # or this process would not notice that the one that started it ended
        other.close()
    gc.freeze()  # or a collection would copy all that this process has with the others
    tasks: SimpleQueue[tuple[Callable[..., object], Sequence[object]] | None] = SimpleQueue()
    # Tasks are taken while this process waits for its result to be taken: otherwise both sides may wait for ever.
    Thread(target=_take, args=(connection, tasks), daemon=True).start()
    with suppress(OSError):
        while (task := tasks.get()) is not None:
            connection.send_bytes(_done(task[0], worker, task[1]))


def _take(connection: Connection, tasks: SimpleQueue[tuple[Callable[..., object], Sequence[object]] | None]) -> None:
    with suppress(EOFError, OSError):
        while True:
            tasks.put(connection.recv())
    tasks.put(None)


def _done(function: Callable[..., object], worker: object, arguments: Sequence[object]) -> bytes:
    """Return what a task gives or raises, pickled."""
    try:
        return pickle.dumps(function(worker, *arguments), pickle.HIGHEST_PROTOCOL)
    except MemoryError:
        os._exit(_OUT_OF_MEMORY)
    except Exception as error:
        from traceback import format_exc

        error.add_note(format_exc())
        try:
            return pickle.dumps(error)
        except Exception:  # an error may refer to anything
            return pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
