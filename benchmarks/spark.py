"""The cost of a snapshot in Spark on this machine, and in one and two processes of ours: the same rows, in one run.

    python -m benchmarks.spark --workspaces 400 --resources 40 --rounds 5

Every contestant reads each snapshot, evaluates it with all built-in policies and makes the rows of its findings; their
counts by outcome have to be equal. Each round runs each of them once, and each begins with another one.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.estates import ROOT, fleet
from benchmarks.family import cpu_seconds
from policyeng.bundle import Bundle, load_bundle
from policyeng.bundle.assembling import pack_bundle, unpack_bundle
from policyeng.evaluation import EvaluationOptions, evaluate
from policyeng.sources.discovery import Named
from policyeng.sources.reader import read_inputs
from policyeng.spark import PendingRows, evaluate_table

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
#: Snapshots that a process is handed at a time.
_CHUNK = 25
Counts = Counter[str]
_bundles: list[Bundle] = []


@dataclass
class Contestant:
    """One way to evaluate the fleet, and its seconds: those of the clock and those of CPU, one a round."""

    name: str
    run: Callable[[], Counts]
    clock: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def measure(self) -> None:
        """Run once."""
        clock, cpu = time.perf_counter(), cpu_seconds(os.getpid())
        self.run()
        self.clock.append(time.perf_counter() - clock)
        self.cpu.append(cpu_seconds(os.getpid()) - cpu)


def start(content: bytes) -> None:
    """Open the bundle in a process of the pool."""
    _bundles.append(unpack_bundle(content))


def evaluate_files(paths: Sequence[Path]) -> Counts:
    """Evaluate files in this process and make their rows."""
    counts: Counts = Counter()
    for path in paths:
        read = read_inputs([Named(str(path), None)], stdin=path.read_bytes(), **_bundles[0].wanted)
        evaluation = evaluate(_bundles[0], read.snapshot, EvaluationOptions(AS_OF, problems=read.problems))
        rows = PendingRows()
        rows.add(str(path), evaluation)
        counts.update(rows.taken()["outcome"].to_pylist())
    return counts


def pooled(pool: ProcessPoolExecutor, paths: Sequence[Path]) -> Counts:
    """Evaluate files in the processes of a pool."""
    chunks = [paths[first : first + _CHUNK] for first in range(0, len(paths), _CHUNK)]
    return sum(pool.map(evaluate_files, chunks), Counter())


@contextmanager
def contestants(folder: Path, paths: Sequence[Path], bundle: Bundle, processes: int) -> Iterator[list[Contestant]]:
    """All of them, started and ready to evaluate."""
    from pyspark.sql import SparkSession

    os.environ |= {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
    with ExitStack() as stack:
        content = pack_bundle(bundle)
        pools = {
            number: stack.enter_context(
                ProcessPoolExecutor(number, mp_context=get_context("spawn"), initializer=start, initargs=(content,))
            )
            for number in (1, processes)
        }
        plain = SparkSession.builder.master(f"local[{processes}]").config("spark.ui.showConsoleProgress", "false")
        spark = stack.enter_context(plain.config("spark.ui.enabled", "false").getOrCreate())
        spark.sparkContext.setLogLevel("ERROR")

        def sparkling() -> Counts:
            files = spark.read.format("binaryFile").load(str(folder)).repartition(4 * processes)
            rows = evaluate_table(files, bundle, as_of=AS_OF, name_column="path", snapshot_column="content")
            return Counter({row["outcome"]: row["count"] for row in rows.groupBy("outcome").count().collect()})

        yield [
            Contestant("one process", lambda: pooled(pools[1], paths)),
            Contestant(f"{processes} processes", lambda: pooled(pools[processes], paths)),
            Contestant(f"Spark, local[{processes}]", sparkling),
        ]


def table(field_: Sequence[Contestant], snapshots: int) -> Iterator[str]:
    """Return the figures as Markdown: medians for each snapshot, and their ratio to the first."""
    yield "| | ms per snapshot | to one process | CPU ms per snapshot | to one process |"
    yield "| --- | --- | --- | --- | --- |"
    for one in field_:
        cells = [one.name]
        for own, first in ((one.clock, field_[0].clock), (one.cpu, field_[0].cpu)):
            ratios = [mine / other for mine, other in zip(own, first, strict=True)]
            cells += [f"{1000 * statistics.median(own) / snapshots:.1f}"]
            cells += [f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"]
        yield f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, and print the table; 1 when two contestants differ."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description=__doc__.partition("\n")[0])
    parser.add_argument("--workspaces", type=int, default=400)
    parser.add_argument("--resources", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args(arguments)
    with TemporaryDirectory(prefix="bench-spark-") as name:
        folder = Path(name)
        for file, content in fleet(given.workspaces, given.resources):
            (folder / file).write_bytes(content)
        paths = sorted(folder.iterdir())
        with contestants(folder, paths, load_bundle(), given.processes) as field_:
            counted = [one.run() for one in field_]  # which warms them up
            if any(counts != counted[0] for counts in counted):
                print(f"no figures: the contestants differ: {counted}", file=sys.stderr)
                return 1
            for number in range(given.rounds):
                for step in range(len(field_)):
                    field_[(number + step) % len(field_)].measure()
            print(
                f"{given.workspaces} snapshots of {given.resources} resources, {counted[0].total()} rows each round\n"
            )
            print("\n".join(table(field_, given.workspaces)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
