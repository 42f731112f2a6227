"""Measure the code by the points that CONTRIBUTING.md lists, and fail below a bar; run `python tests/quality.py`."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Words that describe nothing; a name that needs one has no subject yet.
VAGUE = {"manager", "utils", "helper", "helpers", "misc"}
SUPPRESSION = re.compile(r"#\s*(noqa|type: ignore|pragma)[^#]*(#\s*\S.*)?$")


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function of a module."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def annotated(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether every argument and the return are annotated."""
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return node.returns is not None and all(entry.annotation or entry.arg in {"self", "cls"} for entry in arguments)


def vague(tree: ast.AST) -> list[str]:
    """Find the names in a module that describe nothing."""
    given = [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    given += [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    given += [node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)]
    return sorted({name for name in given if name.lower() in VAGUE})


def measures() -> Iterator[tuple[str, str, str, bool]]:
    """Each measure as (what, today's figure, the bar, whether it holds)."""
    paths = sorted((ROOT / "policyeng").rglob("*.py"))
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    trees = {path: ast.parse(text) for path, text in texts.items()}
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
    words = {path.name: names for path, tree in trees.items() if (names := vague(tree))}
    yield "15 vague words in names", str(words or 0), "0", not words


def main() -> int:
    """Print the table; 1 when a bar is missed."""
    rows = list(measures())
    for what, figure, bar, holds in rows:
        print(f"{'ok  ' if holds else 'MISS'} {what}: {figure} (bar {bar})")
    return int(not all(holds for *_, holds in rows))


if __name__ == "__main__":
    sys.exit(main())
