"""Judge parts in several processes, in their order and never many ahead of what is kept."""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from threading import Thread

from policyeng.audit.collecting.parts import Collected, Source
from policyeng.audit.running.judging import JudgedPart, Resumed, RunOptions, read_and_judged
from policyeng.bundle import Bundle
from policyeng.bundle.carrying import unpacked
from policyeng.errors import EngineError

#: So many parts are asked for ahead, for each process: work for as long as the store takes to write a batch.
_AHEAD = 8


def judged_parts(
    sources: Iterable[Source | Collected | Resumed | JudgedPart],
    bundle: Bundle,
    policies: bytes,
    options: RunOptions,
    jobs: int,
) -> Iterator[JudgedPart]:
    """Read and judge parts, in their order.

    Args:
        sources: where they are read, or parts that were read or judged already.
        bundle: the policies.
        policies: the same as they are stored, from which each process reads its own.
        options: what they are judged with besides.
        jobs: how many processes judge; with one, this one does.

    Raises:
        EngineError: the bundle does not compile, the engine does not answer, or a process ended.
    """
    if jobs > 1:
        yield from _spread(sources, policies, options, jobs)
        return
    for source in sources:
        yield source if isinstance(source, JudgedPart) else read_and_judged(source, bundle, options)


def _spread(
    sources: Iterable[Source | Collected | Resumed | JudgedPart], policies: bytes, options: RunOptions, jobs: int
) -> Iterator[JudgedPart]:
    # New processes and no forks: this one may have threads, such as those of a schedule.
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), _begin, (policies, options))
    waiting: deque[Future[JudgedPart] | JudgedPart] = deque()
    try:
        for source in sources:
            waiting.append(source if isinstance(source, JudgedPart) else pool.submit(_judge, source))
            if len(waiting) > _AHEAD * jobs:
                yield _done(waiting.popleft())
        while waiting:
            yield _done(waiting.popleft())
    except BrokenProcessPool:
        remedy = "see that there is memory for all of them, or name fewer with `--jobs`"
        raise EngineError("a process that judges ended before its time", remedy=remedy) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _done(part: Future[JudgedPart] | JudgedPart) -> JudgedPart:
    return part if isinstance(part, JudgedPart) else part.result()


class _Held:
    """What a process judges with, from its beginning on."""

    bundle: Bundle
    options: RunOptions


def _begin(policies: bytes, options: RunOptions) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one hears it, and ends it
    Thread(target=_end_with_parent, daemon=True).start()
    _Held.bundle, _Held.options = unpacked(policies), options


def _end_with_parent() -> None:
    """A process that waits for work does not notice that nobody is left to give it any."""
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _judge(source: Source | Collected | Resumed) -> JudgedPart:
    return read_and_judged(source, _Held.bundle, _Held.options)
