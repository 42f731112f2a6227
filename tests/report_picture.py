"""Draw docs/report.svg, what `policyeng check` prints for a sample: `make docs` runs it."""

from __future__ import annotations

from contextlib import chdir
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

import policyeng
from policyeng.report.text import render

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "report.svg"
SAMPLE = "samples/workspaces/exempted.json"
COLUMNS = 100


def drawn() -> str:
    """Draw the report as SVG, with the colours of a terminal."""
    with chdir(ROOT):
        snapshot = policyeng.load_snapshot(SAMPLE)
    evaluation = policyeng.evaluate(policyeng.load_bundle(), snapshot, as_of=datetime(2026, 6, 1, tzinfo=UTC))
    printed = render(evaluation, color=True, width=COLUMNS)
    console = Console(record=True, file=StringIO(), width=COLUMNS, force_terminal=True, color_system="truecolor")
    console.print(f"$ policyeng check {SAMPLE}")
    console.print(Text.from_ansi(printed), no_wrap=True, overflow="ellipsis")
    return console.export_svg(title="policyeng", unique_id="report")


if __name__ == "__main__":
    PICTURE.write_text(drawn(), encoding="utf-8")
