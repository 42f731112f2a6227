"""Tasks are done in processes, in their order; one that ends before its time loses what it was at and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from policyeng import processes as module
from policyeng.errors import EngineError
from policyeng.processes import Lost, Processes, Task, processes, processors

#: More than a pipe can buffer.
LARGE = 1 << 20


class Doubling:
    """A worker that cannot be pickled, since it has a function of its own."""

    def __init__(self) -> None:
        self.double: Callable[[int], int] = lambda number: 2 * number


def doubled(worker: Doubling, number: int) -> int:
    """Take longer for the first ones, so that later ones are done before."""
    time.sleep(max(0, 3 - number) / 100)
    return worker.double(number)


def whose(_: object) -> int:
    """Return the process."""
    return os.getpid()


def echoed(_: object, text: str) -> str:
    """Return the argument."""
    return text


def ended(_: object, how: str) -> str:
    """End the process, or return the argument."""
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "exit":
        os._exit(7)
    if how == "memory":
        raise MemoryError
    return how


def raised(_: object, what: str) -> None:
    """Raise an error of ours, or one that cannot be pickled."""
    if what == "ours":
        raise EngineError("it does not compile", place=("a.rego", "3"), remedy="fix it")
    error = ValueError("odd")
    error.held = lambda: None  # type: ignore[attr-defined]  # what pickle refuses
    raise error


def slept(_: object, seconds: float) -> None:
    """Wait."""
    time.sleep(seconds)


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("ahead", [1, 3])
def test_results_come_in_the_order_of_the_tasks(count: int, ahead: int) -> None:
    """Whichever process is done first; a forked one has the worker without its being pickled."""
    with processes(Doubling(), count, ahead=ahead) as spread:
        assert list(spread.each(doubled, [(number,) for number in range(9)])) == [2 * number for number in range(9)]
        assert list(spread.each(doubled, [])) == []


def test_each_process_does_some() -> None:
    """None of them is this one."""
    with processes(None, 3) as spread:
        done = {*spread.each(whose, [()] * 30)}
    assert os.getpid() not in done
    assert len(done) == 3


def test_a_new_process_is_sent_the_worker() -> None:
    """It shares nothing with this one, as a process with threads needs."""
    with processes("worker", 1, is_sent=True) as spread:
        assert list(spread.each(echoed, [("a",), ("b",)])) == ["a", "b"]


def test_large_tasks_and_results_do_not_block() -> None:
    """Each side has more to send than a pipe can buffer, while the other has, too."""
    text = "x" * LARGE
    with processes(None, 2, ahead=4) as spread:
        assert all(result == text for result in spread.each(echoed, [(text,)] * 12))


@pytest.mark.parametrize(
    ("how", "message"),
    [("killed", "was ended by SIGKILL"), ("exit", "ended with 7"), ("memory", "ran out of memory")],
)
def test_a_process_that_ends_loses_the_task_that_it_was_at(how: str, message: str) -> None:
    """What it had been given besides is done by others."""
    words = ["a", "b", how, "c", "d", "e", "f"]
    with processes(None, 2, ahead=3) as spread:
        tasks: list[Task[object]] = [spread.submit(ended, word) for word in words]
        found = [spread.outcome(task) for task in tasks]
    assert found == [Lost(message) if word == how else word for word in words]


def test_no_process_is_left() -> None:
    """What no process can do any more is lost, too, and not waited for."""
    with processes(None, 2, ahead=2) as spread:
        tasks: list[Task[object]] = [spread.submit(ended, word) for word in ["killed", "killed", "a", "b"]]
        found = [spread.outcome(task) for task in tasks]
        assert found == [Lost("was ended by SIGKILL")] * 4
        assert spread.outcome(spread.submit(ended, "c")) == Lost("was ended by SIGKILL")


def test_a_lost_result_is_an_error_with_a_remedy() -> None:
    """For those that need all of them."""
    with processes(None, 1) as spread, pytest.raises(EngineError, match=r"was ended by SIGKILL.*`--jobs`"):
        list(spread.each(ended, [("killed",)]))


def test_what_a_task_raises_is_raised_here() -> None:
    """With its place and remedy; what cannot be sent in its words."""
    with processes(None, 1) as spread:
        with pytest.raises(EngineError) as ours:
            list(spread.each(raised, [("ours",)]))
        with pytest.raises(RuntimeError, match="ValueError: odd"):
            list(spread.each(raised, [("odd",)]))
        assert list(spread.each(echoed, [("on",)])) == ["on"]
    assert (ours.value.place, ours.value.remedy) == (("a.rego", "3"), "fix it")


def test_leaving_does_not_wait_for_tasks() -> None:
    """As after an error or an interrupt."""
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        _interrupted()
    assert time.monotonic() - began < 60


def _interrupted() -> None:
    with processes(None, 2) as spread:
        spread.submit(slept, 600.0)
        raise KeyboardInterrupt


def test_a_platform_without_forks_does_the_tasks_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other."""
    monkeypatch.delattr(os, "fork")
    with processes(Doubling(), 2) as spread:
        assert list(spread.each(doubled, [(3,), (4,)])) == [6, 8]
        assert list(spread.each(whose, [()])) == [os.getpid()]


def test_a_process_that_cannot_be_started_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a container allows no more."""

    def refuse() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refuse)
    with pytest.raises(EngineError, match="2 processes cannot be started: resource temporarily unavailable"), _two():
        pass


def _two() -> AbstractContextManager[Processes[None]]:
    return processes(None, 2)


_PARENT = textwrap.dedent(
    """
    import os, signal, sys, time
    from policyeng.processes import processes
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what is started in the background ignores it
    def sleep(_, folder):
        open(f"{folder}/{os.getpid()}", "w").close()
        time.sleep(600)
    with processes(None, 2) as spread:
        list(spread.each(sleep, [(sys.argv[1],)] * 2))
    """
)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_all_processes(number: int, tmp_path: Path) -> None:
    """The whole group hears an interrupt, and only the first process speaks."""
    process = subprocess.Popen(
        [sys.executable, "-c", _PARENT, tmp_path], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    _wait_until(lambda: len(list(tmp_path.iterdir())) == 2)
    os.killpg(process.pid, number)
    _, err = process.communicate(timeout=60)

    assert err.count("Traceback") == (number == signal.SIGINT)
    _wait_until(lambda: not any(Path(f"/proc/{path.name}").exists() for path in tmp_path.iterdir()))


@pytest.mark.slow
def test_idle_processes_end_with_the_one_that_started_them(tmp_path: Path) -> None:
    """Even where it is killed, so that it cannot notify them."""
    script = _PARENT.replace("time.sleep(600)", "time.sleep(0)").replace(
        "* 2))", "* 2)); open(sys.argv[1] + '/done', 'w').close(); time.sleep(600)"
    )
    process = subprocess.Popen([sys.executable, "-c", script, tmp_path])
    _wait_until(lambda: (tmp_path / "done").exists())
    process.kill()
    process.wait()
    (tmp_path / "done").unlink()

    _wait_until(lambda: not any(Path(f"/proc/{path.name}").exists() for path in tmp_path.iterdir()))


def _wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_processors_are_those_that_may_be_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Those that the process may run on, and no more than the quota of a container has it use."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 2, 5, 7})
    quota = tmp_path / "cpu.max"
    monkeypatch.setattr(module, "_QUOTA", quota)
    found = [processors()]
    for text in ("max 100000\n", "250000 100000\n", "50000 100000\n", "900000 100000\n"):
        quota.write_text(text, encoding="ascii")
        found.append(processors())

    assert found == [4, 4, 2, 1, 4]
