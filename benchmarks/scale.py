"""An audit of a fleet from its directory into a store: what it holds in memory, and what a second process gains.

    python -m benchmarks.scale --workspaces 2000 --resources 40 --jobs 1,2 --rounds 3

Each run is `policyeng audit run` in a process of its own on a new store; every number of jobs has to give the same
content. Each round runs each number once. Gains are of the clock, so they say something on an idle machine only. What
the seconds of CPU would allow there stands beside them: the process that writes takes its own, and the others share the
rest.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson

from benchmarks.estates import ROOT, fleet
from benchmarks.family import Watch

_MB = 1 << 20


@dataclass(frozen=True, slots=True)
class Audited:
    """One run, measured.

    Attributes:
        content: the hash over what was judged and found.
        seconds: of the clock.
        cpu: seconds, of all processes.
        head: those of the process that writes.
        store_mb: the database with what lies beside it.
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
        RuntimeError: it cannot be judged.
    """
    with TemporaryDirectory(prefix="bench-store-") as name:
        store = Path(name) / "audits.db"
        words = ["audit", "run", "--input", str(folder), "--estate", "fleet", "--store", f"sqlite:///{store}"]
        words += ["--jobs", str(jobs), "--as-of", "2026-06-01T00:00:00Z", "--format", "json"]
        output = Path(name) / "printed"
        with output.open("wb") as printed:
            started = time.perf_counter()
            process = subprocess.Popen(
                [sys.executable, "-m", "policyeng", *words],
                stdout=printed,
                cwd=name,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )
            with Watch(process.pid) as watch:
                _, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (0, 1):
            raise RuntimeError(f"the audit ended with {process.returncode}: {output.read_text()[-500:]}")
        (run,) = orjson.loads(output.read_bytes())["runs"]
        size = sum(path.stat().st_size for path in Path(name).glob("audits.db*")) / _MB
        cpu = usage.ru_utime + usage.ru_stime
        return Audited(run["content"], run["parts"], seconds, cpu, watch.head_cpu, watch.pss_mb, watch.rss_mb, size)


def table(runs: Mapping[int, Sequence[Audited]]) -> Iterator[str]:
    """The figures as Markdown: medians of seconds, gains round by round, and the most memory of any round."""
    yield "| jobs | s | gain | CPU s | of which writes | gain by CPU | CPU ms a part | PSS MB | RSS MB | store MB |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    first = next(iter(runs.values()))
    cores = os.cpu_count() or 1
    for jobs, own in runs.items():
        gains = [one.seconds / mine.seconds for one, mine in zip(first, own, strict=True)]
        cpu = statistics.median(run.cpu for run in own)
        least = [max(run.head, run.cpu / min(jobs, cores)) for run in own]
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
    """Run, and print the table; 1 when two runs say different things."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__.partition("\n")[0])
    parser.add_argument("--workspaces", type=int, default=2000)
    parser.add_argument("--resources", type=int, default=40)
    parser.add_argument("--jobs", default="1,2", help="numbers of processes, with commas; gains are over the first")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args(arguments)
    numbers = [int(number) for number in given.jobs.split(",")]
    runs: dict[int, list[Audited]] = {number: [] for number in numbers}
    with TemporaryDirectory(prefix="bench-fleet-") as name:
        for file, content in fleet(given.workspaces, given.resources):
            (Path(name) / file).write_bytes(content)
        for turn in range(given.rounds):
            for step in range(len(numbers)):
                jobs = numbers[(turn + step) % len(numbers)]
                runs[jobs].append(audited(Path(name), jobs))
    if len({run.content for own in runs.values() for run in own}) > 1:
        print("no figures: the runs say different things", file=sys.stderr)
        return 1
    print(f"{given.workspaces} workspaces of {given.resources} resources, {given.rounds} rounds\n")
    print("\n".join(table(runs)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
