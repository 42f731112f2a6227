"""What workers share: values, a lock that a killed worker releases, and numbers that outlive it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from policyeng.server.metrics import Numbers
from policyeng.server.service import Shared, SharedLock


def forked(work: Callable[[], object]) -> int:
    """A process that does some work, and ends."""
    if process := os.fork():
        return process
    try:
        work()
    finally:
        os._exit(0)


def ended(*processes: int) -> list[int]:
    """Return the exit codes of processes, less than zero for a signal."""
    return [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in processes]


def test_nothing_is_lost_of_what_processes_add_at_the_same_time() -> None:
    """Each replaces what the others left; the value stays the same object for as long as no one does."""
    added: Shared[tuple[int, ...]] = Shared(())

    def add(name: int) -> Callable[[], None]:
        def adding() -> None:
            for _ in range(200):
                added.replace(lambda value: (*value, name))

        return adding

    ended(*(forked(add(name)) for name in range(3)))

    assert sorted(added.value) == [0] * 200 + [1] * 200 + [2] * 200
    assert added.value is added.value
    assert added.replace(lambda value: value) is added.value


def test_a_value_may_grow_and_shrink() -> None:
    """Each is read as it was written."""
    text = Shared("")
    for length in (1, 5000, 3, 70_000, 0, 20_000):
        ended(forked(lambda length=length: text.replace(lambda _: "x" * length)))  # type: ignore[misc]
        assert text.value == "x" * length


def test_a_killed_worker_leaves_the_earlier_value_and_no_lock() -> None:
    """The next one learns that something may be unfinished, once."""
    value, lock = Shared("before"), SharedLock()

    def replace_and_die() -> None:
        def die(_: str) -> str:
            os.kill(os.getpid(), signal.SIGKILL)
            return "after"

        value.replace(die)

    def die_with_the_lock() -> None:
        with lock:
            os.kill(os.getpid(), signal.SIGKILL)

    assert ended(forked(replace_and_die), forked(die_with_the_lock)) == [-signal.SIGKILL] * 2
    assert value.replace(lambda before: before + "!") == "before!"
    with lock as was_killed:
        assert was_killed
    with lock as was_killed:
        assert not was_killed


def test_numbers_of_all_workers_are_summed_and_outlive_them() -> None:
    """One that takes the place of another counts on where that ended."""
    numbers = Numbers(2)

    def count(worker: int, ends: bool) -> Callable[[], None]:
        def counting() -> None:
            numbers.become(worker)
            numbers.add("seen", "a")
            numbers.add(f"of {worker}", amount=0.5)
            numbers.put("now", value=worker)
            if not ends:
                os.kill(os.getpid(), signal.SIGKILL)

        return counting

    for worker, ends in ((0, False), (0, True), (1, True), (1, False), (1, True)):
        ended(forked(count(worker, ends)))

    assert numbers.total() == {("seen", "a"): 5, ("of 0",): 1, ("of 1",): 1.5, ("now",): 1}
