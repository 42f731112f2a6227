"""Conversion of an Azure CLI document to an ARM resource: by a table of fields, with its references and its values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import NamedTuple

from msgspec.structs import replace

from policyeng.facts.ids import types_of
from policyeng.models import JsonObject, Problem, SourceNames, dotted, lowered
from policyeng.parsing.json_pointer import escaped, value_at
from policyeng.parsing.json_text import kind_of, shortened
from policyeng.sources.arm_resource import is_placeholder, service_made, stands_for_value
from policyeng.sources.field_mapping import (
    Bring,
    FieldMapping,
    Mapped,
    UnfitError,
    boolean,
    convert_integer,
    convert_word,
    list_carried_fields,
    list_names,
    mapped,
    put_value,
    text,
    without,
)
from policyeng.sources.parsed import UNKNOWN_SCOPE, Placed, Surroundings, format_value

#: Computes that are not in the workspace.
RESERVED = ("serverless", "local")
_PREFIX = "azureml:"
_NO_ID_YET = "a reference with an id: the CLI adds this value to the {} only when it sends the file"

enabled = convert_word({"enabled": "Enabled", "disabled": "Disabled"})


def an_object(value: object) -> JsonObject:
    """Return an object unchanged."""
    if isinstance(value, dict):
        return value
    raise UnfitError("an object")


def compute_in(workspace: str) -> Bring:
    """Return a converter of `azureml:name`, `name` or an id to a compute's ARM id; `serverless` and `local` stay."""

    def bring(value: object) -> object:
        name = _bare(text(value))
        if lowered(name) in RESERVED:
            return lowered(name)
        return name if "/" in name else f"{workspace}/computes/{name}"

    return bring


def asset_in(workspace: str, collection: str) -> Bring:
    """Return a converter of `azureml:name:version` to an asset's ARM id; ids and registry references stay."""

    def bring(value: object) -> object:
        if not isinstance(value, str):
            raise UnfitError(_NO_ID_YET.format(collection))
        if lowered(value).startswith("azureml://"):
            return _check_version(value)
        name, _, version = _bare(value).rpartition(":")
        if _bare(value).startswith("/subscriptions/"):
            return _bare(value)
        if not lowered(value).startswith(_PREFIX):
            raise UnfitError(_NO_ID_YET.format(collection))
        if not name or "@" in version:
            raise UnfitError("a reference with a version, `azureml:name:version`: the service resolves labels")
        return f"{workspace}/{collection}/{name}/versions/{version}"

    return bring


def by_id(value: object) -> object:
    """Convert a list of ids, or of objects with `resource_id`, to ARM's object of user-assigned identities by id."""
    if not isinstance(value, list):
        raise UnfitError("a list")
    ids = [entry.get("resource_id") if isinstance(entry, dict) else entry for entry in value]
    return {str(text(entry)).removeprefix(_PREFIX): {} for entry in ids}


def convert_identity_type(value: object) -> object:
    """Convert `system_assigned`, `user_assigned`, both or `none` to ARM's spelling."""
    words = {"systemassigned": "SystemAssigned", "userassigned": "UserAssigned", "none": "None"}
    parts = [lowered(part).strip().replace("_", "") for part in str(text(value)).split(",")]
    return ",".join(words[part] for part in parts) if all(part in words for part in parts) else value


def milliseconds(value: object) -> object:
    """Convert a whole number of milliseconds to an ISO 8601 duration; a duration stays as it is."""
    if isinstance(value, str) and lowered(value.strip()).startswith("p"):
        return value.strip()
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**15:
        seconds, rest = divmod(value, 1000)
        return f"PT{seconds}.{rest:03d}".rstrip("0").rstrip(".") + "S" if rest else f"PT{seconds}S"
    raise UnfitError("a whole number of milliseconds")


def is_label(value: object) -> bool:
    """Check whether a reference has no version, so its meaning can change."""
    return isinstance(value, str) and (
        "@" in value or "/labels/" in value or (lowered(value).startswith(_PREFIX) and ":" not in _bare(value))
    )


