"""Evaluate the test cases of OPA with the Rego engine and write `docs/conformance.md`.

    python tools/run_conformance.py --cases DIR --opa FILE [--verify]

DIR is `v1/test/cases/testdata` of the OPA module, and the OPA program is of the same version. `--verify` writes no page
and exits with 1 if the page would change. Values that differ from those of OPA without an error make it exit with 1,
too, and so does a share of passed cases below 99 %.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

from conformance.page import make_page
from conformance.verdicts import evaluate_cases

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "conformance.md"
_LEAST_SHARE = 0.99


def main() -> int:
    """Evaluate the cases, write the page and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("cases", "opa"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--verify", action="store_true")
    options = parser.parse_args()
    if not options.cases.is_dir():
        parser.error(f"there are no cases in {options.cases}: run `go mod download` for the OPA module")
    found = list(evaluate_cases(options.cases, options.opa))
    text = make_page(found, read_version(options.opa))
    silent = [outcome for outcome in found if outcome.verdict == "silent"]
    for outcome in silent:
        print(f"differs: v{outcome.version}/{outcome.folder}: {outcome.note}: {outcome.reason}", file=sys.stderr)
    stale = options.verify and (not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text)
    if stale:
        print(f"{PAGE.relative_to(ROOT)} is stale: run `make conformance`", file=sys.stderr)
    elif not options.verify:
        PAGE.write_text(text, encoding="utf-8")
    supported = [outcome for outcome in found if outcome.verdict != "refused"]
    passed = sum(outcome.verdict == "passed" for outcome in supported)
    share = passed / max(len(supported), 1)
    print(f"{passed} of {len(supported)} cases without refused builtins pass ({share:.2%})")
    return 1 if silent or stale or share < _LEAST_SHARE else 0


def read_version(opa: Path) -> str:
    """Return the version of an OPA program."""
    printed = subprocess.run([opa, "version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"^Version: (\S+)", printed)
    if found is None:
        raise SystemExit(f"{opa} does not print which version of OPA it is")
    return f"v{found[1]}"


if __name__ == "__main__":
    raise SystemExit(main())
