"""The deadline of evaluations: what takes too long is ended, what ends in time is left alone, in every thread."""

from __future__ import annotations

import multiprocessing
import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from policyeng import evaluate
from policyeng.bundle import load_bundle
from policyeng.engines import embedded, watchdog
from policyeng.engines.request import MOST_OVERRUNS
from policyeng.engines.watchdog import DeadlineExceededError, within_deadline
from policyeng.models import Finding
from tests.bundles import deny_when, rego, snapshot, workspace, write
from tests.effort import effort
from tests.test_engines_python import AS_OF, python

BUSY = "xs := numbers.range(1, 1000); some i in xs; some j in xs; some k in xs; i + j + k < 0"
#: In builtins that are written in Python, in few steps.
BUILTIN = (
    "text := json.marshal(numbers.range(1, 30000)); some i in numbers.range(1, 4000); not json.is_valid(text); i > 0"
)


def spin() -> None:
    """Never end."""
    while True:
        pass


def spend(seconds: float) -> float:
    """Use CPU time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
    return end


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shorter deadline."""
    monkeypatch.setattr(watchdog, "LIMIT", 0.1)
    monkeypatch.setattr(watchdog, "_TICK", 0.01)


def test_what_takes_too_long_is_ended_where_it_is() -> None:
    """Within the limit of CPU time and a tick or two; the error has the place."""
    began = time.thread_time()
    with pytest.raises(DeadlineExceededError, match="the evaluation takes more than 1 s; change the policy") as raised:
        within_deadline(globals(), spin)
    assert time.thread_time() - began < 1.5
    assert raised.value.file == __file__
    assert raised.value.line in range(spin.__code__.co_firstlineno, spin.__code__.co_firstlineno + 4)


