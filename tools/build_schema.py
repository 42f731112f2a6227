"""Write `policyeng/schema/*.json` from the SDK packages of the vendor.

    python tools/build_schema.py [--verify | --requirements {current,older}]

`sources.csv` pins for each type the packages, modules and API versions that it is read from, the first of them the one
that describes it. They are installed into environments in `.tools/schema` with the hashes in `current.lock` and
`older.lock`, and read as text. `overlay.csv` has what they do not say, each row with its source. The same packages and
tables give the same bytes. `--verify` writes nothing and exits 1 if a file differs.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from schema.graph import Graph, Row, lines_of, overlay_rows
from schema.sdk import Models, read_models

from policyeng.bundle import load_bundle
from policyeng.bundle.cases import baselines_of
from policyeng.facts.coverage import FURTHER, LISTED
from policyeng.models import lowered

ROOT = Path(__file__).resolve().parents[1]
TABLES = Path(__file__).resolve().parent / "schema"
DATA = ROOT / "policyeng" / "schema"
ENVIRONMENTS = ROOT / ".tools" / "schema"


class Source(NamedTuple):
    """A row of `sources.csv`: `types` is one type, or all of a namespace."""

    types: str
    package: str
    module: str
    api_version: str

    @property
    def namespace(self) -> str:
        """The part of its types before the first slash."""
        return self.types.partition("/")[0]

    @property
    def name(self) -> str:
        """The package without its version."""
        return self.package.partition("==")[0]


def sources() -> list[Source]:
    """Return the table of packages."""
    with (TABLES / "sources.csv").open(encoding="utf-8", newline="") as file:
        return [Source(**row) for row in csv.DictReader(file)]


def environments(rows: Iterable[Source]) -> dict[str, str]:
    """Return by package, with its version, the environment: `older` for a second version of one."""
    placed: dict[str, str] = {}
    names = set[str]()
    for row in rows:
        if row.package not in placed:
            placed[row.package] = "older" if row.name in names else "current"
            names.add(row.name)
    return placed


def looked_up() -> set[str]:
    """Return the lower-case types that policies judge or look up, and that their cases have."""
    bundle = load_bundle()
    judged = {lowered(target.type) for policy in bundle.policies for target in policy.header.judges}
    referred = {kind for reach in bundle.reaches for kind in reach.types}
    in_cases = {lowered(resource["type"]) for resource in baselines_of(bundle).resources.values()}
    return {kind for kind in (*judged, *referred, *in_cases, *map(lowered, LISTED), *FURTHER) if "/" in kind}


def install(environment: str) -> Path:
    """Return the folder of an environment with its packages, which are installed unless their lock is as it was.

    Raises:
        SystemExit: they cannot be installed.
    """
    folder, lock = ENVIRONMENTS / environment, TABLES / f"{environment}.lock"
    stamp = folder / "installed.lock"
    if not stamp.exists() or stamp.read_bytes() != lock.read_bytes():
        python = folder / "bin" / "python"
        options = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-compile", "--only-binary=:all:")
        for command in (
            (sys.executable, "-m", "venv", "--clear", folder),
            (python, "-m", "pip", "install", *options, "--require-hashes", "--requirement", lock),
        ):
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(
                    f"the packages of {lock.name} cannot be installed from PyPI:\n{done.stderr}{done.stdout}"
                )
        stamp.write_bytes(lock.read_bytes())
    return next((folder / "lib").glob("python*/site-packages"))


def _read(row: Source, folder: Path) -> Models:
    module = folder / row.module
    texts = (
        file.read_text(encoding="utf-8")
        for part in ("operations/*.py", "_configuration.py")
        for file in module.glob(part)
    )
    if not any(f'"{row.api_version}"' in text for text in texts):
        raise SystemExit(f"{row.package}: {row.module} is not of the version {row.api_version}")
    return read_models(module, row.api_version)


def _select(row: Source, models: Models) -> list[str]:
    if row.types.endswith("/*"):
        return sorted(kind for kind in models.types if kind.startswith(row.types[:-1]))
    return [kind for kind in models.types if lowered(kind) == lowered(row.types)]


def generate(rows: list[Source], folders: dict[str, Path], overlay: Collection[Row]) -> dict[str, str]:
    """Return the files by name."""
    placed, graphs, cached = environments(rows), defaultdict[str, Graph](Graph), dict[tuple[str, str], Models]()
    for row in rows:
        key = (row.package, row.module)
        if key not in cached:
            cached[key] = _read(row, folders[placed[row.package]])
        models = cached[key]
        selected = _select(row, models)
        if not selected:
            raise SystemExit(f"{row.package}: {row.module} has no {row.types}")
        if not row.types.endswith("/*"):  # the table spells it, where operations of one package differ
            models.types[row.types] = models.types[selected[0]]
            selected = [row.types]
        graphs[row.namespace].add(models, selected, row.name)
    for namespace, graph in graphs.items():
        graph.overlay(one for one in overlay if one.namespace == namespace)
    return {f"{lowered(name)}.json": "".join(lines_of(graph.document())) for name, graph in sorted(graphs.items())}


def main() -> int:
    """Write or verify the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verify", action="store_true")
    parser.add_argument("--requirements", choices=("current", "older"))
    options = parser.parse_args()
    rows = sources()
    placed = environments(rows)
    if options.requirements:
        print("\n".join(sorted(package for package, where in placed.items() if where == options.requirements)))
        return 0
    files = generate(
        rows, {name: install(name) for name in sorted({*placed.values()})}, overlay_rows(TABLES / "overlay.csv")
    )
    types = {lowered(kind) for text in files.values() for kind in json.loads(text)["types"]}
    if missing := looked_up() - types:
        raise SystemExit(f"policies look up types that sources.csv does not have: {', '.join(sorted(missing))}")
    there = {path.name: path.read_text(encoding="utf-8") for path in DATA.glob("*.json")}
    if options.verify:
        for name in sorted(name for name in {*there, *files} if there.get(name) != files.get(name)):
            print(f"{name} is not what the packages and tables give: run `make schema`")
        return int(there != files)
    for name in there.keys() - files.keys():
        (DATA / name).unlink()
    for name, text in files.items():
        (DATA / name).write_text(text, encoding="utf-8")
    print(_summary(files))
    return 0


def _summary(files: dict[str, str]) -> str:
    documents = [json.loads(text) for text in files.values()]
    counts = {part: sum(len(document[part]) for document in documents) for part in ("types", "objects", "enumerations")}
    members = sum(len(model) for document in documents for model in document["objects"].values())
    words = sum(len(words) for document in documents for words in document["enumerations"].values())
    size = sum(len(text.encode()) for text in files.values())
    described = ", ".join(f"{count} {part}" for part, count in counts.items())
    return f"{described}, {members} members, {words} words, {size} bytes in {len(files)} files"


if __name__ == "__main__":
    sys.exit(main())
