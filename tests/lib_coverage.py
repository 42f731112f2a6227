"""Assert that the Rego unit tests reach every line of `policies/lib`; give OPA and the bundle as arguments.

OPA 1.22 reports a file of a bundle under two names: what ran under `policies/lib/x.rego`, always as 100 %, and what did
not under `policies/policies/lib/x.rego`. Only both together say how much of a file is covered.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


def missed(report: Mapping[str, Any], modules: list[str]) -> Iterator[str]:
    """What the tests do not reach, as `lib/x.rego:ROW`, or `lib/x.rego` when nothing in it ran.

    Args:
        report: what `opa test --coverage --format json` prints.
        modules: the files that ought to be covered, relative to the bundle.
    """
    for module in modules:
        parts = [part for file, part in report["files"].items() if file.endswith(f"/{module}")]
        if not any(part.get("covered") for part in parts):
            yield module
            continue
        rows = {row for part in parts for span in part.get("not_covered", ()) for row in _rows(span)}
        yield from (f"{module}:{row}" for row in sorted(rows))


def _rows(span: Mapping[str, Mapping[str, int]]) -> range:
    return range(span["start"]["row"], span["end"]["row"] + 1)


def main(opa: str, bundle: str) -> int:
    """Run the tests with coverage; 1 when a line of the library is not covered."""
    modules = [f"lib/{path.name}" for path in sorted(Path(bundle, "lib").glob("*.rego"))]
    modules = [module for module in modules if not module.endswith("_test.rego")]
    command = [opa, "test", "--bundle", bundle, "--coverage", "--format", "json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = list(missed(json.loads(ran.stdout), modules))
    for line in lines:
        print(f"no Rego unit test reaches {line}", file=sys.stderr)
    print(f"{len(modules)} files of the library, {len(lines)} places that no test reaches")
    return int(bool(lines) or not modules)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
