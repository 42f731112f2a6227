"""How long audits of a fleet take: the first, one of an unchanged fleet, one after a change of one workspace.

`python -m benchmarks.fleet` prints a table; `--to FILE` writes it as a page. Each workspace is a file with its
resources. OPA and Conftest evaluate the same files with those policies that are in Rego, as whoever audits
with them has to: from the beginning each time, and without keeping anything. All are processes from start to end.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import orjson

from benchmarks import batch, estates
from benchmarks.preparing import prepared, selections, whole_bundle

_SUBSCRIPTION = re.compile(rb"(?<=/subscriptions/)[0-9a-f]{6}")
_FIRST, _AGAIN, _CHANGED, _FULL = (
    "first audit",
    "next audit, nothing changed",
    "next audit, one workspace changed",
    "the same with `--full`",
)
#: How often an unchanged fleet is audited; the table has the median.
_REPEATED = 5


@dataclass(frozen=True, slots=True)
class Measured:
    """Something that was timed.

    Attributes:
        seconds: from start to end by the clock, which shows little on a busy machine.
        processor: seconds of processors, of all its processes.
        peak: of its resident memory, in MB.
    """

    name: str
    seconds: float
    processor: float
    peak: float


@dataclass(frozen=True, slots=True)
class Fleet:
    """A folder of files, one for each workspace, and the same for OPA."""

    folder: Path
    workspaces: int
    resources: int

    @property
    def files(self) -> Path:
        """Snapshots."""
        return self.folder / "fleet"

    @property
    def documents(self) -> Path:
        """What OPA and Conftest are given."""
        return self.folder / "documents"

    def write(self) -> None:
        """Write the snapshots."""
        self.files.mkdir()
        content = estates.document(self.resources)
        for number in range(self.workspaces):
            self._file(number).write_bytes(_moved(content, number))

    def write_documents(self, count: int) -> Path:
        """Write the documents of so many workspaces, and the bundle that evaluates them."""
        self.documents.mkdir()
        bundle = list(selections().values())[-1]
        content = orjson.dumps(batch.document(prepared(bundle, self._file(0))))
        for number in range(count):
            (self.documents / f"{number:05}.json").write_bytes(_moved(content, number))
        return batch.write_bundle(bundle, self.folder / "bundle")

    def change(self) -> None:
        """Change one setting of one workspace."""
        file = self._file(self.workspaces // 2)
        snapshot = orjson.loads(file.read_bytes())
        snapshot["resources"][0]["properties"]["publicNetworkAccess"] = "Enabled"
        file.write_bytes(orjson.dumps(snapshot))

    def _file(self, number: int) -> Path:
        return self.files / f"{number:05}.json"


def _moved(content: bytes, number: int) -> bytes:
    return _SUBSCRIPTION.sub(f"{number:06x}".encode(), content)


def measured(name: str, command: Sequence[str | Path], allowed: Sequence[int] = (0, 1)) -> Measured:
    """Run a command to its end.

    Raises:
        RuntimeError: it ends with another exit code than those.
    """
    began = time.perf_counter()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - began
        if process.returncode not in allowed:
            errors.seek(0)
            raise RuntimeError(f"{name}: exit {process.returncode}: {errors.read().decode()[-2000:]}")
    return Measured(name, seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def audits(fleet: Fleet, url: str, jobs: int) -> Iterator[Measured]:
    """Audits of a fleet, an hour after each other, the last two after one workspace changed."""
    command: list[str | Path] = [sys.executable, "-m", "policyeng", "audit", "run", "--input", fleet.files]
    command += ["--estate", "fleet", "--store", url, "--jobs", str(jobs), "--as-of"]
    for hour, name in enumerate((_FIRST, *(_AGAIN,) * _REPEATED, _CHANGED, _FULL)):
        if name == _CHANGED:
            fleet.change()
        yield measured(name, [*command, f"2026-06-01T{hour:02}:00:00Z", *(["--full"] if name == _FULL else [])])


def others(fleet: Fleet, count: int, tools: Path) -> Iterator[Measured]:
    """OPA and Conftest on so many files of the fleet, as if they were all of it."""
    bundle = fleet.write_documents(count)
    data: list[str | Path] = ["--policy", bundle, "--data", bundle / "data.json"]
    data += ["--namespace", "main", "--output", "json"]
    commands: dict[str, list[str | Path]] = {
        "opa exec": [tools / "opa", "exec", "--bundle", bundle, "--decision", batch.QUERY, fleet.documents],
        "conftest test": [tools / "conftest", "test", *data, fleet.documents],
    }
    for name, command in commands.items():
        found = measured(name, command)
        times = fleet.workspaces / count
        yield Measured(name, found.seconds * times, found.processor * times, found.peak)


def rendered(rows: Sequence[Measured], fleet: Fleet, jobs: int, count: int) -> str:
    """Return a table of all measurements by name; times are also given as multiples of the unchanged audit."""
    rows = [_median([row for row in rows if row.name == name]) for name in dict.fromkeys(row.name for row in rows)]
    by_name = {row.name: row for row in rows}
    first, again = by_name[_FIRST], by_name[_AGAIN]
    policies, in_rego = len(whole_bundle().policies), list(selections())[-1].removeprefix("all ")
    factor = fleet.workspaces / count
    lines = [
        f"{fleet.workspaces:,} workspaces of {fleet.resources} resources in a file each; audits with {policies} "
        f"policies and `--jobs {jobs}`, into SQLite; OPA and Conftest with the {in_rego} policies in Rego"
        f"{f', on {count:,} files, extrapolated by a factor of {factor:g}' * (factor > 1)}.",
        "",
        "| run | wall-clock time, s | processor time, s | relative to an unchanged audit | peak memory, MB |",
        "| --- | --- | --- | --- | --- |",
        *(
            f"| {row.name} | {row.seconds:.2f} | {row.processor:.2f} | {row.processor / again.processor:.1f} "
            f"| {row.peak:.0f} |"
            for row in rows
        ),
        "",
        f"An audit of the unchanged fleet is {first.processor / again.processor:.1f} times as fast as the first one in "
        f"processor time, and {first.seconds / again.seconds:.1f} times in wall-clock time.",
    ]
    return "\n".join(lines)


def _median(rows: Sequence[Measured]) -> Measured:
    return sorted(rows, key=lambda row: row.processor)[len(rows) // 2]


_PAGE = """\
# Audits of a fleet

