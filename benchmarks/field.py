"""Who competes on a snapshot: everybody warm, and everybody as a whole process."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson

from benchmarks import batch
from benchmarks.opa_server import Batched, PerPair, Server
from benchmarks.preparing import MOMENT, Prepared, whole_bundle
from benchmarks.processes import Launcher, WholeProcess, policyeng_command
from benchmarks.timing import Contestant
from benchmarks.verdicts import Verdicts, of_findings, of_statements
from benchmarks.warm import Warm
from policyeng.models import Evaluation

END_TO_END = "policyeng, bytes to findings"
THROUGH_OPA = "policyeng, --engine opa, bytes to findings"
ENGINE = "policyeng's engine alone"
ORJSON = "orjson, parsing alone"
CHECK = "policyeng check"
OPA_EXEC = "opa exec"
CONFTEST = "conftest test"
#: Pairs of a run of one query per pair; with the snapshot in each query, pairs times resources.
STORED_SAMPLE, CARRIED_SAMPLE = 300, 3_000


@dataclass(frozen=True, slots=True)
class Tools:
    """The binaries of the others, and a folder to work in."""

    opa: Path
    conftest: Path
    folder: Path
    conftest_version: str = ""


def divided(name: str, jobs: int) -> str:
    """Return the name of a contestant in a number of processes."""
    return f"{name}, {jobs} process{'es' if jobs > 1 else ''}"


#: Workers of policyeng: what the tables call them, what they do, in how many processes.
_WARM = (
    *((divided(END_TO_END, jobs), "end to end", jobs) for jobs in (1, 2)),
    (ENGINE, "engine", 1),
    (THROUGH_OPA, "through opa", 1),
    (ORJSON, "orjson", 1),
)


@contextmanager
def warm(tools: Tools, made: Prepared) -> Iterator[list[Contestant]]:
    """Contestants that are running and have evaluated before."""
    folder = batch.write_bundle(made.bundle, _emptied(tools.folder / "bundle"))
    started: list[Contestant] = []
    servers: list[Server] = []
    try:
        started.extend(Warm(name, kind, made, jobs) for name, kind, jobs in _WARM)
        servers.extend(Server(tools.opa, folder) for _ in range(3))
        batched, stored, carried = servers
        started.append(Batched(made, batched))
        started.append(PerPair(made, stored, True, STORED_SAMPLE))
        started.append(PerPair(made, carried, False, max(3, CARRIED_SAMPLE // made.size)))
        yield started
    finally:
        for contestant in started:
            contestant.close()
        for server in servers:
            server.close()


@contextmanager
def whole(tools: Tools, made: Prepared) -> Iterator[list[Contestant]]:
    """Contestants from the start of their process to its end."""
    bundle, document = written(tools, made)
    with Launcher(tools.folder) as launcher:
        started: list[Contestant] = [_check(launcher, made, jobs) for jobs in (1, 2)]
        started.append(WholeProcess(OPA_EXEC, launcher, made, opa_exec(tools, bundle, document), _of_exec))
        ours = ["--policy", str(bundle), "--data", str(bundle / "data.json"), "--namespace", "main"]
        command = [str(tools.conftest), "test", *ours, "--output", "json", str(document)]
        started.append(WholeProcess(CONFTEST, launcher, made, command, _of_conftest, (0, 1)))
        yield started


def written(tools: Tools, made: Prepared) -> tuple[Path, Path]:
    """Write the bundle and the document that OPA and Conftest are given; the folder is emptied before."""
    folder = _emptied(tools.folder / "whole")
    document = folder / "snapshot.json"
    document.write_bytes(orjson.dumps(batch.document(made)))
    return batch.write_bundle(made.bundle, folder / "bundle"), document


def opa_exec(tools: Tools, bundle: Path, document: Path) -> list[str]:
    """Return the command with which OPA evaluates a document."""
    return [str(tools.opa), "exec", "--bundle", str(bundle), "--decision", batch.QUERY, str(document)]


def _check(launcher: Launcher, made: Prepared, jobs: int) -> WholeProcess:
    left_out = sorted({policy.id for policy in whole_bundle().policies} - set(made.ids))
    options = ["--as-of", MOMENT, "--format", "json", "--jobs", str(jobs), "--ignore", ",".join(left_out)]
    command = [policyeng_command(), "check", str(made.file), *(options if left_out else options[:-2])]
    return WholeProcess(divided(CHECK, jobs), launcher, made, command, _of_report, (0, 1))


def _of_report(printed: bytes) -> Verdicts:
    return of_findings(Evaluation.model_validate_json(printed).findings)


def _of_exec(printed: bytes) -> Verdicts:
    answer = orjson.loads(printed)["result"][0]["result"]
    return of_statements(answer["statements"], answer["decided"])


def _of_conftest(printed: bytes) -> Verdicts:
    failures = [failure for file in orjson.loads(printed) for failure in file.get("failures", ())]
    return of_statements([{**failure["metadata"], "msg": failure["msg"]} for failure in failures], None)


def _emptied(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
