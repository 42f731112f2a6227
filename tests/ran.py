"""Assert that runs of pytest together ran every test: every module present, nothing skipped, enough of them."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

FEWEST = 9300


def main(*reports: str) -> int:
    """Read JUnit files of pytest and print the closing count; 1 when tests are missing or skipped."""
    cases = [case for report in reports for case in ET.parse(report).iter("testcase")]  # noqa: S314  # our own files
    skipped = [case for case in cases if case.find("skipped") is not None]
    failed = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    ran = {(case.get("classname") or "").split(".")[1] for case in cases if "." in (case.get("classname") or "")}
    missing = sorted({path.stem for path in Path("tests").glob("test_*.py")} - ran)
    for case in skipped:
        print(f"skipped: {case.get('classname')}.{case.get('name')}", file=sys.stderr)
    if missing:
        print(f"modules that ran no test: {', '.join(missing)}", file=sys.stderr)
    print(f"{len(cases) - len(skipped) - len(failed)} passed, {len(failed)} failed, {len(skipped)} skipped")
    return int(bool(missing or skipped or failed or len(cases) < FEWEST))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
