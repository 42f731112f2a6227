"""The documents of the Azure CLI's extension `ml`: what `az ml ... --file` takes.

What `az ml ... show` prints has the same keys, and is brought into ARM shape by the same kinds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from policyeng.errors import nearest
from policyeng.facts.ids import types_of
from policyeng.frozen import replace
from policyeng.models import JsonObject, lowered
from policyeng.parsing.json_pointer import escaped, value_at
from policyeng.parsing.json_text import shortened
from policyeng.sources.azure_cli import (
    assets,
    computes,
    datastores,
    deployments,
    endpoints,
    jobs,
    schedules,
    workspaces,
)
from policyeng.sources.azure_cli.base import PRINTED, CliDocumentKind, at_home, schema_of, stated_id
from policyeng.sources.azure_cli.tables import unknown_keys
from policyeng.sources.parsed import (
    ALONE,
    UNKNOWN_SCOPE,
    ParsedDocument,
    Placed,
    Refusal,
    Surroundings,
    kind_of,
    reading_of,
)

SUMMARY = "YAML files of the Azure CLI (`az ml ... --file`)"

#: In the order in which content is looked at.
KINDS: tuple[CliDocumentKind, ...] = (
    *computes.KINDS,
    *workspaces.KINDS,
    *datastores.KINDS,
    *endpoints.KINDS,
    *deployments.KINDS,
    *schedules.KINDS,
    *jobs.KINDS,
    *assets.KINDS,
)

#: What is a template or a JSON schema, whatever its keys are. Any other `$schema`, such as a documentation page, does
#: not count, as it does not for the CLI.
_OF_OTHERS = re.compile(r"//(?:schema\.management\.azure\.com|json-schema\.org)/", re.IGNORECASE)

_SCHEMAS = {schema: kind for kind in reversed(KINDS) for schema in kind.schemas}


def detect(document: object) -> bool:
    """Whether the document is a file that the CLI takes: by its `$schema`, without one of the CLI by its keys."""
    if not isinstance(document, dict) or _is_printed(document):
        return False
    if schema_of(document) is not None:
        return True
    if not isinstance(document.get("$schema", ""), str) or _OF_OTHERS.search(document.get("$schema", "")):
        return False
    return any(kind.takes(document) for kind in KINDS)


def read(document: object, around: Surroundings = ALONE) -> ParsedDocument:
    """Bring a file into ARM shape; an asset holds nothing to judge."""
    if not isinstance(document, dict):
        message = f"not an Azure CLI file: expected an object, found {kind_of(document)}"
        return ParsedDocument(refusals=(Refusal("", message, "provide a file that `az ml ... create --file` accepts"),))
    kind = kind_of_file(document)
    if kind is None:
        return ParsedDocument(refusals=(_unknown(document),))
    if kind.nothing:
        return ParsedDocument(nothing=kind.nothing)
    reading = reading_of(kind.bring(document, "", at_home(document, around)))
    return replace(
        reading,
        remarks=tuple(_remarks(kind, document)),
        movable=movable(reading.resources),
    )


def belongs_to_workspace(document: object) -> bool:
    """Whether it lies within a workspace that it does not name."""
    kind = kind_of_file(document) if isinstance(document, dict) and detect(document) else None
    return kind is not None and kind.in_workspace and not kind.nothing


def kind_of_file(document: JsonObject) -> CliDocumentKind | None:
    """The kind of a file.

    The CLI goes by the command and by `type`; of kinds with one ARM type, the one that takes the content goes before
    the one that `$schema` names.
    """
    if schema_of(document) is None:
        return next((kind for kind in KINDS if kind.takes(document)), None)
    named = _SCHEMAS.get(schema_of(document) or "")
    if named is None:
        return None
    return next((kind for kind in KINDS if kind.arm_type == named.arm_type and kind.takes(document)), named)


def kind_of_output(document: JsonObject, arm_type: str) -> CliDocumentKind | None:
    """The kind of a command's output whose `id` has an ARM type, in lower case."""
    kinds = [kind for kind in KINDS if lowered(kind.arm_type) == arm_type]
    return next((kind for kind in kinds if kind.takes(document)), kinds[-1] if kinds else None)


def _remarks(kind: CliDocumentKind, document: JsonObject) -> Iterator[tuple[str, str]]:
    """What the CLI refuses: keys that it does not know, by JSON Pointer."""
    for place, key, known in unknown_keys(kind.shape, document) if kind.shape else _unknown_keys(kind, document):
        yield place, f"unknown key `{shortened(key)}`, which the Azure CLI rejects{nearest(key, known)}"


def _unknown_keys(kind: CliDocumentKind, document: JsonObject) -> Iterator[tuple[str, str, Iterable[str]]]:
    """As `unknown_keys` of `shapes`, of a kind without tables of its own."""
    for above, known in kind.known.items():
        holder = value_at(document, above)
        for key in holder if isinstance(holder, dict) else ():
            if escaped(key) not in known:
                yield f"{above}/{escaped(key)}", key, known


def movable(resources: tuple[Placed, ...]) -> str:
    """The beginning of the ids that a file does not state; empty where its workspace is known."""
    identity = str(resources[0].resource["id"]) if resources else ""
    unknown = identity.startswith(UNKNOWN_SCOPE.partition("/resourceGroups/")[0]) or "/{workspace}/" in identity
    return identity if unknown else ""


def _is_printed(document: JsonObject) -> bool:
    """Whether a document states an ARM id, or what else only a command prints."""
    if types_of(stated_id(document)):
        return True
    return "$schema" not in document and not document.keys().isdisjoint(PRINTED)


def _unknown(document: JsonObject) -> Refusal:
    schema = schema_of(document)
    if schema is None:
        known = "`$schema`, or `name` and `type`"
        return Refusal(
            "", f"not an Azure CLI file: it has none of {known}", "provide a file that `az ml ... --file` accepts"
        )
    message = f"`$schema` names `{shortened(schema)}`, which is not supported"
    return Refusal("/$schema", f"{message}{nearest(schema, _SCHEMAS)}", "correct it, or exclude the file")
