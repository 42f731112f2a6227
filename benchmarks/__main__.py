"""Measure everything and write `docs/benchmarks.md` with its charts; `make bench` runs it.

`BENCH_FAST=1` tries it with small sizes and few repetitions, and states so on the page.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from benchmarks.chart import write_charts
from benchmarks.estates import ROOT
from benchmarks.field import Tools
from benchmarks.page import render
from benchmarks.runs import FAST, FULL, Outcome, measured
from benchmarks.timing import DifferentVerdictsError


def main() -> int:
    """Run, and write; 1 when two contestants decide differently, and nothing is written then."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--opa", type=Path, default=ROOT / ".tools/bin/opa")
    parser.add_argument("--conftest", type=Path, default=ROOT / ".tools/bin/conftest")
    parser.add_argument("--conftest-version", default="", help="what it was built from; it only says `dev`")
    parser.add_argument("--checkov", type=Path, help="a checkov to start for scale")
    parser.add_argument("--to", type=Path, default=ROOT / "docs", help="the folder of the page")
    parser.add_argument("--remark", default="", help="a sentence to put on the page")
    parser.add_argument("--again", type=Path, help="write the page from the figures of an earlier run")
    given = parser.parse_args()
    if given.again:
        outcome = Outcome.read(json.loads(given.again.read_text(encoding="utf-8")))
    else:
        program = FAST if os.environ.get("BENCH_FAST") else FULL
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            tools = Tools(given.opa.resolve(), given.conftest.resolve(), Path(folder), given.conftest_version)
            try:
                outcome = measured(program, tools, given.checkov and given.checkov.absolute(), given.remark)
            except DifferentVerdictsError as error:
                print(f"no figures: the contestants decide differently: {error}", file=sys.stderr)
                return 1
    given.to.mkdir(parents=True, exist_ok=True)
    (given.to / "benchmarks.json").write_text(json.dumps(asdict(outcome), indent=1) + "\n", encoding="utf-8")
    (given.to / "benchmarks.md").write_text(render(outcome), encoding="utf-8")
    write_charts(outcome, given.to)
    return 0


if __name__ == "__main__":
    sys.exit(main())