def file_of(value: object) -> str:
    """Return the path in a file reference, `./x.yml` or `file:./x.yml`; empty if it is not a file reference."""
    if not isinstance(value, str) or not value.strip():
        return ""
    written = value.strip()
    if lowered(written).startswith("file:"):
        return written[len("file:") :].removeprefix("//")
    remote = lowered(written).startswith((_PREFIX, "azureml://", "/subscriptions/")) or "://" in written
    return "" if remote else written


def _bare(value: object) -> str:
    written = str(value).strip()
    return written[len(_PREFIX) :].strip() if lowered(written).startswith(_PREFIX) else written


def _check_version(value: str) -> str:
    if "/versions/" in lowered(value):
        return value
    raise UnfitError("a reference with a version: the service resolves labels")


#: How some versions of the SDK print an enumeration: `ProvisioningState.SUCCEEDED`.
_MEMBER = re.compile(r"[A-Z][A-Za-z]*\.([A-Z][A-Z0-9_]*)")


def word(*words: str, others: Mapping[str, str] | None = None) -> Bring:
    """Return a converter to the words of an enumeration from any spelling that the CLI accepts or prints.

    Args:
        words: in ARM's spelling.
        others: ARM's words by the CLI's names that differ.
    """
    bring = convert_word(dict([*((known, known) for known in words), *(others or {}).items()]))

    def brought(value: object) -> object:
        member = _MEMBER.fullmatch(value) if isinstance(value, str) else None
        return bring(member[1] if member else value)

    return brought


def switch(on: str, off: str) -> Bring:
    """Return a converter of a boolean to one of two words."""
    return lambda value: on if boolean(value) else off


def name(value: object) -> object:
    """Convert a name to text; YAML can read a name as a number."""
    return str(value) if type(value) is int else text(value)


def prose(value: object) -> object:
    """Return free text or an object unchanged; braces and `$` in it are not placeholders."""
    return value


def tags(value: object) -> dict[str, str]:
    """Convert the values of tags to text; ARM drops a null."""
    if isinstance(value, dict) and not any(isinstance(entry, (list, dict)) for entry in value.values()):
        return {key: str(entry) for key, entry in value.items() if entry is not None}
    raise UnfitError("an object of text")


def unfit_tags(table: Iterable[FieldMapping], document: JsonObject) -> dict[str, str]:
    """Return by JSON Pointer why the value of a tag is invalid; other tags are not affected."""
    return {
        at: f"`{at[1:]}` is {kind_of(entry)}; it should be text"
        for row in table
        if row.bring is tags and isinstance(stated := value_at(document, row.source), dict)
        for key, entry in stated.items()
        if isinstance(entry, (list, dict)) and (at := f"{row.source}/{escaped(key)}")
    }


def region(value: object) -> object:
    """Convert a region to its name, as ARM does with `East US`."""
    return lowered(str(text(value)).replace(" ", ""))


def convert_list(value: object) -> list[object]:
    """Return a list unchanged."""
    if isinstance(value, list):
        return value
    raise UnfitError("a list")


def mapping(value: object) -> object:
    """Return an object unchanged."""
    if isinstance(value, dict):
        return value
    raise UnfitError("an object")


