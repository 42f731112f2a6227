"""Report what to simplify, and fail for what is not allowed; run `python -m tests.quality`."""

from __future__ import annotations

import ast
import re
import sys
import tokenize
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from io import StringIO
from itertools import chain
from pathlib import Path

import grimp

from policyeng.bundle import load_bundle
from policyeng.bundle.cases import read_cases
from policyeng.verify.laws import LAWS

ROOT = Path(__file__).resolve().parents[1]
SMALL, LARGE = 150, 600
#: How many classes of the package share their name with another one. Lower it with each that gets a name of its own.
CLASSES_THAT_SHARE_A_NAME = 2
#: Words that describe nothing, alone or at the end of a name.
VAGUE = re.compile(r"(^|_|(?<=[a-z0-9]))(utils?|helpers?|misc|manager)$", re.IGNORECASE)
SUPPRESSION = re.compile(r"#\s*(noqa|type: ignore|pragma)")
REASONED = re.compile(r"#[^#]+#\s*\S")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
FIGURE = re.compile(r"\b\d[\d,]* (policies|cases|laws|controls|rules|builtins)\b")
#: Pages that commands write from what they measured.
MEASURED = re.compile(r"benchmarks.*|conformance")


def policies() -> int:
    """Count the built-in policies."""
    return len(load_bundle().policies)


def cases() -> int:
    """Count the cases of the built-in policies."""
    files = [read_cases(policy) for policy in load_bundle().policies]
    return sum(len([*file.named()]) for file in files if file)


#: Figures of the documents: the page, an expression whose group is the figure, and what counts it.
FIGURES: tuple[tuple[str, str, Callable[[], int]], ...] = (
    ("README.md", r"(\d+) policies", policies),
    ("docs/commands.md", r"\[(\w+) laws\]", lambda: len(LAWS)),
    ("CONTRIBUTING.md", r"(\d[\d,]*) cases", cases),
    ("CONTRIBUTING.md", r"(\d[\d,]*) laws", lambda: len(LAWS)),
)
WORDS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


@cache
def names() -> dict[Path, list[tuple[str, str]]]:
    """Find the names that each module of the package and of the policies gives, with the kind of each."""
    paths = sorted(chain((ROOT / "policyeng").rglob("*.py"), (ROOT / "policies").rglob("*.py")))
    return {path.relative_to(ROOT): [*names_in(path)] for path in paths}


def names_in(path: Path) -> Iterator[tuple[str, str]]:
    """Find the names that a module gives, and its own."""
    yield from (("module", part) for part in path.relative_to(ROOT).with_suffix("").parts)
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ClassDef):
            yield "class", node.name
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield "function", node.name
        elif isinstance(node, ast.arg):
            yield "variable", node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield "variable", node.id


def reports() -> Iterator[str]:
    """Name modules that may be part of another one, and modules that may be several."""
    graph = grimp.build_graph("policyeng", exclude_type_checking_imports=True)
    for name in sorted(graph.modules):
        path = ROOT.joinpath(*name.split(".")).with_suffix(".py")
        if path.exists():
            lines, importers = path.read_text("utf-8").count("\n"), graph.find_modules_that_directly_import(name)
            if lines < SMALL and len(importers) == 1:
                yield f"{name}: {lines} lines, imported only by {next(iter(importers))}"
            if lines > LARGE:
                yield f"{name}: {lines} lines"


def shared_names() -> Iterator[str]:
    """Compare how many classes share a name with the recorded number."""
    places = defaultdict(list)
    for path, found in names().items():
        for kind, name in found:
            if kind == "class":
                places[name].append(str(path))
    shared = {name: found for name, found in places.items() if len(found) > 1}
    number = sum(map(len, shared.values()))
    if number > CLASSES_THAT_SHARE_A_NAME:
        yield from (f"{name}: {', '.join(paths)}" for name, paths in sorted(shared.items()))
    if number != CLASSES_THAT_SHARE_A_NAME:
        recorded = f"CLASSES_THAT_SHARE_A_NAME is {CLASSES_THAT_SHARE_A_NAME}"
        yield f"{number} classes share a name, and {recorded}: rename the new ones, or lower the number"


def vague_names() -> Iterator[str]:
    """Find names that describe nothing."""
    for path, found in names().items():
        yield from (f"{path}: the {kind} `{name}` describes nothing" for kind, name in found if VAGUE.search(name))


def bare_suppressions() -> Iterator[str]:
    """Find suppressions without a reason after them."""
    for path in chain(names(), *((ROOT / folder).rglob("*.py") for folder in ("benchmarks", "tools"))):
        text = (ROOT / path).read_text("utf-8")
        for token in tokenize.generate_tokens(StringIO(text).readline) if SUPPRESSION.search(text) else ():
            comment = token.string if token.type == tokenize.COMMENT else ""
            if SUPPRESSION.match(comment) and not REASONED.match(comment):
                yield f"{path}:{token.start[0]}: `{comment}` needs a reason: `# noqa: X  # why`"


def unlisted_layers() -> Iterator[str]:
    """Require that import-linter has a layer for every module."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    if not any(contract["type"] == "layers" and contract.get("exhaustive") for contract in contracts):
        yield "pyproject.toml: the layers of import-linter are not exhaustive"


def stale_figures() -> Iterator[str]:
    """Compare the figures of the documents with what there is."""
    for page, expression, count in FIGURES:
        found = re.findall(expression, (ROOT / page).read_text("utf-8"))
        if not found:
            yield f"{page}: nothing matches `{expression}`; correct FIGURES"
        for figure in found:
            number = WORDS.index(figure) if figure in WORDS else int(figure.replace(",", ""))
            if number != count():
                yield f"{page}: `{figure}` ({expression}) is {count():,}"
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))):
        page, text = str(path.relative_to(ROOT)), FENCED.sub("", path.read_text("utf-8"))
        for match in () if MEASURED.fullmatch(path.stem) else FIGURE.finditer(text):
            if not any(page == listed and re.search(expression, match[0]) for listed, expression, _ in FIGURES):
                yield f"{page}: nothing keeps `{match[0]}` true; add it to FIGURES"


CHECKS = (shared_names, vague_names, bare_suppressions, unlisted_layers, stale_figures)


def main() -> int:
    """Print the reports and the faults; 1 when there are faults."""
    print(*reports(), sep="\n")
    faults = [fault for check in CHECKS for fault in check()]
    print(*faults, f"{len(faults)} faults", sep="\n")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
