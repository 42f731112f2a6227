"""Reader for the files of the Azure CLI extension `ml`, the input of `az ml ... --file`.

The output of `az ml ... show` has the same keys, and the same document kinds convert it to ARM shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from msgspec.structs import replace

from policyeng.errors import suggest_nearest
from policyeng.models import JsonObject, Problem, lowered
from policyeng.parsing.json_pointer import escaped, value_at
from policyeng.parsing.json_text import kind_of, shortened
from policyeng.sources.azure_cli import assets, computes, endpoints, jobs, workspaces
from policyeng.sources.azure_cli.converter import (
    ML_PROVIDER,
    PRINTED,
    CliDocumentKind,
    at_home,
    find_stated_id,
    schema_of,
    top_names,
    unknown_keys,
)
from policyeng.sources.field_mapping import without_nulls
from policyeng.sources.parsed import (
    ALONE,
    UNKNOWN_SCOPE,
    ParsedDocument,
    Placed,
    Surroundings,
    reading_of,
    refuse,
    remark,
)

SUMMARY = "YAML files of the Azure CLI (`az ml ... --file`)"

#: In the order in which they are matched against content.
KINDS: tuple[CliDocumentKind, ...] = (
    *computes.KINDS,
    *workspaces.KINDS,
    *workspaces.DATASTORE_KINDS,
    *endpoints.KINDS,
    *endpoints.DEPLOYMENT_KINDS,
    *jobs.SCHEDULE_KINDS,
    *jobs.KINDS,
    *assets.KINDS,
)

#: Keys of manifests and pipelines, which show that a document is not for the CLI.
_OF_OTHERS = frozenset({"apiVersion", "kind", "on", "pool", "stages"})
#: Keys that jobs have and components do not.
_OF_JOBS = frozenset({"compute", "experiment_name", "identity", "services"})
_SCHEMAS = {schema: kind for kind in reversed(KINDS) for schema in kind.schemas}


SHAPES: tuple[frozenset[str], ...] = (
    frozenset(
        {
            *("$schema", "build", "conda_file", "experiment_name", "image", "inference_config", "is_anonymous"),
            *("latest", "latest_version", "os_type", "path", "stage", "version"),
            *(name for kind in KINDS if kind.shape for name in top_names(kind.shape)),
            *(name for kind in KINDS for name in kind.known.get("", ())),
        }
    )
    - {"id"},
)


def detect(document: object) -> bool:
    """Check whether the document is a file for the CLI, by the name of a kind in its `$schema`, or by its keys."""
    if not isinstance(document, dict):
        return False
    document = _drop_null_keys(document)
    if _is_printed(document):
        return False
    own = {key: value for key, value in document.items() if key not in _OF_OTHERS}  # which hide no file
    return kind_of_file(document) is not None or any(kind.takes(own) for kind in KINDS)


def read(document: object, around: Surroundings = ALONE) -> ParsedDocument:
    """Convert a file to ARM shape; an asset has nothing to check.

    A key that is null is no key. The CLI refuses most of them ("Field may not be null." of azure-ai-ml 1.35.2), and
    sends nothing for the others, such as a tag.
    """
    if not isinstance(document, dict):
        message = f"not an Azure CLI file: expected an object, found {kind_of(document)}"
        return ParsedDocument(problems=(refuse("", message, "provide a file that `az ml ... create --file` accepts"),))
    kind = kind_of_file(document)
    if kind is None:
        return ParsedDocument(problems=(_refuse_unknown(document),))
    if kind.nothing:
        return ParsedDocument(nothing=kind.nothing)
    entries = kind.bring(without_nulls(document), "", at_home(document, around))
    reading = reading_of((*_find_other_schema(kind, document), *entries, *_find_rejected_keys(kind, document)))
    return replace(reading, movable=movable(reading.resources))


def belongs_to_workspace(document: object) -> bool:
    """Check whether the document belongs to a workspace that it does not name."""
    kind = kind_of_file(document) if isinstance(document, dict) and detect(document) else None
    return kind is not None and kind.in_workspace and not kind.nothing


def kind_of_file(document: JsonObject) -> CliDocumentKind | None:
    """Return the kind of a file.

    The CLI selects it by the command and by `type`, and ignores `$schema`. So the name of no kind counts for nothing,
    and a kind that matches the content takes precedence over one that `$schema` names and whose keys do not fit. A
    component has keys of jobs, but not those that say where and as what it runs.
    """
    document = _drop_null_keys(document)
    schema = schema_of(document) or ""
    named = _SCHEMAS.get(schema)
    matching = [kind for kind in KINDS if kind.takes(document)]
    if named is None:
        return next(iter(matching), None)
    if schema.endswith("component") and document.keys().isdisjoint(_OF_JOBS):
        return named
    of_its_type = next((kind for kind in matching if kind.arm_type == named.arm_type), None)
    other = next((kind for kind in matching if not kind.nothing), None)
    if of_its_type or other is None:
        return of_its_type or named
    # Where the keys fit both, only the value of `type` decides against the schema.
    untyped = {key: "" if key == "type" else value for key, value in document.items()}
    return named if document.keys() <= _list_keys(named) and other.takes(untyped) else other


def _list_keys(kind: CliDocumentKind) -> Set[str]:
    """Return the top-level keys of the files of a kind; empty if all keys are allowed."""
    return {"$schema", *(top_names(kind.shape) if kind.shape else kind.known.get("", ()))}


def kind_of_output(document: JsonObject, arm_type: str) -> CliDocumentKind | None:
    """Return the kind of a command's output by the ARM type of its `id`, in lower case."""
    kinds = [kind for kind in KINDS if lowered(kind.arm_type) == arm_type]
    return next((kind for kind in kinds if kind.takes(document)), kinds[-1] if kinds else None)