def convert_number(value: object) -> object:
    """Return a number unchanged."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    raise UnfitError("a number")


def convert_duration(unit: str) -> Bring:
    """Return a converter of a whole number above 0 to an ISO 8601 duration in `S` (seconds) or `M` (minutes).

    The CLI omits 0, and then the default of the service applies.
    """

    def bring(value: object) -> object:
        # The SDK prints the seconds of a time span as a floating-point number.
        number = convert_integer(int(value) if isinstance(value, float) and value.is_integer() else value)
        if isinstance(number, int) and number > 0:
            return f"PT{number}{unit}"
        raise UnfitError("a whole number above 0")

    return bring


def renamed(names: Mapping[str, str]) -> Bring:
    """Return a converter that renames some keys of an object."""
    return lambda value: {names.get(key, key): inner for key, inner in _object(value).items()}


def convert_stated_identity_type(value: object) -> object:
    """Convert the type of an identity; ARM writes both types without a space."""
    both = {"system_assigned,user_assigned": "SystemAssigned,UserAssigned"}
    spaceless = value.replace(" ", "") if isinstance(value, str) else value
    return word("SystemAssigned", "UserAssigned", "None", others=both)(spaceless)


def assigned(value: object) -> object:
    """Convert user-assigned identities to a map by id, from a list of `resource_id` or a map (in workspaces)."""
    if isinstance(value, list):
        value = {str(text(_object(entry).get("resource_id"))): entry for entry in value}
    return {
        identity: {
            there: entry[here]
            for here, there in (("client_id", "clientId"), ("principal_id", "principalId"))
            if isinstance(entry, dict) and entry.get(here)
        }
        for identity, entry in _object(value).items()
    }


IDENTITY = (
    FieldMapping("/identity/type", "/identity/type", convert_stated_identity_type),
    FieldMapping("/identity/user_assigned_identities", "/identity/userAssignedIdentities", assigned),
)
IDENTITY_PRINTED = (
    FieldMapping("/identity/principal_id", "/identity/principalId"),
    FieldMapping("/identity/tenant_id", "/identity/tenantId"),
)


def _object(value: object) -> JsonObject:
    if isinstance(value, dict):
        return value
    raise UnfitError("an object")


NOT_CARRIED = "Azure CLI documents have no key for it; check the deployed resource as the REST API returns it"
NO_NAME_IN_FILE = "the file has no `name`; add it"

#: Keys with text for people, in which nothing is a placeholder.
_PROSE = ("description", "display_name", "friendly_name")
#: Converters that do not move the parts of a value, so one unresolved part does not hide the others.
_AS_THEY_ARE = (FieldMapping._field_defaults["bring"], tags)


class Sent(NamedTuple):
    """A value that the CLI sends for an ARM field without a key in the file.

    Attributes:
        target: the ARM field.
        value: the value.
        within: the CLI sends it only if the file has a part of this ARM object.
        printed: the value also applies to a command's output.
    """

    target: str
    value: object
    within: str = ""
    printed: bool = False


class Lossy(NamedTuple):
    """A value that a command prints for more than one ARM value: key, value, ARM field, and the reason."""

    source: str
    value: object
    target: str
    reason: str


class DocumentTables(NamedTuple):
    """The tables of one kind of document.

    Attributes:
        table: the keys of a file.
        printed: the keys of a command's output only; the CLI ignores them in a file.
        sent: the values that the CLI adds.
        never: ARM fields that no such resource has, so they are known to be absent.
        always: the keys that a command's output always has; without one of them the output is incomplete.
        lossy: values of a command's output that are ambiguous.
    """

    table: tuple[FieldMapping, ...]
    printed: tuple[FieldMapping, ...] = ()
    sent: tuple[Sent, ...] = ()
    never: tuple[str, ...] = ()
    always: tuple[str, ...] = ()
    lossy: tuple[Lossy, ...] = ()

    @property
    def rows(self) -> tuple[FieldMapping, ...]:
        """Return all rows."""
        return self.table + self.printed


def convert_document(
    shape: DocumentTables, resource: JsonObject, document: JsonObject, pointer: str, reasons: Mapping[str, str]
) -> Placed:
    """Convert a document to a resource by its tables.

    Args:
        shape: the tables.
        resource: its `id` and `type`, to which the tables add.
        document: a file, or a command's output, which has an `id`.
        pointer: its JSON Pointer.
        reasons: by JSON Pointer into the document, further reasons why values are unknown.
    """
    printed = "id" in document
    rows = shape.rows if printed else shape.table
    settled, unresolved, inside = _resolve_document(rows, document)
    found = mapped(rows, settled, pointer, {**unresolved, **reasons})
    unreadable = {} if printed else service_made(resource["type"])
    unreadable.update({**found.unreadable, **inside})
    if "/name" in unreadable or not (printed or "/name" in found.fields):
        unreadable["/name"] = unreadable["/id"] = unreadable.get("/name", NO_NAME_IN_FILE)
    whole = {**resource, **found.resource}
    for sent in shape.sent:
        within = not sent.within or any(f"{target}/".startswith(f"{sent.within}/") for target in found.fields)
        known = sent.target in found.fields or value_at(whole, sent.target) is not None
        if (sent.printed or not printed) and within and not known:
            put_value(whole, sent.target, sent.value)
    whole = without(whole, unreadable.keys() - {"/id", "/name"})
    whole.setdefault("properties", {})
    fields = {"/name": f"{pointer}/name", **found.fields}
    more = (*(sent.target for sent in shape.sent), *shape.never, *unreadable)
    stated = list_carried_fields(whole, rows, NOT_CARRIED, "/id", "/name", "/type", *more)
    names = SourceNames(address=dotted(pointer), base=pointer, fields=list_names(rows))
    return Placed(whole, pointer, unreadable, stated, fields, names=names)


def convert_output(shape: DocumentTables, document: JsonObject, given: Placed) -> Placed:
    """Return the resource of a command's output, without values that the output omits or prints ambiguously."""
    unreadable: dict[str, str] = {}
    cut = [key for key in shape.always if key not in document]
    if cut:
        reason = f"the output is incomplete: `az ml` always prints `{cut[0]}`; save all of the output"
        unreadable |= {row.target: reason for row in shape.rows if row.target and row.target not in given.fields}
        unreadable.pop("/name", None)
    for lossy in shape.lossy:
        if document.get(lossy.source) == lossy.value:
            unreadable[lossy.target] = lossy.reason
    return given._replace(resource=without(given.resource, unreadable), unreadable={**given.unreadable, **unreadable})


def explain_placeholder(key: str, text: str) -> str:
    """Return the message for a key whose value is a placeholder."""
    return f"`{key}` is the placeholder `{shortened(text)}`; replace it with a value"


def unknown_keys(shape: DocumentTables, document: JsonObject) -> Iterator[tuple[str, str, list[str]]]:
    """Yield the keys that the CLI rejects: JSON Pointer, key, and the keys that it knows there."""
    known: dict[str, dict[str, None]] = {}
    for source in ("/$schema", "/id", "/name", "/resourceGroup", *(row.source for row in shape.rows)):
        parts = source.split("/")
        for length in range(1, len(parts)):
            known.setdefault("/".join(parts[:length]), {})[parts[length]] = None
    # The inside of a value that one row converts as a unit is not checked.
    for row in shape.rows:
        known.pop(row.source, None)
    for above, keys in known.items():
        inner = value_at(document, above)
        for key in inner if isinstance(inner, dict) else ():
            if escaped(key) not in keys:
                yield f"{above}/{escaped(key)}", key, list(keys)


def _resolve_document(
    rows: Iterable[FieldMapping], document: JsonObject
) -> tuple[JsonObject, dict[str, str], dict[str, str]]:
    """Return the document without unresolved values, and the reasons by document pointer and by ARM pointer."""
    by_source = {row.source: row for row in rows if row.target}
    unresolved = dict(_misshapen(by_source, document))
    # Tags have the same pointers in ARM and in the document.
    inside = unfit_tags(rows, document)
    document = without(document, inside) if inside else document
    dropped: set[str] = set()
    checked = {key: value for key, value in document.items() if key not in _PROSE}
    for pointer, value, in_list in _unresolved_values(checked, "", in_list=False):
        reason = explain_placeholder(pointer[1:], value)
        above = _row_above(by_source, pointer)
        if above is None:
            unresolved[pointer] = reason
        elif above.bring in _AS_THEY_ARE and not in_list:
            dropped.add(pointer)
            inside[above.target + pointer.removeprefix(above.source)] = reason
        else:
            unresolved[above.source] = reason
    settled = without(document, dropped) if dropped else document
    return settled, unresolved, inside


