"""Concurrent workers for tasks that create further tasks.

They are daemons, unlike those of `concurrent.futures`: an interrupted command does not wait for responses.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from queue import Empty, SimpleQueue

#: A task; what it returns is done next.
Task = Callable[[], "Iterable[Task]"]
#: How often the caller looks whether it was interrupted, in seconds; some systems do not end a wait for that.
_LOOK = 0.2


class WorkerPool:
    """A number of workers."""

    def __init__(self, size: int, stopped: threading.Event) -> None:
        """Use `size` workers, and set `stopped` to stop the tasks."""
        self._size = size
        self._stopped = stopped

    def do(self, tasks: Iterable[Task], progress: Callable[[int, int], None] | None = None) -> None:
        """Run all tasks and their further tasks. The first error is raised, and no further tasks are started.

        Args:
            tasks: the first tasks; they can finish in any order.
            progress: called with the numbers of finished and known tasks.
        """
        waiting: SimpleQueue[Task | None] = SimpleQueue()
        done: SimpleQueue[list[Task] | BaseException] = SimpleQueue()
        known = finished = 0
        for task in tasks:
            waiting.put(task)
            known += 1
        workers = [threading.Thread(target=self._work, args=(waiting, done), daemon=True) for _ in range(self._size)]
        for worker in workers:
            worker.start()
        try:
            while finished < known:
                further = _raise_or_continue(self._next(done))
                finished += 1
                for task in further:
                    waiting.put(task)
                known += len(further)
                if progress is not None:
                    progress(finished, known)
        except BaseException:
            self._stopped.set()
            raise
        finally:
            for _ in workers:
                waiting.put(None)

    def _next(self, done: SimpleQueue[list[Task] | BaseException]) -> list[Task] | BaseException:
        while True:
            try:
                return done.get(timeout=_LOOK)
            except Empty:
                continue

    def _work(self, waiting: SimpleQueue[Task | None], done: SimpleQueue[list[Task] | BaseException]) -> None:
        while (task := waiting.get()) is not None and not self._stopped.is_set():
            try:
                done.put(list(task()))
            except BaseException as error:  # it is raised where the crew was called
                done.put(error)


def _raise_or_continue(outcome: list[Task] | BaseException) -> list[Task]:
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome
