"""The output of the commands of the Azure CLI extension `ml`: one entity or a list of entities.

Source: `_to_dict` of the entities in azure-ai-ml 1.35.2, which is what `az ml ... -o json|yaml` prints.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from policyeng.facts.ids import types_of
from policyeng.models import JsonObject, Problem, lowered
from policyeng.parsing.json_text import kind_of, shortened
from policyeng.sources import azure_cli
from policyeng.sources.arm_resource import has_arm_properties, is_placeholder
from policyeng.sources.azure_cli import kind_of_file, kind_of_output, movable
from policyeng.sources.azure_cli.converter import (
    ML_PROVIDER,
    PRINTED,
    CliDocumentKind,
    at_home,
    convert_output,
    find_stated_id,
)
from policyeng.sources.parsed import ALONE, ParsedDocument, Placed, Surroundings, reading_of, refuse

SUMMARY = "the output of `az ml ... show` or `list`, as JSON or YAML"

_OF_ERRORS = frozenset({"ERROR", "Code", "Message", "Exception Details", "Target"})
SHAPES: tuple[frozenset[str], ...] = (
    (azure_cli.SHAPES[0] | {"id", "created_on", "endpoint_uri", "system_metadata", "workspace"}) - {"$schema"},
    frozenset(map(lowered, _OF_ERRORS)),
)
_REMEDY = "save the output of `az ml ... show -o json`"
_NO_ID = "the output is incomplete: it has no `id`; save the complete output"


def detect(document: object) -> bool:
    """Check whether the document is the output of a command, even of one that failed."""
    if isinstance(document, list):
        return any(_is_output(entry) for entry in document)
    return _is_output(document) or _is_failure(document)


def read(document: object, around: Surroundings = ALONE) -> ParsedDocument:
    """Convert every entity of the output to an ARM resource."""
    if _is_failure(document):
        message = "the error of a command that failed, not its output"
        return ParsedDocument(problems=(refuse("", message, "fix the command and save its output again"),))
    if not isinstance(document, list):
        return _read_entries([("", document)], around)
    return _read_entries([(f"/{index}", entry) for index, entry in enumerate(document)], around)


def belongs_to_workspace(document: object) -> bool:
    """Check whether the entity belongs to a workspace that it does not name; only one without an `id` does."""
    if not isinstance(document, dict) or not _is_output(document) or "id" in document:
        return False
    kind = kind_of_file(document)
    return kind is not None and kind.in_workspace


def _read_entries(entries: list[tuple[str, object]], around: Surroundings) -> ParsedDocument:
    known = [(pointer, entry, _find_kind(entry)) for pointer, entry in entries]
    idle = [kind.nothing for _, _, kind in known if kind and kind.nothing]
    if idle and len(idle) == len(known):
        return ParsedDocument(nothing=idle[0])
    reading = reading_of(
        result for pointer, entry, kind in known for result in _read_entry(entry, kind, pointer, around)
    )
    homeless = any("id" not in entry for _, entry, kind in known if kind and isinstance(entry, dict))
    return replace(reading, movable=movable(reading.resources) if homeless else "")


def _read_entry(
    entry: object, kind: CliDocumentKind | None, pointer: str, around: Surroundings
) -> Iterator[Placed | Problem]:
    if not isinstance(entry, dict):
        yield refuse(pointer, f"not the output of `az ml`: {kind_of(entry)} where an object should be", _REMEDY)
    elif kind is None:
        yield _refuse_unknown(entry, pointer)
    elif is_placeholder(entry.get("id")):
        yield refuse(f"{pointer}/id", "`id` is a placeholder, not a value", "replace the placeholder with a value")
    else:
        # Kinds recognize an output by its `id`.
        output = {"id": "", **entry}
        for result in kind.bring(output, pointer, at_home(entry, around)):
            if not isinstance(result, Placed):
                yield result
                continue
            if kind.shape is not None:
                result = convert_output(kind.shape, entry, result)
            yield result if "id" in entry else result._replace(unreadable={**result.unreadable, "/id": _NO_ID})


def _find_kind(entry: object) -> CliDocumentKind | None:
    if not isinstance(entry, dict):
        return None
    arm_type = _type_of(entry)
    return kind_of_output(entry, arm_type) if arm_type or "id" in entry else kind_of_file(entry)


def _is_output(entry: object) -> bool:
    """Check whether an entry has CLI keys and an ARM id, or no id and keys that only an output has."""
    if not isinstance(entry, dict) or has_arm_properties(entry) or ("properties" in entry and _names_arm_type(entry)):
        return False
    if not _type_of(entry):
        prints = any(entry.get(key) is not None for key in PRINTED)
        return "name" in entry and entry.get("$schema") is None and prints
    stated = entry.get("type")
    return "_" in "".join(entry) or (isinstance(stated, str) and "/" not in stated and stated != "string")


def _names_arm_type(entry: JsonObject) -> bool:
    stated = entry.get("type")
    return isinstance(stated, str) and lowered(stated).startswith("microsoft.")


def _type_of(entry: JsonObject) -> str:
    """Return the ARM type of its id in lower case, or an empty string if it is not of Azure Machine Learning."""
    stated = find_stated_id(entry)
    return next(iter(types_of(stated)), "") if ML_PROVIDER in lowered(stated) else ""


def _refuse_unknown(entry: JsonObject, pointer: str) -> Problem:
    arm_type = _type_of(entry)
    if not arm_type:
        return refuse(pointer, "not the output of `az ml`: no `id` of Azure Machine Learning", _REMEDY)
    message = f"a `{shortened(arm_type)}`, which no policy checks in the output of `az ml`"
    return refuse(pointer, message, "leave it out", kind="empty")


def _is_failure(document: object) -> bool:
    return isinstance(document, dict) and isinstance(document.get("ERROR"), str) and document.keys() <= _OF_ERRORS
