"""Several processes find what one finds, byte for byte, and lose nothing without a word."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import orjson
import pytest

from policyeng import evaluate
from policyeng.bundle import Bundle, load_bundle
from policyeng.engines import Column, EvaluationRequest, embedded
from policyeng.engines import python as python_engine
from policyeng.errors import BundleError, UsageError
from policyeng.evaluation import EvaluationOptions, evaluate_pairs, partitioning, prepare
from policyeng.models import Evaluation, Outcome, Snapshot
from policyeng.report import FORMATS
from policyeng.sources import load_snapshot, read_inputs
from policyeng.verify.generators.examples import examples_of
from tests.bundles import deny_when, rego, snapshot, workspace, write
from tests.command import policyeng
from tests.conftest import ROOT
from tests.drawn import BUNDLE
from tests.effort import effort
from tests.test_engines_python import python

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
SAMPLES = ROOT / "samples" / "workspaces"


def evaluated(bundle: Bundle, given: Snapshot, jobs: int, **options: object) -> Evaluation:
    """Evaluate in so many processes."""
    chosen = {"as_of": AS_OF, **options}
    return evaluate(bundle, given, jobs=jobs, **chosen)  # type: ignore[arg-type]  # whatever a test chooses


def reports(evaluation: Evaluation) -> dict[str, str]:
    """Return the report in every format."""
    return {name: render(evaluation) for name, render in FORMATS.items()}


def estate_of(count: int) -> Snapshot:
    """A snapshot of so many workspaces."""
    return snapshot(*(workspace(f"w{number:02}", x=number) for number in range(count)))


@pytest.mark.parametrize("jobs", [2, 3])
@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.iterdir()))
def test_the_reports_of_samples_are_the_same(name: str, jobs: int) -> None:
    """In every format, with places in the file; there are policies in Rego and in Python."""
    read = load_snapshot(SAMPLES / name)
    one = evaluated(BUNDLE, read, 1)

    assert {bool(policy.rules) for policy in BUNDLE.policies} == {True, False}
    assert any(finding.location.fields for finding in one.findings) == (one.summary.fail > 0)
    assert reports(evaluated(BUNDLE, read, jobs)) == reports(one)


@pytest.mark.slow
def test_the_reports_of_drawn_estates_are_the_same() -> None:
    """Whatever they contain: fields that cannot be read, lists that were not, approvals, declared workloads."""
    unknown = 0
    for example in islice(examples_of(BUNDLE, 11), effort(5, 200)):
        given = example.snapshot
        options = {"as_of": example.as_of, "parameters": example.parameters, "exemptions": example.exemptions}
        one = evaluated(BUNDLE, given, 1, **options)
        unknown += one.summary.unknown
        assert reports(evaluated(BUNDLE, given, 2, **options)) == reports(one)
    assert unknown


def test_the_reports_of_formats_that_cannot_state_everything_are_the_same() -> None:
    """Such estates have markers, which are put in before there are several processes."""
    read = read_inputs([str(ROOT / "samples" / "formats" / "plan.json")], **BUNDLE.wanted).snapshot
    one = evaluated(BUNDLE, read, 1)

    assert prepare(BUNDLE, read).work(AS_OF).marking is not None
    assert one.summary.unknown
    assert reports(evaluated(BUNDLE, read, 3)) == reports(one)


@pytest.mark.parametrize("jobs", [2, 3])
def test_the_command_prints_the_same_bytes(jobs: int) -> None:
    """With its exit code and what it prints on standard error."""
    words = ("check", str(SAMPLES / "training.json"), "--as-of", "2026-06-01T00:00:00Z", "--format", "json", "--jobs")
    one, more = (policyeng(*words, str(number)) for number in (1, jobs))

    assert (more.stdout, more.stderr, more.returncode) == (one.stdout, one.stderr, one.returncode)
    assert one.returncode == 1


@pytest.mark.parametrize("count", [0, 1, 2])
def test_there_may_be_fewer_workspaces_than_processes(count: int) -> None:
    """Or none at all, which is an error as it is in one."""
    given = estate_of(count)
    one, five = (evaluated(BUNDLE, given, jobs) for jobs in (1, 5))

    assert five == one
    assert (one.exit_code == 2) == (count == 0)


def test_small_estates_are_not_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless it is requested: starting processes takes longer. Large ones are, where there are processors."""
    started: list[int] = []
    monkeypatch.setattr(partitioning, "processors", lambda: 4)

    def start(request: EvaluationRequest, count: int) -> list[Column]:
        started.append(count)
        return [Column(number, (), {}) for number in request.positions]

    monkeypatch.setattr(partitioning, "evaluate_in_processes", start)
    prepared = prepare(BUNDLE, estate_of(20))
    pairs = len(prepared.work(AS_OF).pairs)
    for worth in (pairs, pairs // 2, pairs // 3, pairs // 9):
        for module in (sys.modules["policyeng.evaluation.evaluate"], partitioning):
            monkeypatch.setattr(module, "PAIRS_OF_A_PROCESS", worth)
        evaluate_pairs(prepared, EvaluationOptions(AS_OF, jobs=0))

    assert started == [2, 3, 4]


def test_opa_evaluates_in_one_process() -> None:
    """It is one server; with a request for more, it reports that."""
    with pytest.raises(UsageError, match="the engine `opa` cannot use several processes; leave out `--jobs`"):
        evaluated(BUNDLE, estate_of(1), 2, engine="opa")


def test_a_policy_that_cannot_be_run_ends_the_evaluation(tmp_path: Path) -> None:
    """As it does in one process, in the same words."""
    bundle = load_bundle(write(tmp_path, {"p/p.py": python("yield")}))
    raising = [BundleError("it cannot be run", place=("p.py",))] * 2

    def refuse(*_: object) -> None:
        raise raising[0]

    messages = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(python_engine, "within_deadline", refuse)
        for jobs in (1, 2):
            with pytest.raises(BundleError) as raised:
                evaluated(bundle, estate_of(4), jobs)
            messages.append(str(raised.value))
    assert messages == ["p.py: it cannot be run"] * 2


KILLER = """\
import os, signal
if given.resource["id"].endswith("w05"):
    {how}
yield Denial("m", "/properties/x", actual=given.resource["properties"]["x"], expected=0)
"""
WAYS = {
    "killed": ("os.kill(os.getpid(), signal.SIGKILL)", "was ended by SIGKILL"),
    "over its limit of CPU time": ("os.kill(os.getpid(), signal.SIGXCPU)", "was ended by SIGXCPU"),
    "ended": ("os._exit(3)", "ended with 3"),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_a_process_that_ends_was_at_is_an_error(tmp_path: Path, way: str) -> None:
    """Each finding of its policy names what happened and the remedy; all others are as in one process."""
    how, message = WAYS[way]
    other = rego("b", deny_when("true"), identity="T-B-1")
    files = {"p/p.py": python(KILLER.format(how=how)), "area/b/b.rego": other}
    found = evaluated(load_bundle(write(tmp_path, files)), estate_of(30), 2)
    errors = [finding for finding in found.findings if finding.outcome is Outcome.ERROR]
    lost = {finding.policy for finding in errors}

    assert found.exit_code == 2
    assert len(errors) == 30
    assert len(lost) == 1
    assert {finding.unknowns[0].msg for finding in errors} == {
        f"limit: not evaluated: the process that evaluates it {message}; "
        "see that there is memory for all processes, or name fewer with `--jobs`"
    }
    rest = [finding for finding in found.findings if finding.policy not in lost]
    (tmp_path / "p" / "p.py").write_text(python(KILLER.format(how="pass")), encoding="utf-8")
    whole = evaluated(load_bundle(tmp_path), estate_of(30), 1).findings
    assert rest == [finding for finding in whole if finding.policy not in lost]


def test_all_processes_may_end(tmp_path: Path) -> None:
    """Then everything is an error, and nothing waits."""
    text = python(KILLER.format(how="pass").replace("if ", "os._exit(1)\nif ", 1))
    found = evaluated(load_bundle(write(tmp_path, {"p/p.py": text})), estate_of(30), 2)

    assert (found.summary.error, found.exit_code) == (30, 2)


HEAVY = "input.resource.properties.x < {most}; xs := numbers.range(1, 300); some i in xs; some j in xs; i + j < 0"


@pytest.mark.parametrize("most", [2, 3, 30])
def test_policies_that_exceed_their_limit_are_switched_off_as_in_one(
    tmp_path: Path, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the same resources, in this evaluation and in later ones of the same bundle."""
    monkeypatch.setattr(embedded, "LIMITS", embedded.LIMITS._replace(steps=20_000))
    files = {
        "area/a/a.rego": rego("a", deny_when(HEAVY.format(most=most))),
        "area/b/b.rego": rego("b", deny_when("true"), identity="T-B-1"),
    }
    write(tmp_path, files)
    messages = []
    for jobs in (1, 2, 3):
        bundle = load_bundle(tmp_path)
        messages.append([(evaluated(bundle, estate_of(30), jobs), dict(bundle.overruns)) for _ in range(2)])

    assert messages[1] == messages[0]
    assert messages[2] == messages[0]
    assert [counted for _, counted in messages[0]] == [{"T-A-1": min(most, 3)}, {"T-A-1": 3}]


SLEEPER = """\
import os, time
open(os.environ["STARTED"] + "/" + str(os.getpid()), "w").close()
time.sleep(9)
yield
"""


def test_an_interrupt_ends_all_processes(tmp_path: Path) -> None:
    """With one word of it, and the exit code of an interrupt."""
    write(tmp_path, {"p/p.py": python(SLEEPER), "q/q.py": python(SLEEPER, "T-B-1")})
    started = tmp_path / "started"
    started.mkdir()
    given = {"snapshotVersion": 1, "resources": [workspace(f"w{number}") for number in range(8)]}
    (tmp_path / "snapshot.json").write_bytes(orjson.dumps(given))
    words = ["check", "snapshot.json", "--policy", ".", "--jobs", "2"]
    process = subprocess.Popen(
        [sys.executable, "-m", "policyeng", *words],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # what is started in the background ignores it
        env={**os.environ, "STARTED": str(started), "PYTHONPATH": str(ROOT)},
    )
    end = time.monotonic() + 60
    while len(list(started.iterdir())) < 2:
        assert time.monotonic() < end
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=8)

    assert (process.returncode, out, err) == (130, "", "policyeng: interrupted\n")
    assert not any(Path(f"/proc/{path.name}").exists() for path in started.iterdir())
