"""A bounded number of requests at work and waiting; what goes beyond is refused, and nothing grows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import TypeVar

from policyeng.server.problems import too_busy

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
            raise too_busy("the server is about to end")
        if self.taken >= self.places:
            raise too_busy("too many requests at a time", status=HTTPStatus.TOO_MANY_REQUESTS)

    async def run(self, work: Callable[[], _T], until: float) -> _T:
        """What the work returns or raises.

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
            raise too_busy("the request waited for its turn until its time was over") from None
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
            raise too_busy("the request could not be answered in its time")
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
