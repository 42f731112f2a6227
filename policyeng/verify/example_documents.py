"""Convert examples to JSON documents, snapshot files and configuration files, and back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime

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
