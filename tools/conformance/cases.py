"""The cases that OPA tests itself with, each as a bundle with one rule to ask for.

OPA runs a query and looks at the values of its variables. A policy of ours has a rule, so each query becomes the body
of a rule that holds one object of those values for each solution, which is also what `deny` of a policy looks like.
Source of the format: `v1/test/cases/cases.go` and `testRun` in `v1/topdown/exported_test.go` of the OPA module.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

PACKAGE = "policyeng_conformance"
RULE = f"data.{PACKAGE}.rows"
_LAST_VARIABLE = re.compile(r"=\s*([a-z_]\w*)\s*$")


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # the faster of two classes
    """YAML as OPA reads its cases: a date is a string, and so are `yes` and `on`."""


_LOADER: Any = _Loader
_LOADER.yaml_implicit_resolvers = {
    letter: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":timestamp", ":bool"))]
    for letter, resolvers in _Loader.yaml_implicit_resolvers.items()
}
_LOADER.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(?:true|false)$"), ["t", "f"])


@dataclass(frozen=True)
class Case:
    """One case: the bundle, the input and what OPA's own test expects.

    `modules` are (path, source); `facts` and `document` are JSON texts, the latter `None` without an input; `term` is
    an input in Rego, for what JSON cannot say. `expected` are the rows, `None` when an error is expected.
    """

    folder: str
    note: str
    query: str
    modules: tuple[tuple[str, str], ...]
    facts: str
    document: str | None
    term: str | None
    expected: list[Any] | None
    unordered: bool


def cases_of(root: Path) -> Iterator[Case]:
    """The cases below a folder, in the order of the files' names."""
    for path in sorted(root.rglob("*.yaml")):
        folder = path.relative_to(root).parts[0]
        with path.open(encoding="utf-8") as stream:
            parsed = yaml.load(stream, Loader=_Loader)  # noqa: S506  a safe loader without dates
        for entry in parsed["cases"]:
            yield _case(folder, entry)


def _case(folder: str, entry: dict[str, Any]) -> Case:
    wanted = None if "want_error" in entry or "want_error_code" in entry else entry["want_result"]
    modules = [(f"test-{index}.rego", source) for index, source in enumerate(entry.get("modules") or [])]
    modules.append(("query.rego", _rule(entry["query"], entry.get("want_result") or [])))
    return Case(
        folder=folder,
        note=entry["note"],
        query=entry["query"].strip(),
        modules=tuple(modules),
        facts=json.dumps(entry.get("data") or {}),
        document=json.dumps(entry["input"]) if "input" in entry else None,
        term=entry.get("input_term"),
        expected=wanted,
        unordered=bool(entry.get("sort_bindings")),
    )


def _rule(query: str, rows: list[dict[str, Any]]) -> str:
    """The module whose set of rows holds the solutions of a query."""
    names = sorted(rows[0]) if rows else _LAST_VARIABLE.findall(query.strip())
    row = ", ".join(f'"{name}": {name}' for name in names)
    return f"package {PACKAGE}\n\nrows contains {{{row}}} if {{ {query.strip()} }}\n"
