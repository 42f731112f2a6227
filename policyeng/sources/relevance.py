"""Which files and parts of documents in directories are certainly not about Azure Machine Learning."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from policyeng.later import lazy_pattern
from policyeng.models import JsonObject, lowered
from policyeng.parsing.json_pointer import keys_of, member

#: Text that every file about Azure Machine Learning contains one of, in lower case.
_MARKS = (
    b"microsoft.machinelearningservices",
    b"machinelearningservices.azure.com",
    b"amlarc.azureml.com",
    b"azuremlschemas",
    b"azuremlsdk2.blob",
    b"azureml/sdk-2-0",
    b"azurerm_machine_learning",
)
_TEXT_MARKS = tuple(mark.decode() for mark in _MARKS)

#: Text that JSON with Azure resources contains one of, in lower case.
_OF_AZURE = (b"microsoft.", b"snapshotversion", b"/subscriptions/", b"deploymenttemplate")

#: The keys that identify a YAML document, with their values; a mention of Machine Learning elsewhere does not count.
_YAML_KEYS = lazy_pattern(
    rb"(?:^|[{,])[ \t-]*[\"']?(?:\$schema|apiversion|type|id|kind|snapshotversion)[\"']?[ \t]*:([^\r\n]*)", re.MULTILINE
)

#: Escapes of ASCII characters in JSON and YAML, and line breaks in strings of YAML.
_ESCAPES = lazy_pattern(rb"\\(?:u00([0-7][0-9a-f])|x([0-7][0-9a-f])|(/)|\r?\n[ \t]*+)")

#: The keys that identify a document or a resource, in lower case.
_NAMING = ("$schema", "apiversion", "type", "id", "resourceid")
#: The keys under which documents list their resources.
_LISTS = ("resources", "value", "data", "items")

#: Types whose resources policies look up everywhere. A broken one is an error.
_STRICT_TYPES = ("microsoft.machinelearningservices/", "microsoft.authorization/role")
#: Properties that only resources of Azure Machine Learning have.
_ML_PROPERTIES = frozenset(
    {
        "computeType",
        "endpointComputeType",
        "hbiWorkspace",
        "hubResourceId",
        "jobType",
        "managedNetwork",
        "storageAccount",
        "vmPriority",
        "vmSize",
    }
)

#: Documents of policyeng and other reports, with the sets of keys that identify them.
_DOCUMENTS: Mapping[str, tuple[frozenset[str], ...]] = {
    "a policyeng report": (frozenset({"reportVersion"}), frozenset({"asOf", "engine", "findings", "summary"})),
    "a policyeng decision": (frozenset({"decisionVersion"}), frozenset({"allowed", "asOf", "bundle"})),
    "a policyeng comparison": (frozenset({"diffVersion"}), frozenset({"exitCode", "before", "after"})),
    "policyeng suggestions": (frozenset({"suggestionsVersion"}),),
    "exemptions": (frozenset({"exemptions"}),),
    "test cases of a policy": (frozenset({"baseline", "pass"}), frozenset({"baseline", "fail"})),
    "findings as SARIF": (frozenset({"runs", "version"}),),
    "a bill of materials": (frozenset({"bomFormat"}), frozenset({"spdxVersion"})),
}


def mentions_machine_learning(content: bytes) -> bool:
    """Check whether a file mentions Azure Machine Learning, whether or not it can be read."""
    return _contains_any(_MARKS, content)


def may_be_ours(content: bytes, *, is_json: bool) -> bool:
    """Check whether text that cannot be parsed may contain something to evaluate.

    Broken JSON can contain resources of a snapshot that do not mention Azure Machine Learning.
    """
    if is_json:
        return _contains_any((*_MARKS, *_OF_AZURE), content)
    text = content.lower().replace(b"\0", b"")
    return any(_contains_any((*_MARKS, b"snapshotversion"), line[0]) for line in _YAML_KEYS.finditer(text))


def other_document(document: object) -> str:
    """Return what a policyeng document or a report without resources is; an empty string for any other document."""
    keys = document.keys() if isinstance(document, dict) else ()
    return next((name for name, known in _DOCUMENTS.items() if any(one <= set(keys) for one in known)), "")


def is_shaped_as_ours(document: object) -> bool:
    """Check whether the keys of a document in an unsupported format show that it is about Azure Machine Learning."""
    return any(_names_machine_learning(one) for one in _list_entries(document))


def is_something_else(document: object, pointer: str) -> bool:
    """Check whether a refused part of a document is certainly not about Azure Machine Learning.

    Its type is another one, or it has neither a type nor a property of Azure Machine Learning.
    """
    part = _find_resource_at(document, pointer)
    if isinstance(part.get("error"), dict):  # the response to a request for resources
        return False
    stated = [lowered(part[key]) for key in ("type", "id") if isinstance(part.get(key), str)]
    if any(strict in text for strict in _STRICT_TYPES for text in stated):
        return False
    properties = part.get("properties")
    return not (isinstance(properties, dict) and _ML_PROPERTIES & properties.keys())


def _find_resource_at(document: object, pointer: str) -> JsonObject:
    """Return the nearest object at or above a pointer that has a type, an id or properties, else the document."""
    found = document if isinstance(document, dict) else {}
    here = document
    for key in keys_of(pointer):
        here = member(here, key)
        if isinstance(here, dict) and not here.keys().isdisjoint({"type", "id", "properties"}):
            found = here
    return found


def _list_entries(document: object) -> Iterator[object]:
    yield document
    lists = [document] if isinstance(document, list) else []
    if isinstance(document, dict):
        lists = [document[key] for key in _LISTS if isinstance(document.get(key), list)]
    for entries in lists:
        yield from entries


def _names_machine_learning(document: object) -> bool:
    if not isinstance(document, dict):
        return False
    stated = [lowered(value) for key, value in document.items() if lowered(key) in _NAMING and isinstance(value, str)]
    return any(mark in text for mark in _TEXT_MARKS for text in stated)


def _contains_any(marks: Iterable[bytes], content: bytes) -> bool:
    """Check whether a content contains any of the marks, even in UTF-16 or UTF-32 that cannot be read, or escaped."""
    folded = content.lower().replace(b"\0", b"")
    if b"\\" in folded:
        folded = _ESCAPES.sub(_unescape, folded).lower()
    return any(mark in folded for mark in marks)


def _unescape(escape: re.Match[bytes]) -> bytes:
    code = escape[1] or escape[2]
    return bytes.fromhex(code.decode()) if code else escape[3] or b""
