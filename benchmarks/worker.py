"""A warm policyeng in a process of its own, so that nothing of the harness weighs on it.

Started with what to do and on what; reads a query per line and responds in JSON: `run`, `verdicts`, `peak`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson

from benchmarks.estates import ROOT
from benchmarks.preparing import AS_OF, Prepared, prepared
from benchmarks.verdicts import Verdicts, of_findings
from policyeng import evaluate, load_bundle, load_snapshot
from policyeng._performance import uncollected
from policyeng.bundle import Bundle
from policyeng.engines import embedded
from policyeng.evaluation.matching import plan
from policyeng.evaluation.prepared_snapshot import estate_of
from policyeng.models import Evaluation
from policyeng.report import json as json_report

Task = Callable[[], object]


def _end_to_end(bundle: Bundle, file: Path, jobs: int) -> Task:
    return lambda: evaluate(bundle, load_snapshot(file), as_of=AS_OF, jobs=jobs)


def _through_opa(bundle: Bundle, file: Path, jobs: int) -> Task:
    del jobs
    return lambda: evaluate(bundle, load_snapshot(file), as_of=AS_OF, engine="opa")


def _engine(bundle: Bundle, file: Path, jobs: int) -> Task:
    del jobs
    made = prepared(bundle, file)
    return lambda: embedded.evaluate_pairs(made.work, made.work.pairs)


def _orjson(bundle: Bundle, file: Path, jobs: int) -> Task:
    del bundle, jobs
    content = file.read_bytes()
    return lambda: orjson.loads(content)


TASKS: dict[str, Callable[[Bundle, Path, int], Task]] = {
    "end to end": _end_to_end,
    "through opa": _through_opa,
    "engine": _engine,
    "orjson": _orjson,
}


@uncollected()
def stages(bundle: Bundle, file: Path) -> dict[str, float]:
    """Seconds of the steps of one evaluation in one process; what is not in a step of its own is `findings`.

    The collector is off, as `evaluate` and `load_snapshot` do themselves.
    """
    marks = [time.perf_counter()]
    snapshot = load_snapshot(file)
    marks.append(time.perf_counter())
    estate = estate_of(snapshot, bundle.facts)
    marks.append(time.perf_counter())
    list(plan(bundle, estate))
    marks.append(time.perf_counter())
    made = prepared(bundle, file)
    begun = time.perf_counter()
    embedded.documents_of(made.work)
    parsed = time.perf_counter()
    embedded.evaluate_pairs(made.work, made.work.pairs)
    done = time.perf_counter()
    evaluation = evaluate(bundle, snapshot, as_of=AS_OF)
    evaluated = time.perf_counter()
    json_report.render(evaluation)
    rendered = time.perf_counter()
    reading, preparing, planning = (after - before for before, after in pairwise(marks))
    parsing, evaluating = parsed - begun, done - parsed - (parsed - begun)
    findings = evaluated - done - preparing - planning - parsing - evaluating
    return {
        "reading and validating the file": reading,
        "sorting, indexing, deriving workloads": preparing,
        "planning the pairs": planning,
        "parsing in the engine": parsing,
        "evaluating the policies": evaluating,
        "findings": max(findings, 0.0),
        "writing the JSON report": rendered - evaluated,
    }


def growth(bundle: Bundle, file: Path, snapshots: int) -> list[float]:
    """MB that are resident after each of many snapshots evaluated in one process."""
    resident = []
    for _ in range(snapshots):
        evaluate(bundle, load_snapshot(file), as_of=AS_OF)
        resident.append(_resident("VmRSS"))
    return resident


def _resident(what: str, process: str = "self") -> float:
    lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what)) / 1024


def resident_of(process: int) -> float:
    """Return the current memory of a process, in MB."""
    return _resident("VmRSS", str(process))


def peak_of(process: int) -> float:
    """Return the peak memory of a process so far, in MB."""
    return _resident("VmHWM", str(process))


def _answers(kind: str, bundle: Bundle, file: Path, jobs: int) -> Iterator[object]:
    task = TASKS[kind](bundle, file, jobs)
    for line in sys.stdin:
        question = line.strip()
        if question == "run":
            started = time.perf_counter()
            kept = task()
            seconds = time.perf_counter() - started
            del kept
            yield seconds
        elif question == "verdicts":
            result = task()
            yield _in_json(of_findings(result.findings)) if isinstance(result, Evaluation) else None
        else:
            yield _resident("VmHWM")


def _in_json(verdicts: Verdicts) -> object:
    return [[*statement, count] for statement, count in verdicts.statements.items()], verdicts.decided


def main(kind: str, ids: str, file: str, number: str) -> None:
    """Serve until standard input ends, or answer once for `stages` and `growth`."""
    whole = load_bundle()
    bundle = whole.only(policy for policy in whole.policies if policy.id in ids.split(","))
    if kind == "growth":
        print(json.dumps(growth(bundle, Path(file), int(number))))
    elif kind == "stages":
        runs = [stages(bundle, Path(file)) for _ in range(int(number) + 1)][1:]
        print(json.dumps(runs))
    else:
        for answer in _answers(kind, bundle, Path(file), int(number)):
            print(json.dumps(answer), flush=True)


def command(kind: str, made: Prepared, number: int) -> Sequence[str]:
    """Return the command that starts a worker."""
    return [sys.executable, "-m", "benchmarks.worker", kind, ",".join(made.ids), str(made.file), str(number)]


def asked_once(kind: str, made: Prepared, number: int) -> Any:
    """Return the response of a worker to `stages` or `growth`."""
    ran = subprocess.run(command(kind, made, number), stdout=subprocess.PIPE, check=True, cwd=ROOT)
    return json.loads(ran.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
