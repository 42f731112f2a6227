"""What a second process gains, and how much memory it takes: in an audit of a fleet into a store, and in a check.

    python -m benchmarks.scale --workspaces 200 --resources 40 --jobs 1,2 --rounds 3
    python -m benchmarks.scale --check 10000 --jobs 1,2 --rounds 5

Each run is a command in a process of its own, an audit on a new store; every number of jobs has to give the same
content. Each round runs each number once. Gains are of the clock, so they are valid on an idle machine only. What
the seconds of CPU would allow is next to them: in an audit the process that writes takes its own, and the
others share the rest meanwhile; in a check they share what it does not do before and after.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson

from benchmarks.estates import ROOT, document, fleet
from benchmarks.family import Watch
from policyeng.processes import processors

_MB = 1 << 20


@dataclass(frozen=True, slots=True)
class Audited:
    """One run, measured.

    Attributes:
        content: the hash over the snapshots and findings.
        seconds: of the clock.
        cpu: seconds, of all processes.
        head: those of the first process.
        store_mb: the database with the files next to it.
    """

    content: str
    parts: int
    seconds: float
    cpu: float
    head: float
    pss_mb: float
    rss_mb: float
    store_mb: float


def audited(folder: Path, jobs: int) -> Audited:
    """Audit the fleet in a folder on a new store.

    Raises:
        RuntimeError: it cannot be evaluated.
    """
    with TemporaryDirectory(prefix="bench-store-") as name:
        words = ["audit", "run", "--input", str(folder), "--estate", "fleet", "--store", f"sqlite:///{name}/audits.db"]
        printed, run = _measured(Path(name), [*words, "--format", "json"], jobs)
        (printed_run,) = orjson.loads(printed)["runs"]
        size = sum(path.stat().st_size for path in Path(name).glob("audits.db*")) / _MB
        return replace(run, content=printed_run["content"], parts=printed_run["parts"], store_mb=size)


def checked(file: Path, jobs: int) -> Audited:
    """Check a snapshot; its parts are its resources.

    Raises:
        RuntimeError: it cannot be evaluated.
    """
    with TemporaryDirectory(prefix="bench-check-") as name:
        printed, run = _measured(Path(name), ["check", str(file)], jobs)
    parts = len(orjson.loads(file.read_bytes())["resources"])
    return replace(run, content=hashlib.sha256(printed).hexdigest(), parts=parts)


def _measured(folder: Path, words: Sequence[str], jobs: int) -> tuple[bytes, Audited]:
    """Run a command in a folder, and return what it printed and took."""
    output = folder / "printed"
    command = [sys.executable, "-m", "policyeng", *words, "--jobs", str(jobs), "--as-of", "2026-06-01T00:00:00Z"]
    with output.open("wb") as printed:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=printed, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)})
        with Watch(process.pid) as watch:
            _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise RuntimeError(f"the {words[0]} ended with {process.returncode}: {output.read_text()[-500:]}")
    cpu = usage.ru_utime + usage.ru_stime
    return output.read_bytes(), Audited("", 0, seconds, cpu, watch.head_cpu, watch.pss_mb, watch.rss_mb, 0.0)


def estimate_audit(run: Audited, jobs: int) -> float:
    """Estimate the seconds of an audit on an idle machine from its CPU seconds: all processes work at once."""
    return max(run.head, run.cpu / min(jobs, processors()))


def estimate_check(run: Audited, jobs: int) -> float:
    """Estimate the same for a check: the first process also works before and after the others."""
    return run.head + (run.cpu - run.head) / min(jobs, processors())


def table(
    runs: Mapping[int, Sequence[Audited]], allowed_by: Callable[[Audited, int], float] = estimate_audit
) -> Iterator[str]:
    """Return the figures as Markdown: medians in seconds, gains by round, and the peak memory of all rounds."""
    yield "| jobs | s | gain | CPU s | of the first | gain by CPU | CPU ms a part | PSS MB | RSS MB | store MB |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    first = next(iter(runs.values()))
    for jobs, own in runs.items():
        gains = [one.seconds / mine.seconds for one, mine in zip(first, own, strict=True)]
        cpu = statistics.median(run.cpu for run in own)
        least = [allowed_by(run, jobs) for run in own]
        allowed = statistics.median(one.cpu / mine for one, mine in zip(first, least, strict=True))
        cells = [
            f"{jobs}",
            f"{statistics.median(run.seconds for run in own):.1f}",
            f"{statistics.median(gains):.2f} ({min(gains):.2f} to {max(gains):.2f})",
            f"{cpu:.1f}",
            f"{statistics.median(run.head for run in own):.1f}",
            f"{allowed:.2f}",
            f"{1000 * cpu / own[0].parts:.1f}",
            f"{max(run.pss_mb for run in own):.0f}",
            f"{max(run.rss_mb for run in own):.0f}",
            f"{own[0].store_mb:.0f}",
        ]
        yield f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, and print the table; 1 when two runs differ."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__.partition("\n")[0])
    parser.add_argument("--workspaces", type=int, default=2000)
    parser.add_argument("--resources", type=int, default=40)
    parser.add_argument("--check", type=int, metavar="RESOURCES", help="check one snapshot of so many instead")
    parser.add_argument("--jobs", default="1,2", help="numbers of processes, with commas; gains are over the first")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args(arguments)
    numbers = [int(number) for number in given.jobs.split(",")]
    runs: dict[int, list[Audited]] = {number: [] for number in numbers}
    with TemporaryDirectory(prefix="bench-fleet-") as name:
        folder = Path(name)
        if given.check:
            (folder / "snapshot.json").write_bytes(document(given.check))
        else:
            for file, content in fleet(given.workspaces, given.resources):
                (folder / file).write_bytes(content)
        for turn in range(given.rounds):
            for step in range(len(numbers)):
                jobs = numbers[(turn + step) % len(numbers)]
                made = checked(folder / "snapshot.json", jobs) if given.check else audited(folder, jobs)
                runs[jobs].append(made)
    if len({run.content for own in runs.values() for run in own}) > 1:
        print("no figures: the runs say different things", file=sys.stderr)
        return 1
    what = (
        f"{given.check} resources" if given.check else f"{given.workspaces} workspaces of {given.resources} resources"
    )
    print(f"{what}, {given.rounds} rounds\n")
    print("\n".join(table(runs, estimate_check if given.check else estimate_audit)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
