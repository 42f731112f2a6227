"""What a file that was found in a directory is about: Azure Machine Learning, policyeng itself, or something else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from policyeng.models import JsonObject, lowered
from policyeng.strict.json_pointer import keys_of, member

#: What every file that is about Machine Learning has in it, in lower case.
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

#: What JSON that may hold resources of Azure has in it, in lower case.
_OF_AZURE = (b"microsoft.", b"snapshotversion", b"/subscriptions/", b"deploymenttemplate")

#: The same of YAML in which Machine Learning is more than a word in a text: by the keys that say what a document is.
_YAML_KEYS = re.compile(
    rb"(?:^|[{,])[ \t-]*[\"']?(?:\$schema|apiversion|type|id|kind|snapshotversion)[\"']?[ \t]*:([^\r\n]*)", re.MULTILINE
)

#: The keys that say what a document or a resource is, in lower case.
_NAMING = ("$schema", "apiversion", "type", "id", "resourceid")
#: Where documents have their resources.
_LISTS = ("resources", "value", "data", "items")

#: Types whose resources policies look for everywhere, so that one that is broken is an error.
_STRICT_TYPES = ("microsoft.machinelearningservices/", "microsoft.authorization/role")
#: The properties that only resources of Machine Learning have.
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

#: Documents of policyeng and other reports, by what one has among its keys.
_DOCUMENTS: Mapping[str, tuple[frozenset[str], ...]] = {
    "a report of policyeng": (frozenset({"reportVersion"}), frozenset({"asOf", "engine", "findings", "summary"})),
    "a decision of policyeng": (frozenset({"decisionVersion"}), frozenset({"allowed", "asOf", "bundle"})),
    "a comparison by policyeng": (frozenset({"diffVersion"}), frozenset({"exitCode", "before", "after"})),
    "suggestions of policyeng": (frozenset({"suggestionsVersion"}),),
    "exemptions": (frozenset({"exemptions"}),),
    "cases of a policy": (frozenset({"baseline", "pass"}), frozenset({"baseline", "fail"})),
    "findings as SARIF": (frozenset({"runs", "version"}),),
    "a bill of materials": (frozenset({"bomFormat"}), frozenset({"spdxVersion"})),
}


def concerns_machine_learning(content: bytes) -> bool:
    """Whether a file names Azure Machine Learning, be it read or not."""
    return _names_any(_MARKS, content)


def may_be_ours(content: bytes, *, is_json: bool) -> bool:
    """Whether text that cannot be parsed may hold something to evaluate.

    Broken JSON may hold resources of a snapshot that do not say what they are.
    """
    if is_json:
        return _names_any((*_MARKS, *_OF_AZURE), content)
    text = content.lower().replace(b"\0", b"")
    return any(_names_any((*_MARKS, b"snapshotversion"), line[0]) for line in _YAML_KEYS.finditer(text))


def other_document(document: object) -> str:
    """What a document of policyeng, or a report, is that holds nothing to evaluate; empty for every other one."""
    keys = document.keys() if isinstance(document, dict) else ()
    return next((name for name, known in _DOCUMENTS.items() if any(one <= set(keys) for one in known)), "")


def is_shaped_as_ours(document: object) -> bool:
    """Whether a document of no readable format says by its keys that it, or an entry of it, is of Machine Learning."""
    return any(_says_it_is_ours(one) for one in _entries(document))


def is_something_else(document: object, pointer: str) -> bool:
    """Whether the part of a document at a JSON Pointer, which is refused, surely has nothing of Machine Learning.

    It says by its type that it is something else, or has neither a type nor a property of Machine Learning.
    """
    part = _resource_at(document, pointer)
    if isinstance(part.get("error"), dict):  # an answer that may have held resources
        return False
    stated = [lowered(part[key]) for key in ("type", "id") if isinstance(part.get(key), str)]
    if any(strict in text for strict in _STRICT_TYPES for text in stated):
        return False
    properties = part.get("properties")
    return not (isinstance(properties, dict) and _ML_PROPERTIES & properties.keys())


def _resource_at(document: object, pointer: str) -> JsonObject:
    """The nearest object above a place that has a type, an id or properties, else the document."""
    found = document if isinstance(document, dict) else {}
    here = document
    for key in keys_of(pointer):
        here = member(here, key)
        if isinstance(here, dict) and not here.keys().isdisjoint({"type", "id", "properties"}):
            found = here
    return found


def _entries(document: object) -> Iterator[object]:
    yield document
    lists = [document] if isinstance(document, list) else []
    if isinstance(document, dict):
        lists = [document[key] for key in _LISTS if isinstance(document.get(key), list)]
    for entries in lists:
        yield from entries


def _says_it_is_ours(document: object) -> bool:
    if not isinstance(document, dict):
        return False
    stated = [lowered(value) for key, value in document.items() if lowered(key) in _NAMING and isinstance(value, str)]
    return any(mark in text for mark in _TEXT_MARKS for text in stated)


def _names_any(marks: Iterable[bytes], content: bytes) -> bool:
    """Whether any of the marks is in a content; the zeros of UTF-16 and UTF-32 that cannot be read are no obstacle."""
    folded = content.lower().replace(b"\0", b"")
    return any(mark in folded for mark in marks)
