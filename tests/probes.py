"""Ask the Rego library what it says, in process, so that the suite can hold it against the same words in Python."""

from __future__ import annotations

from typing import Any

import orjson

from policyeng import _native
from policyeng.bundle import load_bundle
from policyeng.models import JsonObject

_BUNDLE = load_bundle()
_LIBRARY = [(path, source) for path, source in _BUNDLE.modules if path.startswith("lib/")]
_AS_OF = "2026-06-01T00:00:00Z"


class Probe:
    """Rego expressions over `input.resource`, the document asked about, compiled once.

    Each expression gives the list of its one value, or an empty list where it is undefined.
    """

    def __init__(self, *imports: str, **expressions: str) -> None:
        """Compile `name = expression`; `imports` are names of the library such as `words`."""
        imported = "\n".join(f"import data.lib.{name}" for name in imports)
        members = ",\n".join(f'"{name}": [said | said = {text}]' for name, text in expressions.items())
        module = f'package probe\n{imported}\ndeny contains {{"msg": "m", "actual": {{\n{members}\n}}}}\n'
        modules = [*_LIBRARY, ("probe.rego", module)]
        self._program = _native.Program(modules, _BUNDLE.data_bytes, [("probe", [("deny", "data.probe.deny")])])

    def __call__(self, asked: JsonObject, snapshot: JsonObject | bytes = b"") -> dict[str, Any]:
        """What each expression says of a document; `snapshot` is `input.snapshot`, the document alone by default.

        A snapshot given as bytes is that of an estate: its first resource is what is asked about.
        """
        text = snapshot or orjson.dumps({"resources": [asked], "workloads": [], "approvals": []})
        if isinstance(snapshot, dict):
            text = orjson.dumps({"workloads": [], "approvals": [], **snapshot, "resources": [asked]})
        documents = _native.Documents(text)  # type: ignore[arg-type]  # a mapping became bytes above
        (verdict,) = self._program.judge(documents, [(0, 0, -1)], [b"{}"], _AS_OF)
        assert isinstance(verdict, bytes), verdict
        said: dict[str, Any] = orjson.loads(verdict)["deny"][0]["actual"]
        return said
