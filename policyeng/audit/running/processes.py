"""Judge parts in several processes, in their order and never many ahead of what is kept."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from functools import cached_property

from policyeng.audit.collecting.parts import Collected, Source
from policyeng.audit.running.judging import JudgedPart, Resumed, RunOptions, read_and_judged
from policyeng.bundle import Bundle
from policyeng.bundle.carrying import unpacked
from policyeng.frozen import frozen
from policyeng.processes import Processes, Task, processes

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
    if jobs == 1:
        for source in sources:
            yield source if isinstance(source, JudgedPart) else read_and_judged(source, bundle, options)
        return
    waiting: deque[Task[JudgedPart] | JudgedPart] = deque()
    # New processes and no forks: this one may have threads, such as those of a schedule.
    with processes(_Judging(policies, options), jobs, ahead=_AHEAD, is_sent=True) as spread:
        for source in sources:
            waiting.append(source if isinstance(source, JudgedPart) else spread.ask(_Judging.judge, source))
            if len(waiting) > _AHEAD * jobs:
                yield _judged(spread, waiting.popleft())
        while waiting:
            yield _judged(spread, waiting.popleft())


@frozen
class _Judging:
    """What a process judges with, from its beginning on."""

    policies: bytes
    options: RunOptions

    @cached_property
    def bundle(self) -> Bundle:
        return unpacked(self.policies)

    def judge(self, source: Source | Collected | Resumed) -> JudgedPart:
        return read_and_judged(source, self.bundle, self.options)


def _judged(spread: Processes[_Judging], part: Task[JudgedPart] | JudgedPart) -> JudgedPart:
    return part if isinstance(part, JudgedPart) else spread.answer(part)
