"""Modules with what they mean: the value of a document, or the codes of what is wrong, as OPA gives both."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from policyeng import rego
from policyeng.rego.values import to_json

INPUT = {"x": 1, "y": {"a": True}, "k": "a", "word": "no number", "xs": ["a", "b", "z"], "no": False}


@dataclass(frozen=True)
class Meaning:
    """What a program means.

    Attributes:
        value: of the query for `INPUT`; None where it is undefined.
        codes: of what is wrong; then there is no value.
        data: base data.
    """

    modules: tuple[str, ...]
    value: Any = None
    codes: tuple[str, ...] = ()
    query: str = "data.p"
    version: int = 1
    data: Mapping[str, Any] = field(default_factory=dict)


def means(*modules: str, is_old: bool = False, query: str = "data.p", data: Any = None, **value: Any) -> Meaning:
    """Return the meaning of modules, the first of which is of the package `p`, whose members are keywords."""
    return Meaning((f"package p\n{modules[0]}\n", *modules[1:]), value, (), query, 0 if is_old else 1, data or {})


def is_value(value: Any, *modules: str, query: str, data: Any = None) -> Meaning:
    """Return the meaning of a query that is not of the whole package `p`; see `means`."""
    return Meaning((f"package p\n{modules[0]}\n", *modules[1:]), value, (), query, 1, data or {})


def fails(code: str, *modules: str, is_old: bool = False, query: str = "data.p", data: Any = None) -> Meaning:
    """Return the meaning of modules of which one is refused or ends in an error; see `means`."""
    return Meaning((f"package p\n{modules[0]}\n", *modules[1:]), None, (code,), query, 0 if is_old else 1, data or {})


def evaluate_ours(meaning: Meaning) -> tuple[Any, tuple[str, ...]]:
    """Return the value that this engine gives, and the codes of what is wrong, each once."""
    modules = {f"m{number}.rego": text for number, text in enumerate(meaning.modules)}
    try:
        found = rego.compile(modules, meaning.data, version=meaning.version).query(meaning.query, INPUT)
    except rego.RegoError as error:
        return None, tuple(sorted({fault.code for fault in error.diagnostics}))
    except rego.EvaluationError as error:
        return None, (error.code,)
    return None if found is rego.UNDEFINED else to_json(found), ()


def evaluate_with_opa(opa: Path, meaning: Meaning) -> tuple[Any, tuple[str, ...]]:
    """Return what OPA gives for the same."""
    with tempfile.TemporaryDirectory() as folder:
        files = {f"m{number}.rego": text for number, text in enumerate(meaning.modules)}
        files |= {"data.json": json.dumps(meaning.data), "input.json": json.dumps(INPUT)}
        command = [str(opa), "eval", "--strict-builtin-errors", "-f", "json", "-i", str(Path(folder, "input.json"))]
        command += [] if meaning.version else ["--v0-compatible"]
        for name, text in files.items():
            Path(folder, name).write_text(text, encoding="utf-8")
            command += ["-d", str(Path(folder, name))] if name != "input.json" else []
        ran = subprocess.run([*command, meaning.query], capture_output=True, text=True, check=False, timeout=100)
    given = json.loads(ran.stdout)
    if "errors" in given:
        return None, tuple(sorted({error["code"] for error in given["errors"]}))
    return (given["result"][0]["expressions"][0]["value"] if "result" in given else None), ()
