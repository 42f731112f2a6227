"""What is measured, in what order, and everything that came out."""

from __future__ import annotations

import platform
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

from benchmarks import estates
from benchmarks.field import OPA_EXEC, Tools, opa_exec, warm, whole, written
from benchmarks.preparing import MOMENT, Prepared, prepared, selections, whole_bundle
from benchmarks.processes import Launcher, WholeProcess, policyeng_command
from benchmarks.timing import Contestant, Measure, Pace, repeated, require_equal
from benchmarks.worker import asked_once

WARM, WHOLE, COLD, GROWTH = "warm", "whole process", "start", "growth"


@dataclass(frozen=True, slots=True)
class Program:
    """What a run of the harness does.

    Attributes:
        sizes: numbers of resources.
        start: resources of the snapshot of the cold start.
        grown: snapshots evaluated in one process, and how many resources each has.
        growth: numbers of resources that policyeng alone evaluates with all policies.
    """

    name: str
    sizes: Sequence[int]
    warm: Pace
    whole: Pace
    start: int
    starts: Pace
    grown: tuple[int, int]
    growth: Sequence[int] = ()


FULL = Program(
    "full",
    (100, 1_000, 10_000),
    Pace(3, 30, 8.0),
    Pace(2, 10, 12.0),
    40,
    Pace(11, 21, 40.0),
    (100, 1_000),
    (1_000, 10_000, 40_000, 100_000),
)
FAST = Program("fast", (1, 50), Pace(3, 5, 2.0), Pace(2, 3, 2.0), 40, Pace(3, 3, 5.0), (20, 50), (50, 100))
#: Estates of other kinds than copies of the samples are measured up to this size.
_KINDS_TO = 10_000
#: Five policies are measured up to this size, where a run is short enough to be repeated.
_FIVE_TO = 1_000


@dataclass
class Outcome:
    """A run: where and when, and its figures.

    Attributes:
        stages: by size, seconds of each step of an evaluation, one mapping per repetition.
        grown: MB after each snapshot evaluated in one process.
        input_mb: MB of the file, by its number of resources.
    """

    program: str
    remark: str
    began: str
    machine: dict[str, str]
    versions: dict[str, str]
    measures: list[Measure] = field(default_factory=list)
    stages: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    pairs: dict[str, int] = field(default_factory=dict)
    grown: list[float] = field(default_factory=list)
    grown_size: int = 0
    input_mb: dict[str, float] = field(default_factory=dict)
    minutes: float = 0.0

    @classmethod
    def read(cls, document: dict[str, Any]) -> Self:
        """Read an outcome from JSON."""
        return cls(**{**document, "measures": [Measure(**measure) for measure in document["measures"]]})


def measured(program: Program, tools: Tools, checkov: Path | None, remark: str) -> Outcome:
    """Measure all of a program.

    Raises:
        DifferentVerdictsError: two contestants decide differently.
    """
    started = time.monotonic()
    outcome = Outcome(
        program.name, remark, datetime.now(UTC).isoformat(timespec="minutes"), machine(), _versions(tools, checkov)
    )
    outcome.measures += _starts(program, tools, checkov)
    made: Prepared | None = None
    for size in program.sizes:
        file = _estate(tools.folder, size)
        for name, bundle in list(selections().items())[0 if size <= _FIVE_TO else -1 :]:
            _report(f"{size} resources, {name} policies")
            made = prepared(bundle, file)
            outcome.measures += _cell(WARM, warm(tools, made), program.warm, name, made)
            outcome.measures += _cell(WHOLE, whole(tools, made), program.whole, name, made)
        if made is not None:
            outcome.stages[str(size)] = asked_once("stages", made, program.warm.least)
            outcome.pairs[str(size)] = len(made.work.pairs)
    outcome.grown_size = program.grown[1]
    *_, everything = selections().values()
    grown = prepared(everything, _estate(tools.folder, outcome.grown_size))
    outcome.grown = asked_once("growth", grown, program.grown[0])
    outcome.measures += _growth(program, tools, outcome.input_mb)
    outcome.minutes = (time.monotonic() - started) / 60
    return outcome


def _cell(
    group: str, field_: AbstractContextManager[list[Contestant]], pace: Pace, policies: str, made: Prepared
) -> Iterator[Measure]:
    with field_ as contestants:
        yield from _measures(group, contestants, pace, made.size, policies, len(made.work.pairs))