def _row_above(rows: Mapping[str, FieldMapping], pointer: str) -> FieldMapping | None:
    """Return the row whose value strictly contains a pointer."""
    parts = pointer.split("/")
    return next((rows[above] for end in range(2, len(parts)) if (above := "/".join(parts[:end])) in rows), None)


def _misshapen(rows: Mapping[str, FieldMapping], document: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield the keys for which the rows expect an object and the document has another value."""
    for source in rows:
        parts = source.split("/")
        for end in range(2, len(parts)):
            value = value_at(document, "/".join(parts[:end]))
            if value is not None and not isinstance(value, dict):
                key = "/".join(parts[1:end])
                yield f"/{key}", f"`{key}` is {kind_of(value)}; it should be an object"
                break


def _unresolved_values(value: object, pointer: str, *, in_list: bool) -> Iterator[tuple[str, str, bool]]:
    """Yield the pointer of each placeholder, the placeholder, and whether it is in a list."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _unresolved_values(inner, f"{pointer}/{escaped(key)}", in_list=in_list)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _unresolved_values(inner, f"{pointer}/{index}", in_list=True)
    elif isinstance(value, str) and stands_for_value(value):
        yield pointer, value, in_list


PROVIDER = "Microsoft.MachineLearningServices"
UNKNOWN_ID = "the file does not name the subscription and resource group to deploy to; pass `--workspace`"
UNKNOWN_HOME = "the file does not name its workspace; pass `--workspace`"

#: Keys that only a command's output has; they identify an output without an `id`.
ML_PROVIDER = "/providers/microsoft.machinelearningservices/"
PRINTED = frozenset({"creation_context", "mlflow_tracking_uri", "provisioning_state"})
_SCHEMA_PLACES = re.compile(r"azuremlschemas|azuremlsdk2|azureml/sdk-2-0", re.IGNORECASE)


class CliDocumentKind(NamedTuple):
    """One kind of document, such as a compute cluster.

    Attributes:
        arm_type: the ARM type that it becomes, such as `Microsoft.MachineLearningServices/workspaces/computes`.
        schemas: the last parts of its `$schema`, in lower case and without `.schema.json`.
        takes: whether a document without `$schema` is one.
        bring: yields the resources of a document at a JSON Pointer; a command's output has an `id`, a file does not.
        in_workspace: the document belongs to a workspace that it does not name.
        shape: the tables of its fields. They are needed to report keys that the CLI does not know, and values that a
            command's output omits or prints ambiguously.
        nothing: why such a document has nothing to check; empty if it has resources.
        known: the keys that are allowed, by the JSON Pointer of their parent, to report others; empty if any key is.
    """

    arm_type: str
    schemas: tuple[str, ...]
    takes: Callable[[JsonObject], bool]
    bring: Callable[[JsonObject, str, Surroundings], Iterator[Placed | Problem]]
    in_workspace: bool = True
    shape: DocumentTables | None = None
    nothing: str = ""
    known: Mapping[str, tuple[str, ...]] = {}


def top_names(tables: DocumentTables) -> set[str]:
    """Return the top-level keys of files and outputs."""
    return {row.source.split("/")[1] for row in tables.rows if row.source}


def schema_of(document: JsonObject) -> str | None:
    """Return the last part of `$schema`, in lower case; None if it is not a schema of the CLI."""
    schema = document.get("$schema")
    if not isinstance(schema, str) or not _SCHEMA_PLACES.search(schema):
        return None
    last = lowered(schema.strip().rstrip("/").rpartition("/")[2])
    return last.removesuffix(".json").removesuffix(".schema")


def find_stated_id(document: JsonObject) -> str:
    """Return the ARM id in a command's output; empty if there is none.

    The ids of jobs, schedules and batch deployments have the prefix `azureml:`: `ArmStr._serialize` of
    `_schema/core/fields.py` in azure-ai-ml 1.35.2.
    """
    stated = document.get("id")
    if not isinstance(stated, str):
        return ""
    return stated[len(_PREFIX) :] if lowered(stated).startswith(f"{_PREFIX}/") else stated


def at_home(document: JsonObject, around: Surroundings) -> Surroundings:
    """Return the surroundings with the workspace of the document's id, which its names then refer to."""
    parts = find_stated_id(document).split("/")
    kind = lowered("/".join(parts[5:8]))
    if parts[0] or len(parts) < 9 or kind != lowered(f"providers/{PROVIDER}/workspaces"):
        return around
    return replace(around, workspace="/".join(parts[:9]))


def build_id(document: JsonObject, arm_type: str, around: Surroundings, *parents: str) -> str:
    """Return the ARM id in a command's output, or an id made of the workspace, `parents` and the name.

    Args:
        document: has a `name` or an `id`.
        arm_type: of the resource.
        around: the scope and the workspace.
        parents: the names of the parents below the workspace, such as an endpoint.
    """
    stated = find_stated_id(document)
    if lowered(arm_type) in types_of(stated):
        return stated
    segments = arm_type.split("/")[2:]
    names = [*parents, str(document.get("name") or "{name}").replace("/", "~")]
    if segments:
        below = "".join(f"/{kind}/{name}" for kind, name in zip(segments, names, strict=True))
        return around.workspace + below
    return f"{around.scope}/providers/{arm_type}/{names[-1]}"


def unplaced(arm_id: str) -> dict[str, str]:
    """Return why an id is unreadable if its subscription, resource group or workspace is unknown."""
    if arm_id.startswith(UNKNOWN_SCOPE):
        return {"/id": UNKNOWN_ID}
    return {"/id": UNKNOWN_HOME} if "/workspaces/{workspace}" in arm_id else {}


NO_KEY = "the Azure CLI has no key for it"
NAME_SET_BY_SERVICE = "the file has no `name`, so the service or the command line sets one; add it to the file"
#: How deep objects are searched for placeholders; no field that policies check is deeper.
_DEPTH = 12


class CliDefaults(NamedTuple):
    """What a file omits and the CLI or the service adds.

    Attributes:
        defaults: by ARM pointer, the value that the CLI sends if the file has none.
        unresolved: by pointer in the document, why a value is not known yet.
        unreadable: by ARM pointer, why the value is unknown.
        parents: the names of the parents below the workspace; an empty string if the file has none.
        elsewhere: ARM pointers that only other variants of the type have, so they are known to be absent.
    """

    defaults: Mapping[str, object] = {}
    unresolved: Mapping[str, str] = {}
    unreadable: Mapping[str, str] = {}
    parents: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()


def place_resource(
    document: JsonObject,
    pointer: str,
    around: Surroundings,
    arm_type: str,
    table: tuple[FieldMapping, ...],
    made: CliDefaults,
) -> Placed:
    """Return the resource of a document; without a name it gets a placeholder that is unique to the file."""
    done = convert_object(table, document, pointer, made.unresolved)
    resource = {"properties": {}, **without(done.resource, done.unreadable)}
    for target, value in made.defaults.items():
        if not any(f"{field}/".startswith(f"{target}/") for field in done.fields):
            put_value(resource, target, value)
    name = name_of(document.get("name"))
    absent = absent_name(around)
    arm_id = build_id(
        {**document, "name": name or absent}, arm_type, around, *(each or absent for each in made.parents)
    )
    unreadable = {**_service_made(arm_type, done.fields), **unplaced(arm_id), **made.unreadable, **done.unreadable}
    if not name:
        unreadable["/name"] = NAME_SET_BY_SERVICE
    if is_placeholder(arm_id):
        unreadable.setdefault("/id", NAME_SET_BY_SERVICE)
    return Placed(
        {"id": arm_id, **({"name": name} if name else {}), "type": arm_type, **resource},
        pointer,
        unreadable,
        # The CLI sets the location to that of the workspace.
        list_carried_fields({"type": arm_type}, table, NO_KEY, "/name", "/location", *made.defaults, *made.elsewhere),
        {"/id": f"{pointer}/name", **done.fields},
        names=SourceNames(address=dotted(pointer), base=pointer, fields=list_names(table)),
    )


def convert_object(
    table: tuple[FieldMapping, ...], source: JsonObject, pointer: str, unresolved: Mapping[str, str] | None = None
) -> Mapped:
    """Convert an object by a table, without placeholders and values where an object is expected."""
    unfit = unfit_tags(table, source)
    source = without(source, unfit) if unfit else source
    open_values = {**_find_misplaced(table, source), **unfit, **(unresolved or {})}
    free = {row.source for row in table if row.bring is prose or not row.target}
    pruned = _pruned(source, "", free, open_values)
    done = mapped(table, pruned, pointer, open_values)
    below = {
        row.target + at[len(row.source) :]: reason
        for at, reason in open_values.items()
        for row in table
        if row.target and at.startswith(f"{row.source}/")
    }
    return done._replace(unreadable={**below, **done.unreadable})


def schema_name(document: JsonObject) -> str:
    """Return the last part of `$schema` in lower case, without `.schema.json`; empty if there is none."""
    schema = document.get("$schema")
    last = lowered(schema.strip().rstrip("/").rpartition("/")[2]) if isinstance(schema, str) else ""
    return last.removesuffix(".json").removesuffix(".schema")


def list_known_keys(*tables: Iterable[FieldMapping], within: Iterable[str] = ()) -> dict[str, tuple[str, ...]]:
    """Return the keys in tables by the JSON Pointer of their parent: the top, and the objects `within`.

    The tables must have all keys that the CLI accepts in those objects.
    """
    sources = [row.source for table in tables for row in table]
    return {
        holder: tuple(
            dict.fromkeys(
                source[len(holder) + 1 :].split("/")[0] for source in sources if source.startswith(f"{holder}/")
            )
        )
        for holder in ("", *within)
    }


def name_of(value: object) -> str:
    """Return a name as text; empty if it is a placeholder or not a name."""
    if isinstance(value, bool) or not isinstance(value, (str, int)) or is_open(value):
        return ""
    return str(value).strip()


def absent_name(around: Surroundings) -> str:
    """Return the placeholder for a name that a file does not have."""
    file = around.file.replace("/", "~")
    return f"{{{PurePath(file).name or 'name'}}}"


def is_open(value: object) -> bool:
    """Check whether a value is a placeholder."""
    return isinstance(value, str) and stands_for_value(value)


def _service_made(arm_type: str, stated: Mapping[str, str]) -> dict[str, str]:
    return {target: reason for target, reason in service_made(arm_type).items() if target not in stated}


def _find_misplaced(table: Iterable[FieldMapping], source: JsonObject) -> dict[str, str]:
    """Return by pointer a message for each value where a table expects an object."""
    rows = list(table)
    own = {row.source for row in rows}
    found: dict[str, str] = {}
    for holder in dict.fromkeys(above for row in rows for above in _above(row.source) if above not in own):
        value: object = source
        for key in holder.split("/")[1:]:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None and not isinstance(value, dict):
            found[holder] = f"`{holder[1:]}` is {format_value(value)}; it should be an object"
    return found


def _above(pointer: str) -> Iterator[str]:
    parts = pointer.split("/")
    return ("/".join(parts[:length]) for length in range(2, len(parts)))


def _pruned(source: JsonObject, base: str, free: set[str], open_values: dict[str, str]) -> JsonObject:
    """Return a copy without placeholders, and add each to `open_values`; a list with one is omitted completely."""
    kept: JsonObject = {}
    for key, value in source.items():
        at = f"{base}/{escaped(key)}"
        if at in free:
            kept[key] = value
        elif isinstance(value, dict) and at.count("/") < _DEPTH:
            kept[key] = _pruned(value, at, free, open_values)
        elif (found := next(filter(is_open, value if isinstance(value, list) else [value]), None)) is not None:
            open_values.setdefault(at, f"`{at[1:]}` is the placeholder {format_value(found)}; replace it with a value")
        else:
            kept[key] = value
    return kept
