"""Measure the code by the points that CONTRIBUTING.md lists, and fail below a bar; run `python tests/quality.py`."""

from __future__ import annotations

import ast
import re
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BANNED = {"issue", "record", "match", "result", "data", "info", "manager", "handler", "utils", "helper", "misc"}
#: Names that are not ours to choose, each with whose it is.
GIVEN = {"INFO": "a severity of the documents", "data": "OPA's word for the base document"}
SUPPRESSION = re.compile(r"#\s*(noqa|type: ignore|pragma)[^#]*(#\s*\S.*)?$")


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function of a module."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring."""
    documented = ast.get_docstring(node, clean=False)
    return (node.end_lineno or node.lineno) - node.lineno + 1 - (documented.count("\n") + 1 if documented else 0)


def annotated(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether every argument and the return are annotated."""
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return node.returns is not None and all(entry.annotation or entry.arg in {"self", "cls"} for entry in arguments)


def banned(tree: ast.AST) -> list[str]:
    """Names we gave that are on the list of banned words."""
    given = [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    given += [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    given += [node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)]
    return sorted({name for name in given if name.lower() in BANNED and name not in GIVEN})


def body(text: str) -> str:
    """A policy below its header: from the `package` line, or from the function under `@policy(...)`."""
    return re.split(r"^(?:package|def) ", text, maxsplit=1, flags=re.MULTILINE)[-1]


def measures() -> Iterator[tuple[str, str, str, bool]]:
    """Each measure as (what, today's figure, the bar, whether it holds)."""
    paths = sorted((ROOT / "policyeng").rglob("*.py"))
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    policies = [
        path
        for path in (ROOT / "policies").rglob("*")
        if path.suffix in {".rego", ".py"} and path.stem == path.parent.name and path.parent.parent.name != "lib"
    ]
    whole = sorted(len(path.read_text(encoding="utf-8").splitlines()) for path in policies)
    bodies = [len(body(path.read_text(encoding="utf-8")).splitlines()) for path in policies]
    yield (
        "1 lines per policy below its header, median",
        f"{statistics.median(bodies):g}",
        "40",
        statistics.median(bodies) <= 40,
    )
    what = f"{statistics.median(whole):g}, {whole[-1]}"
    yield "1 lines per policy file with its header, median and longest", what, "-, 80", whole[-1] <= 80
    lengths = sorted(length(node) for tree in trees.values() for node in functions(tree))
    p95, longest = lengths[int(len(lengths) * 0.95)], lengths[-1]
    yield "8 lines per function, p95 and longest", f"{p95}, {longest}", "30, 50", p95 <= 30 and longest <= 50
    module = max(len(text.splitlines()) for text in texts.values())
    yield "8 lines per module, longest", str(module), "300", module <= 300
    crate = [path for place in ("src", "examples") for path in (ROOT / "native" / place).rglob("*.rs")]
    module = max(len(path.read_text(encoding="utf-8").splitlines()) for path in crate)
    yield "8 lines per module of Rust, longest", str(module), "300", module <= 300
    every = [node for tree in trees.values() for node in functions(tree)]
    share = 100 * sum(map(annotated, every)) / len(every)
    yield "9 functions annotated", f"{share:.1f} %", "100 %", share == 100
    loose = sum(
        isinstance(part, ast.Name) and part.id == "Any"
        for node in every
        for annotation in [node.returns, *(entry.annotation for entry in ast.walk(node) if isinstance(entry, ast.arg))]
        if annotation is not None
        for part in ast.walk(annotation)
    )
    yield "9 `Any` in signatures", str(loose), "20", loose <= 20
    public = next(
        ast.literal_eval(node.value)
        for node in trees[ROOT / "policyeng/__init__.py"].body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    yield "12 public names", str(len(public)), "15", len(public) <= 15
    lines = [line for text in texts.values() for line in text.splitlines()]
    quiet = [found for line in lines if (found := SUPPRESSION.search(line))]
    rate, reasoned = 1000 * len(quiet) / len(lines), all(found[2] for found in quiet)
    yield (
        "14 suppressions per 1,000 lines, all with a reason",
        f"{rate:.1f}, {reasoned}",
        "3, True",
        rate <= 3 and reasoned,
    )
    words = {path.name: names for path, tree in trees.items() if (names := banned(tree))}
    yield "15 banned words in names", str(words or 0), "0", not words


def main() -> int:
    """Print the table; 1 when a bar is missed."""
    rows = list(measures())
    for what, figure, bar, holds in rows:
        print(f"{'ok  ' if holds else 'MISS'} {what}: {figure} (bar {bar})")
    return int(not all(holds for *_, holds in rows))


if __name__ == "__main__":
    sys.exit(main())