def _measures(
    group: str, contestants: Sequence[Contestant], pace: Pace, size: int, policies: str, pairs: int
) -> Iterator[Measure]:
    require_equal(contestants)
    before = [contestant.processor() for contestant in contestants]
    seconds = repeated(contestants, pace)
    for contestant, began, times in zip(contestants, before, seconds, strict=True):
        processor = (contestant.processor() - began) / len(times)
        peak, sample = contestant.peak_mb(), contestant.sample
        yield Measure(group, contestant.name, size, policies, pairs, times, peak, processor, sample)


def _starts(program: Program, tools: Tools, checkov: Path | None) -> Iterator[Measure]:
    """Short processes: what starting costs. Each has run once before, so files are in the page cache."""
    _report("starts")
    estate = _estate(tools.folder, program.start)
    check = [policyeng_command(), "check", str(estate), "--as-of", MOMENT]
    *_, everything = selections().values()
    theirs = opa_exec(tools, *written(tools, prepared(everything, estate)))
    commands: dict[str, list[str]] = {
        "python, nothing": [sys.executable, "-c", "pass"],
        "python, import typer, pydantic": [sys.executable, "-c", "import typer, pydantic"],
        "the same, and a model of pydantic": [sys.executable, "-c", "import typer; from pydantic import BaseModel"],
        f"policyeng check, {program.start} resources, all policies": check,
        f"{OPA_EXEC}, {program.start} resources, all policies in Rego": theirs,
        "policyeng --version": [policyeng_command(), "--version"],
        "policyeng --help": [policyeng_command(), "--help"],
        "opa version": [str(tools.opa), "version"],
        "conftest --version": [str(tools.conftest), "--version"],
    }
    if checkov is not None:
        commands["checkov --version"] = [str(checkov), "--version"]
    policies = str(len(whole_bundle().policies))
    with Launcher(tools.folder) as launcher:
        contestants = [WholeProcess(name, launcher, None, command, None, (0, 1)) for name, command in commands.items()]
        yield from _measures(COLD, contestants, program.starts, program.start, policies, 0)


def _growth(program: Program, tools: Tools, input_mb: dict[str, float]) -> Iterator[Measure]:
    """Whole processes of policyeng alone, with all policies, on estates of all kinds."""
    policies = str(len(whole_bundle().policies))
    with Launcher(tools.folder) as launcher:
        for size in program.growth:
            for name, write in estates.KINDS.items():
                if name != next(iter(estates.KINDS)) and size > _KINDS_TO:
                    continue
                _report(f"{size} resources, {name}")
                file = tools.folder / "growth.json"
                file.write_bytes(write(size))
                input_mb.setdefault(str(size), file.stat().st_size / 1e6)
                options = ["--as-of", MOMENT, "--format", "json", "--jobs", "1"]
                command = [policyeng_command(), "check", str(file), *options]
                contestant = WholeProcess(name, launcher, None, command, None, (0, 1))
                pace = program.whole if size <= _KINDS_TO else Pace(1, 1, 0.0)
                yield from _measures(GROWTH, [contestant], pace, size, policies, 0)


def _estate(folder: Path, size: int) -> Path:
    file = folder / f"estate-{size}.json"
    if not file.exists():
        # OPA has no unknowns, so the contestants decide alike only if everything was read.
        file.write_bytes(estates.covered(size))
    return file


def machine() -> dict[str, str]:
    """Describe the machine."""
    cores = [line for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    memory = next(int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal"))
    load = " ".join(_lines("/proc/loadavg")[0].split()[:3])
    return {
        "processor": cores[0].partition(":")[2].strip() if cores else platform.machine(),
        "cores": str(len(cores) or 1),
        "memory": f"{memory / 1024 / 1024:.0f} GiB",
        "kernel": platform.release(),
        "load before the run": load,
    }


def _versions(tools: Tools, checkov: Path | None) -> dict[str, str]:
    return {
        **own_versions(tools.opa),
        "Conftest": tools.conftest_version or output_of(str(tools.conftest), "--version").removeprefix("Conftest: "),
        "orjson": version("orjson"),
        "Checkov": output_of(str(checkov), "--version") if checkov else "not installed",
    }


def own_versions(opa: Path) -> dict[str, str]:
    """Return the versions of policyeng, Python and OPA."""
    return {
        "policyeng": version("policyeng"),
        "Python": platform.python_version(),
        "OPA": output_of(str(opa), "version").removeprefix("Version: "),
    }


def output_of(*command: str) -> str:
    """Return the first line of the output of a command."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().splitlines()[0]


def _lines(file: str) -> list[str]:
    return Path(file).read_text(encoding="utf-8").splitlines()


def _report(what: str) -> None:
    print(f"   {what}", file=sys.stderr, flush=True)
