"""Read the cases that OPA tests itself with.

Source of the format: `v1/test/cases/cases.go` and `testRun` in `v1/topdown/exported_test.go` of the OPA module.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml


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
    """One case.

    Attributes:
        version: of Rego.
        modules: texts by file name.
        data: as JSON text.
        input: as JSON text, None for none.
        term: an input in Rego, for what JSON cannot represent.
        expected: the values of the variables of the query for each solution; None where an error is expected.
        unordered: whether the order of arrays does not matter.
    """

    version: int
    folder: str
    note: str
    query: str
    modules: dict[str, str]
    data: str
    input: str | None
    term: str | None
    expected: list[Any] | None
    unordered: bool


def read_cases(root: Path) -> Iterator[Case]:
    """Yield the cases of both versions of Rego below a folder, in the order of the names of the files."""
    for version in (1, 0):
        for path in sorted((root / f"v{version}").rglob("*.yaml")):
            with path.open(encoding="utf-8") as stream:
                parsed = yaml.load(stream, Loader=_Loader)  # noqa: S506  # a safe loader without dates
            for entry in parsed["cases"]:
                yield _read_case(version, path.relative_to(root).parts[1], entry)


def _read_case(version: int, folder: str, entry: dict[str, Any]) -> Case:
    return Case(
        version=version,
        folder=folder,
        note=entry["note"],
        query=entry["query"].strip(),
        modules={f"test-{index}.rego": source for index, source in enumerate(entry.get("modules") or [])},
        data=json.dumps(entry.get("data") or {}),
        input=json.dumps(entry["input"]) if "input" in entry else None,
        term=entry.get("input_term"),
        expected=None if "want_error" in entry or "want_error_code" in entry else entry["want_result"],
        unordered=bool(entry.get("sort_bindings")),
    )