This page compares the time of `policyeng audit run` for a first audit, for an unchanged fleet, and after one workspace
changed ([incremental audits](incremental.md)) with the time of OPA and Conftest for the same files. Written by
`python -m benchmarks.fleet --to docs/benchmarks-fleet.md`.

{table}

Times of whole processes, one after the other, on {machine}, {day}. OPA and Conftest read documents with
precomputed indexes for the policies, store nothing, and start from the beginning each time. An audit reads, normalizes,
evaluates and stores every resource and every finding. Wall-clock times depend on other work of the machine, so
the multiples are of processor times. The unchanged audit is the median of five.
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet", description=__doc__)
    parser.add_argument("--workspaces", type=int, default=1000)
    parser.add_argument("--resources", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--others", type=int, default=200, help="how many files OPA and Conftest are given; 0 for none")
    parser.add_argument(
        "--tools", type=Path, default=estates.ROOT / ".tools/bin", help="the folder of opa and conftest"
    )
    parser.add_argument("--to", type=Path, help="write a page")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fleet-") as folder:
        fleet = Fleet(Path(folder), given.workspaces, given.resources)
        fleet.write()
        rows = list(audits(fleet, f"sqlite:///{folder}/audits.db", given.jobs))
        count = min(given.others, given.workspaces)
        rows += others(fleet, count, given.tools) if count else []
    table = rendered(rows, fleet, given.jobs, count or given.workspaces)
    print(table)
    if given.to:
        machine = f"{platform.machine()} with {os.cpu_count()} processors"
        page = _PAGE.format(table=table, machine=machine, day=datetime.now(UTC).date().isoformat())
        given.to.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
