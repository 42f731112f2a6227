"""What `policyeng serve` sustains compared with OPA's server, and what both do when ten times as much comes.

`python -m benchmarks.serving` writes `docs/benchmarks-serving.md` and its figures as JSON; `make
bench-serving` runs it. `BENCH_FAST=1` tries it within a minute, and states so on the page.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from pydantic import TypeAdapter

from benchmarks import estates
from benchmarks.load import K6
from benchmarks.runs import machine, output_of, own_versions
from benchmarks.serving_page import render
from benchmarks.serving_runs import FAST, FULL, Outcome, measured
from benchmarks.timing import DifferentVerdictsError


def main() -> int:
    """Run, and write; 1 when two servers decide differently, and nothing is written then."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving", description=__doc__)
    parser.add_argument("--opa", type=Path, default=estates.ROOT / ".tools/bin/opa")
    parser.add_argument("--k6", type=Path, default=estates.ROOT / ".tools/bin/k6")
    parser.add_argument("--to", type=Path, default=estates.ROOT / "docs", help="the folder of the page")
    parser.add_argument("--size", type=int, default=200, help="resources of the state")
    parser.add_argument("--remark", default="", help="a sentence to put on the page")
    parser.add_argument("--again", type=Path, help="write the page from the figures of an earlier run")
    given = parser.parse_args()
    adapter = TypeAdapter(Outcome)
    if given.again:
        outcome = adapter.validate_json(given.again.read_bytes())
    else:
        program = FAST if os.environ.get("BENCH_FAST") else FULL
        began = datetime.now(UTC).isoformat(timespec="minutes")
        outcome = Outcome(program.name, given.remark, began, machine(), _versions(given.opa, given.k6), given.size)
        with tempfile.TemporaryDirectory(prefix="bench-") as place:
            folder = Path(place)
            try:
                measured(program, given.opa.resolve(), K6(given.k6.resolve(), folder), folder, outcome)
            except DifferentVerdictsError as error:
                print(f"no figures: the servers decide differently: {error}", file=sys.stderr)
                return 1
    given.to.mkdir(parents=True, exist_ok=True)
    (given.to / "benchmarks-serving.json").write_bytes(adapter.dump_json(outcome, indent=1) + b"\n")
    (given.to / "benchmarks-serving.md").write_text(render(outcome), encoding="utf-8")
    return 0


def _versions(opa: Path, k6: Path) -> dict[str, str]:
    libraries = {name: version(name) for name in ("fastapi", "uvicorn", "uvloop", "httptools")}
    return {**own_versions(opa), "k6": output_of(str(k6), "version").split()[1].removeprefix("v"), **libraries}


if __name__ == "__main__":
    sys.exit(main())