def _find_other_schema(kind: CliDocumentKind, document: JsonObject) -> Iterator[Problem]:
    """Yield a remark if `$schema` names another kind than that by which a file is read."""
    named = _SCHEMAS.get(schema_of(document) or "")
    if named and named.arm_type != kind.arm_type:
        keys = f"the keys are those of `{kind.schemas[0]}`, as which it is read"
        message = f"`$schema` names `{named.schemas[0]}`, but {keys}: the Azure CLI ignores `$schema`"
        yield remark("/$schema", message)


def _drop_null_keys(document: JsonObject) -> JsonObject:
    """Return a document without keys that are null, which do not decide its kind; what is in its values stays."""
    return {key: value for key, value in document.items() if value is not None}


def _find_rejected_keys(kind: CliDocumentKind, document: JsonObject) -> Iterator[Problem]:
    """Yield a remark for each key that the CLI rejects."""
    for place, key, known in unknown_keys(kind.shape, document) if kind.shape else _unknown_keys(kind, document):
        yield remark(place, f"unknown key `{shortened(key)}`, which the Azure CLI rejects{suggest_nearest(key, known)}")


def _unknown_keys(kind: CliDocumentKind, document: JsonObject) -> Iterator[tuple[str, str, Iterable[str]]]:
    """Yield what `tables.unknown_keys` does, for a kind without tables."""
    for above, known in kind.known.items():
        holder = value_at(document, above)
        for key in holder if isinstance(holder, dict) else ():
            if escaped(key) not in known:
                yield f"{above}/{escaped(key)}", key, known


def movable(resources: tuple[Placed, ...]) -> str:
    """Return the prefix of the ids that a file does not state; empty if its workspace is known."""
    identity = str(resources[0].resource["id"]) if resources else ""
    unknown = identity.startswith(UNKNOWN_SCOPE.partition("/resourceGroups/")[0]) or "/{workspace}/" in identity
    return identity if unknown else ""


def _is_printed(document: JsonObject) -> bool:
    """Check whether a document has an ARM id, or other keys that only commands print."""
    if ML_PROVIDER in lowered(find_stated_id(document)):
        return True
    return "$schema" not in document and not document.keys().isdisjoint(PRINTED)


def _refuse_unknown(document: JsonObject) -> Problem:
    if why := explain_unread(document):
        return refuse("/$schema", why, "correct it, or exclude the file")
    known = "`$schema`, or `name` and `type`"
    message = f"not an Azure CLI file: it has none of {known}"
    return refuse("", message, "provide a file that `az ml ... --file` accepts")


def explain_unread(document: object) -> str:
    """Return why a document that no kind matches looks like a file for the CLI; empty if it does not."""
    schema = schema_of(document) if isinstance(document, dict) else None
    if schema is None:
        return ""
    nearest = suggest_nearest(schema, _SCHEMAS)
    return f"`$schema` names `{shortened(schema)}`, which is not supported, and the keys are those of no file{nearest}"
