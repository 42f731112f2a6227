"""Write examples as documents that reproduce a failure, and read them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import orjson

from policyeng.bundle import Bundle
from policyeng.bundle.cases import DEFAULT_AS_OF
from policyeng.models import Exemption, JsonObject, Snapshot
from policyeng.sources import read_inputs
from policyeng.verify.generators.examples import Example
from policyeng.verify.generators.json_mutations import Json


def document_of(example: Example) -> JsonObject:
    """Return an example as one JSON document: `snapshot`, `parameters` by policy id, `asOf`, and any `exemptions`."""
    exemptions = [entry.model_dump(mode="json", by_alias=True) for entry in example.exemptions]
    return {
        "snapshot": example.document,
        "parameters": dict(example.parameters),
        "asOf": example.as_of.isoformat(),
        **({"exemptions": exemptions} if exemptions else {}),
    }


def example_of(document: Json) -> Example:
    """Return the example of a document; the defaults are no parameters and the clock of cases.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: the document is not an example.
    """
    if not isinstance(document, dict):
        raise TypeError("not an example")
    snapshot: JsonObject = dict(document["snapshot"])  # type: ignore[arg-type]  # else it raises TypeError
    if not all(isinstance(resource, dict) for resource in snapshot["resources"]):
        raise TypeError("a resource is not an object")
    parameters: JsonObject = dict(document.get("parameters") or {})  # type: ignore[arg-type]  # the same
    stated = document.get("asOf")
    as_of = datetime.fromisoformat(stated) if isinstance(stated, str) else DEFAULT_AS_OF
    if as_of.tzinfo is None:
        raise ValueError("the clock has no time zone")
    stated_exemptions = document.get("exemptions")
    exemptions = tuple(map(Exemption.model_validate, stated_exemptions)) if isinstance(stated_exemptions, list) else ()
    return Example(snapshot, parameters, as_of, exemptions)


def read(document: JsonObject, bundle: Bundle | None = None) -> Snapshot | None:
    """Read a snapshot as `policyeng check` does; None if a part is refused, or if no single file can represent it.

    Without a bundle, and for one whose policies evaluate no documents, it is a native snapshot.
    """
    if not _is_one_file(document):
        return None
    try:
        text = orjson.dumps(_file(document))
    except TypeError:  # an integer beyond 64 bits, which the reader refuses
        return None
    if bundle is not None and bundle.wanted["documents"]:
        inputs = read_inputs(["-"], stdin=text, **bundle.wanted)
    else:
        inputs = read_inputs(["-"], from_format="native", stdin=text)
    return None if any(problem.level == "error" for problem in inputs.problems) else inputs.snapshot


def drop_unreadable(document: JsonObject) -> Iterator[JsonObject]:
    """Yield a document of an example unchanged, without the resources that the reader refuses, and as one file."""
    yield document
    snapshot = document["snapshot"]
    accepted = [resource for resource in snapshot["resources"] if read({"resources": [resource]}) is not None]
    yield {**document, "snapshot": {**snapshot, "resources": accepted}}
    if not _is_one_file(snapshot):
        yield {**document, "snapshot": {"resources": [], "documents": snapshot["documents"]}}
        yield {**document, "snapshot": {**snapshot, "resources": accepted, "documents": []}}


def snapshot_text(example: Example) -> str:
    """Return an example as a file for `policyeng check`: a native snapshot, or the documents that are evaluated.

    An example that no single file can represent becomes a native snapshot with `documents`, which no reader accepts.
    """
    document = example.document
    return text_of(_file(document) if _is_one_file(document) else native(document))


def text_of(document: object) -> str:
    """Return a document as JSON, including the integers beyond 64 bits that random examples contain."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _is_one_file(document: JsonObject) -> bool:
    """Check whether a document has only documents, or none."""
    return not document.get("documents") or not any(value for key, value in document.items() if key != "documents")


def _file(document: JsonObject) -> object:
    """Return the content of the file: several documents are the elements of a list, which the reader splits."""
    contents = [entry["content"] for entry in document.get("documents", ())]
    if not contents:
        return native({key: value for key, value in document.items() if key != "documents"})
    return contents if len(contents) > 1 or isinstance(contents[0], list) else contents[0]


def native(document: JsonObject) -> JsonObject:
    """Return the document of an example as that of a native snapshot."""
    return {"snapshotVersion": 1, **document}


def is_sayable(value: object) -> bool:
    """Check whether TOML can express a value; it has no null."""
    if isinstance(value, dict):
        return all(map(is_sayable, value.values()))
    return all(map(is_sayable, value)) if isinstance(value, list) else value is not None


def toml_of(parameters: Mapping[str, JsonObject]) -> str:
    """Return a configuration with these parameters by policy id, which TOML can express; empty if there are none."""
    lines: list[str] = []
    for policy, own in parameters.items():
        lines += [f"[parameters.{_text(policy)}]", *(f"{_text(name)} = {_toml(value)}" for name, value in own.items())]
    return "".join(f"{line}\n" for line in lines)


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_text(key)} = {_toml(inner)}' for key, inner in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return _text(value) if isinstance(value, str) else json.dumps(value)


def _text(text: str) -> str:
    """Return a basic string; it has the escapes of JSON, and must not contain a bare delete character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


#: The path of a counterexample without a file: standard input.
_NO_FILE = Path("-")


def settings_of(example: Example) -> str:
    """Return the parameters of an example as a `policyeng.toml`; empty if it has none, or TOML cannot express them."""
    return toml_of(example.parameters) if is_sayable(dict(example.parameters)) else ""


def settings_path(path: Path) -> Path:
    """Return the path for the parameters of an example, next to its snapshot."""
    return path.with_name(f"{path.stem}.toml")


def command(example: Example, policy: str, given: Sequence[str] = (), path: Path | None = None) -> list[str]:
    """Return the words of the command that evaluates an example.

    Args:
        example: the example, with its clock and parameters.
        policy: the id of the policy to evaluate, or several with commas between them; all policies if empty.
        given: the options of the command line that name the policies, to repeat.
        path: the file of its snapshot; None if it is given on standard input.
    """
    chosen = ["--select", policy] if policy else []
    settings = ["--config", str(settings_path(path or Path("counterexample.json")))] if settings_of(example) else []
    moment = ["--as-of", example.as_of.isoformat()]
    return ["policyeng", "check", str(path or _NO_FILE), *given, *chosen, *moment, *settings]


def list_other_parts(example: Example, path: Path | None) -> Iterator[str]:
    """Yield the lines of the parts of an example that are not in files; `path` is the file of its snapshot, if any."""
    if path is None or not settings_of(example):
        yield from list_parameters(example)
    if path is None:
        yield from _lines_of(snapshot_text(example))


def list_parameters(example: Example) -> Iterator[str]:
    """Yield the parameters of an example as lines of a `policyeng.toml`, or as JSON if TOML cannot express them."""
    text = settings_of(example)
    if not text and example.parameters:
        text = json.dumps(dict(example.parameters), ensure_ascii=False)
    for at, line in enumerate(_lines_of(text)):
        yield f"{'' if at else 'parameters':12} {line}"


def _lines_of(text: str) -> list[str]:
    """Split a text at the line ends of JSON and TOML; other line ends can be part of strings."""
    return text.rstrip("\n").split("\n") if text else []
