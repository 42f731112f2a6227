"""Run the test cases of OPA on the embedded engine and write `docs/conformance.md`.

    python tools/run_conformance.py --cases DIR --opa FILE --engine FILE [--lines FILE] [--verify]

DIR is `v1/test/cases/testdata/v1` of the OPA module, the OPA binary is of the same version, and the engine is
`native/examples/conformance.rs`, built. `--lines` also writes one JSON object a line per case and way of judging it.
`--verify` writes no page and exits 1 if the page would change. A case that differs in silence makes it exit 1 too.
"""

import argparse
import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path

from conformance.page import page
from conformance.verdicts import outcomes

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "conformance.md"


def main() -> int:
    """Runs, writes, and says what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("cases", "opa", "engine"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--lines", type=Path)
    parser.add_argument("--verify", action="store_true")
    options = parser.parse_args()
    if not options.cases.is_dir():
        parser.error(f"there are no cases in {options.cases}: run `go mod download` for the OPA module")
    found = list(outcomes(options.cases, options.opa, options.engine))
    if options.lines:
        lines = (json.dumps(dataclasses.asdict(outcome)) for outcome in found)
        options.lines.write_text("\n".join(lines) + "\n", encoding="utf-8")
    text = page(found, opa_version(options.opa), engine_version())
    silent = [outcome for outcome in found if outcome.verdict == "silent"]
    for outcome in silent:
        print(
            f"differs in silence ({outcome.way}): {outcome.folder}: {outcome.note}: {outcome.reason}", file=sys.stderr
        )
    stale = options.verify and (not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text)
    if stale:
        print(f"{PAGE.relative_to(ROOT)} is stale: run `make conformance`", file=sys.stderr)
    elif not options.verify:
        PAGE.write_text(text, encoding="utf-8")
    return 1 if silent or stale or not found else 0


def opa_version(binary: Path) -> str:
    """The version that a binary of OPA gives itself."""
    said = subprocess.run([binary, "version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"^Version: (\S+)", said)
    if found is None:
        raise SystemExit(f"{binary} does not say which version of OPA it is")
    return f"v{found[1]}"


def engine_version() -> str:
    """The version of regorus that the crate names."""
    source = (ROOT / "native" / "src" / "lib.rs").read_text(encoding="utf-8")
    found = re.search(r'ENGINE_VERSION: &str = "([^"]+)"', source)
    if found is None:
        raise SystemExit("native/src/lib.rs does not name the version of its engine")
    return found[1]


if __name__ == "__main__":
    raise SystemExit(main())
