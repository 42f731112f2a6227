"""An example as a JSON document, a snapshot file and a configuration file, and back."""

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
    """An example as one JSON document: `snapshot`, `parameters` by policy id, `asOf`, and any `exemptions`."""
    exemptions = [entry.model_dump(mode="json", by_alias=True) for entry in example.exemptions]
    return {
        "snapshot": example.document,
        "parameters": dict(example.parameters),
        "asOf": example.as_of.isoformat(),
        **({"exemptions": exemptions} if exemptions else {}),
    }


def example_of(document: Json) -> Example:
    """The example of a document; without `parameters` they are the defaults, without `asOf` the clock is that of cases.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: it is no example.
    """
    if not isinstance(document, dict):
        raise TypeError("not an example")
    snapshot: JsonObject = dict(document["snapshot"])  # type: ignore[arg-type]  # else it raises TypeError
    if not all(isinstance(resource, dict) for resource in snapshot["resources"]):
        raise TypeError("a resource that is no object")
    parameters: JsonObject = dict(document.get("parameters") or {})  # type: ignore[arg-type]  # the same
    stated = document.get("asOf")
    as_of = datetime.fromisoformat(stated) if isinstance(stated, str) else DEFAULT_AS_OF
    if as_of.tzinfo is None:
        raise ValueError("a clock without a zone")
    kept = document.get("exemptions")
    exemptions = tuple(map(Exemption.model_validate, kept)) if isinstance(kept, list) else ()
    return Example(snapshot, parameters, as_of, exemptions)


def read(document: JsonObject, bundle: Bundle | None = None) -> Snapshot | None:
    """A snapshot as `policyeng check` reads its file for a bundle; None when it refuses a part, or no file says it.

    Without a bundle, and for one that judges no documents, it is a native snapshot.
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


def readable(document: JsonObject) -> Iterator[JsonObject]:
    """A document of an example as it is, without the resources that the reader refuses, and what one file says."""
    yield document
    snapshot = document["snapshot"]
    kept = [resource for resource in snapshot["resources"] if read({"resources": [resource]}) is not None]
    yield {**document, "snapshot": {**snapshot, "resources": kept}}
    if not _is_one_file(snapshot):
        yield {**document, "snapshot": {"resources": [], "documents": snapshot["documents"]}}
        yield {**document, "snapshot": {**snapshot, "resources": kept, "documents": []}}


def snapshot_text(example: Example) -> str:
    """An example as the text of a file for `policyeng check`: a native snapshot, or the documents that are judged.

    What no one file says is a native snapshot with `documents`, which no reader takes.
    """
    document = example.document
    return text_of(_file(document) if _is_one_file(document) else native(document))


def text_of(document: object) -> str:
    """A document as JSON; with the integers beyond 64 bits that random examples hold."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _is_one_file(document: JsonObject) -> bool:
    """Whether it is documents to be judged as they are, or has none of them."""
    return not document.get("documents") or not any(value for key, value in document.items() if key != "documents")


def _file(document: JsonObject) -> object:
    """What the file holds: several documents are the elements of a list, as the reader takes one apart."""
    contents = [entry["content"] for entry in document.get("documents", ())]
    if not contents:
        return native({key: value for key, value in document.items() if key != "documents"})
    return contents if len(contents) > 1 or isinstance(contents[0], list) else contents[0]


def native(document: JsonObject) -> JsonObject:
    """The document of an example as that of a native snapshot."""
    return {"snapshotVersion": 1, **document}
