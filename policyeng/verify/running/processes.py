"""Several processes that inherit what they work with, or this one where the platform has no fork."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Generic, TypeVar

from policyeng.errors import EngineError

_Worker = TypeVar("_Worker")
_Answer = TypeVar("_Answer")

#: What a process works with: set before it is forked off, so that nothing of it has to be pickled.
_inherited: list[object] = []


class Processes(Generic[_Worker]):
    """Has tasks done, each by whichever process is free; what tasks take and give back is pickled."""

    def __init__(self, worker: _Worker, pool: ProcessPoolExecutor | None) -> None:
        self._worker = worker
        self._pool = pool

    def each(self, task: Callable[..., _Answer], arguments: Sequence[tuple[object, ...]]) -> Iterator[_Answer]:
        """What a task gives for each tuple of arguments after the worker, in their order.

        Raises:
            EngineError: a process ended before it was done.
        """
        if self._pool is None:
            yield from (task(self._worker, *given) for given in arguments)
            return
        asked: list[Future[_Answer]] = [self._pool.submit(_done, task, given) for given in arguments]
        try:
            for future in asked:
                yield future.result()
        except BrokenProcessPool as error:
            remedy = "memory may have run out: try `--jobs 1`, or fewer policies with `--select`"
            raise EngineError("a process that tried examples was ended", remedy=remedy) from error


@contextmanager
def processes(worker: _Worker, jobs: int) -> Iterator[Processes[_Worker]]:
    """So many processes with a worker, which they inherit.

    Args:
        worker: what the tasks work with; this process must not have threads of its own at work.
        jobs: 0 is one for each processor.
    """
    if "fork" not in multiprocessing.get_all_start_methods():
        yield Processes(worker, None)
        return
    count = jobs or os.cpu_count() or 1
    context = multiprocessing.get_context("fork")
    pool = ProcessPoolExecutor(count, mp_context=context, initializer=_inherit, initargs=(worker,))
    try:
        yield Processes(worker, pool)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _inherit(worker: object) -> None:
    _inherited[:] = [worker]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asked hears it, and ends this one


def _done(task: Callable[..., _Answer], given: tuple[object, ...]) -> _Answer:
    return task(_inherited[0], *given)
