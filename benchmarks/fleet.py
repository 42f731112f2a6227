"""Audit a fleet: `python -m benchmarks.fleet --parts 2000 --resources 40` measures time and memory.

The estate is made by code, the same for the same size. Each audit is a process of its own, with a store of its own; its
resident memory is looked at while it runs, that of the processes that it starts beside it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import orjson

from benchmarks.estates import document
from policyeng.models import JsonObject

_MIB = 1024 * 1024
_PAUSE = 0.05


class Measured(NamedTuple):
    """One audit: wall seconds, MiB resident at most in the process that writes and in all together."""

    seconds: float
    resident: float
    together: float


def write_estate(folder: Path, parts: int, resources: int) -> None:
    """Write so many snapshots of so many resources each."""
    folder.mkdir()
    whole = orjson.loads(document(resources))
    here = whole["resources"][0]["id"].split("/")[2]
    text = orjson.dumps(whole)
    for number in range(parts):
        there = f"{number + resources:08x}{here[8:]}"  # the snapshot has fewer subscriptions than resources
        (folder / f"workspace-{number:05}.json").write_bytes(text.replace(here.encode(), there.encode()))


def audit(folder: Path, jobs: int, store: str) -> Measured:
    """Audit the estate in a process of its own."""
    words = [sys.executable, "-m", "policyeng", "audit", "run", "--input", str(folder), "--estate", "fleet"]
    words += ["--jobs", str(jobs), "--store", store, "--as-of", "2026-06-01", "--full"]
    began = time.monotonic()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    own = together = 0.0
    while process.poll() is None:
        resident = resident_of(process.pid)
        own = max(own, resident.get(process.pid, 0.0))
        together = max(together, sum(resident.values()))
        time.sleep(_PAUSE)
    if process.returncode not in (0, 1):
        raise SystemExit(f"the audit ended with {process.returncode}")
    return Measured(time.monotonic() - began, own, together)


def resident_of(pid: int) -> dict[int, float]:
    """MiB resident by process: of one, and of all that it started."""
    found: dict[int, float] = {}
    pending = [pid]
    while pending:
        current = pending.pop()
        try:
            pages = int(Path(f"/proc/{current}/statm").read_text().split()[1])
            pending += map(int, Path(f"/proc/{current}/task/{current}/children").read_text().split())
        except (OSError, IndexError):  # it ended meanwhile
            continue
        found[current] = pages * 4096 / _MIB
    return found


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", type=int, default=2000)
    parser.add_argument("--resources", type=int, default=40)
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--store", default="", help="a PostgreSQL database without a store; else SQLite")
    given = parser.parse_args()
    rows: list[JsonObject] = []
    with TemporaryDirectory() as folder:
        estate = Path(folder) / "estate"
        write_estate(estate, given.parts, given.resources)
        for jobs in given.jobs:
            measured = audit(estate, jobs, given.store or f"sqlite:///{folder}/{jobs}.db")
            size = sum(path.stat().st_size for path in Path(folder).glob(f"{jobs}.db*")) / _MIB
            rows.append({"jobs": jobs, **measured._asdict(), "store": size})
            print(
                f"{given.parts} parts x {given.resources} resources, {jobs} process(es): {measured.seconds:.1f} s, "
                f"{measured.resident:.0f} MiB resident ({measured.together:.0f} with those that judge), "
                f"{size:.0f} MiB in the store",
                flush=True,
            )
    first, last = rows[0], rows[-1]
    print(f"{first['seconds'] / last['seconds']:.2f} times as fast with {last['jobs']} as with {first['jobs']}")


if __name__ == "__main__":
    main()
