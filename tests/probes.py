"""Evaluate words of the Rego library in process, so that the suite can compare them with the same words in Python."""

from __future__ import annotations

from typing import Any

import orjson

from policyeng import rego
from policyeng.bundle import load_bundle
from policyeng.engines.embedded import json_value
from policyeng.evaluation.prepared_snapshot import group_by_type
from policyeng.models import JsonObject

_BUNDLE = load_bundle()
_LIBRARY = [(path, source) for path, source in _BUNDLE.modules if path.startswith("lib/")]
_AS_OF = "2026-06-01T00:00:00Z"


class Probe:
    """Rego expressions over `input.resource`, the document, compiled once.

    Each expression gives the list of its one value, or an empty list where it is undefined.
    """

    def __init__(self, *imports: str, **expressions: str) -> None:
        """Compile `name = expression`; `imports` are names of the library such as `words`."""
        imported = "\n".join(f"import data.lib.{name}" for name in imports)
        members = ",\n".join(f'"{name}": [probed | probed = {text}]' for name, text in expressions.items())
        module = f'package probe\n{imported}\ndeny contains {{"msg": "m", "actual": {{\n{members}\n}}}}\n'
        self._program = rego.compile(dict([*_LIBRARY, ("probe.rego", module)]), orjson.loads(_BUNDLE.data_bytes))

    def __call__(self, resource: JsonObject, snapshot: JsonObject | None = None) -> dict[str, Any]:
        """The value of each expression for a document; `snapshot` is `input.snapshot`, the document alone by default.

        Of a snapshot with resources, as an estate has it, the first one is the document.
        """
        document: JsonObject = {"resources": [resource], "workloads": [], "approvals": [], **(snapshot or {})}
        view = orjson.loads(orjson.dumps(document))
        by_id = {one["id"].lower(): one for one in view["resources"] if isinstance(one.get("id"), str)}
        named = [one for one in view["resources"] if isinstance(one.get("type"), str)]
        view = {"by_id": by_id, "by_type": group_by_type(named), **view}
        given = {"resource": view["resources"][0], "workspace": None, "snapshot": view}
        (found,) = json_value(self._program.query("data.probe.deny", {**given, "parameters": {}, "as_of": _AS_OF}))
        results: dict[str, Any] = found["actual"]
        return results