@pytest.mark.slow
def test_what_takes_too_much_memory_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it has much more than the limit; what takes less is left alone."""
    limit = watchdog.MEMORY_LIMIT
    monkeypatch.setattr(watchdog, "LIMIT", 60.0)  # a slow machine needs more than a second for so many pages

    def hoard(size: int) -> int:
        chunks: list[bytes] = []
        while len(chunks) * 100_000 < size:
            chunks.append(b"x" * 100_000)
            time.sleep(0.0001)
        return len(chunks)

    if not watchdog._PAGE:
        pytest.skip("this platform does not show the memory of a process")
    assert within_deadline(globals(), hoard, limit // 2) == limit // 200_000
    with pytest.raises(DeadlineExceededError, match=r"the evaluation takes more than [0-9]{3,} MB; change the policy"):
        within_deadline(globals(), hoard, 20 * limit)


@pytest.mark.usefixtures("quick")
def test_what_catches_everything_is_ended_again() -> None:
    """Whatever it returns or raises then is not its outcome."""
    caught: list[BaseException] = []

    def stubborn(*, fails: bool) -> int:
        while len(caught) % 4 < 3:
            try:
                spin()
            except BaseException as error:
                caught.append(error)
        caught.append(ValueError())
        if fails:
            raise caught[-1]
        return 1

    for fails in (False, True):
        with pytest.raises(DeadlineExceededError):
            within_deadline(globals(), lambda fails=fails: stubborn(fails=fails))
    assert len(caught) == 8


def test_nothing_is_raised_after_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """In several threads, with thousands of evaluations that end around the deadline."""
    monkeypatch.setattr(watchdog, "LIMIT", 0.0)
    monkeypatch.setattr(watchdog, "_TICK", 0.0)
    ended, exceeded, wrong = [0], [0], list[BaseException]()

    def work(seed: int) -> None:
        chance = random.Random(seed)  # noqa: S311  # nothing secret
        for _ in range(effort(500, 20_000)):
            try:
                try:
                    within_deadline(globals(), spend, chance.uniform(0, 0.0006))
                    ended[0] += 1
                except DeadlineExceededError:
                    exceeded[0] += 1
                for _ in range(20):
                    within_deadline({}, int)
            except DeadlineExceededError:
                exceeded[0] += 1
            except BaseException as error:
                wrong.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(0.0001)
    try:
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []
    assert ended[0] > 10
    assert exceeded[0] > 10


def _ends_in_a_child() -> None:
    with pytest.raises(DeadlineExceededError):
        within_deadline(globals(), spin)


@pytest.mark.usefixtures("quick")
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="the platform does not fork")
def test_a_forked_process_has_a_watchdog_of_its_own() -> None:
    """Threads are not inherited."""
    assert within_deadline({}, int) == 0
    process = multiprocessing.get_context("fork").Process(target=_ends_in_a_child)
    process.start()
    process.join(30)
    assert process.exitcode == 0


def findings(folder: Path, files: dict[str, str], count: int = 1) -> list[Finding]:
    """The findings on some workspaces."""
    given = snapshot(*(workspace(f"w{number}") for number in range(count)))
    return list(evaluate(load_bundle(write(folder, files)), given, as_of=AS_OF).findings)


SLOW = {
    "python": ("p/p.py", python("while True: pass\nyield")),
    "python that continues": ("p/p.py", python("while True:\n    try: int('x')\n    except Exception: pass\nyield")),
    "generator of nothing": ("p/p.py", python("for _ in iter(int, 1): pass\nyield")),
    "steps of rego": ("area/a/a.rego", rego("a", deny_when(BUSY))),
    "builtins of rego": ("area/a/a.rego", rego("a", deny_when(BUILTIN))),
}


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", SLOW)
def test_a_slow_policy_is_switched_off(tmp_path: Path, name: str) -> None:
    """Three errors name the limit, all others that it is off; loaded again, it is evaluated again."""
    path, text = SLOW[name]
    other = rego("b", deny_when("true"), identity="T-B-1")

    found = findings(tmp_path, {path: text, "area/b/b.rego": other}, 5)

    errors = [str(finding.unknowns) for finding in found if finding.policy == "T-A-1"]
    assert [finding.outcome.value for finding in found if finding.policy == "T-B-1"] == ["fail"] * 5
    assert len(errors) == 5
    assert all("takes more than" in error and path in error for error in errors[:MOST_OVERRUNS])
    assert all("switched off until the bundle is loaded again" in error for error in errors[MOST_OVERRUNS:])
    assert "takes more than" in str(findings(tmp_path, {})[0].unknowns)


def test_too_many_steps_switch_a_policy_off_and_values_too_large_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is too large for one resource is found at once, and costs the others nothing."""
    monkeypatch.setattr(embedded, "LIMITS", embedded.LIMITS._replace(steps=20_000))
    large = rego("b", deny_when("count(numbers.range(1, 1000000000)) > 0"), identity="T-B-1")

    found = findings(tmp_path, {"area/a/a.rego": rego("a", deny_when(BUSY)), "area/b/b.rego": large}, 5)

    unknowns = [str(finding.unknowns) for finding in found]
    assert sum("more than 20,000 steps" in error for error in unknowns) == MOST_OVERRUNS
    assert sum("switched off" in error for error in unknowns) == 2
    assert sum("too large" in error for error in unknowns) == 5


@pytest.mark.slow
def test_threads_evaluate_apart(tmp_path: Path) -> None:
    """Eight threads with different bundles and inputs find what one finds, while one of them exceeds its limit."""
    body = deny_when("count([i | some i in numbers.range(1, 300); i > 0]) > 0; input.resource.properties.n == NUMBER")
    bundles = [
        load_bundle(write(tmp_path / str(number), {"area/a/a.rego": rego("a", body.replace("NUMBER", str(number)))}))
        for number in range(7)
    ]
    bundles.append(load_bundle(write(tmp_path / "slow", {"area/a/a.rego": rego("a", deny_when(BUSY))})))
    inputs = [snapshot(*(workspace(f"w{at}", n=(at + number) % 9) for at in range(40))) for number in range(8)]

    def outcomes(number: int) -> list[str]:
        return [found.outcome.value for found in evaluate(bundles[number], inputs[number], as_of=AS_OF).findings]

    expected = [outcomes(number) for number in range(7)]
    with ThreadPoolExecutor(8) as pool:
        *found, slow = pool.map(outcomes, range(8))
        again = list(pool.map(outcomes, [*range(7)] * 4))
    assert found == expected
    assert again == expected * 4
    assert slow == ["error"] * 40
    assert all({"pass", "fail"} == set(each) for each in expected)
