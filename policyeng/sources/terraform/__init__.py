"""Terraform and OpenTofu: plans and states as JSON, of the azurerm and the azapi provider.

Source: https://developer.hashicorp.com/terraform/internals/json-format.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from policyeng.facts.letters import as_technical_name
from policyeng.models import JsonObject, Problem, lowered
from policyeng.parsing.json_text import shortened
from policyeng.sources.arm_resource import describe_misspelt, is_placeholder
from policyeng.sources.parsed import ALONE, ParsedDocument, Placed, Surroundings, reading_of, refuse, remark
from policyeng.sources.templates import carrier_of
from policyeng.sources.terraform import actions, azapi, converter, embedded_documents, plan_changes
from policyeng.sources.terraform.azapi import Update, updated
from policyeng.sources.terraform.converter import fold_children
from policyeng.sources.terraform.embedded_documents import MANIFESTS, read_manifests
from policyeng.sources.terraform.instances import Instance, PlannedChange, in_state_file, in_values
from policyeng.sources.terraform.related_resources import DEPLOYS
from policyeng.sources.terraform.resolution import AZAPI, AZAPI_UPDATE, KINDS, Configuration, ResolvedInstances, objects

SUMMARY = "Terraform and OpenTofu: `terraform show -json` of a plan or a state, and `terraform.tfstate`"

_SHOWN = frozenset({"planned_values", "resource_changes", "prior_state", "configuration", "values"})
_ALONE = frozenset({"format_version", "terraform_version"})
_STATE_KEYS = frozenset({"lineage", "serial", "terraform_version"})
_BLOCKS = frozenset(
    {
        "//",
        "check",
        "data",
        "import",
        "locals",
        "module",
        "moved",
        "output",
        "provider",
        "resource",
        "terraform",
        "variable",
    }
)
SHAPES: tuple[frozenset[str], ...] = (
    frozenset(
        {
            *("action_invocations", "applyable", "checks", "complete", "configuration", "deferred_action_invocations"),
            *("deferred_changes", "errored", "format_version", "output_changes", "planned_values", "prior_state"),
            *("provider_schemas", "relevant_attributes", "resource_changes", "resource_drift", "terraform_version"),
            *("timestamp", "variables"),
        }
    ),
    frozenset({"checks", "format_version", "terraform_version", "values"}),
    frozenset({"check_results", "modules", "outputs", "resources", "version"} | _STATE_KEYS),
    frozenset({"@level", "@message", "@module", "@timestamp"}),
    frozenset({"encrypted_data", "encryption_version", "meta", "lineage", "serial"}),
    _BLOCKS,
)
_STATE_VERSION = 4
_MAJOR = re.compile(r"[0-9]{1,9}")
_LAST_MAJOR = 1
_PLAN_COMMAND = "`terraform plan -out tfplan && terraform show -json tfplan > plan.json`"
_STATE_COMMAND = "`terraform show -json > state.json`"
#: Prefixes of resource types for Machine Learning, supported or not.
_CONCERNED = ("azurerm_machine_learning_", "azurerm_ai_foundry", "azureml_")


def detect(document: object) -> bool:
    """Check whether the document is a plan, a state, or a line of the log of `terraform plan -json`."""
    if not isinstance(document, dict):
        return False
    if isinstance(document.get("format_version"), str) and (
        not _SHOWN.isdisjoint(document) or document.keys() <= _ALONE
    ):
        return True
    return _is_state_file(document) or _is_log(document) or _is_encrypted(document) or _is_configuration(document)


def read(document: object, around: Surroundings = ALONE) -> ParsedDocument:
    """Read the resources after a plan is applied, or the resources in a state."""
    if not isinstance(document, dict) or not detect(document):
        return _refuse("", "not a Terraform plan or state", f"run {_PLAN_COMMAND}")
    if _is_log(document):
        return _refuse("", "the log of `terraform plan -json`, not the plan", f"run {_PLAN_COMMAND}")
    if _is_configuration(document):
        return _refuse("", "Terraform configuration, not a plan", f"run {_PLAN_COMMAND}")
    if _is_encrypted(document):
        return _refuse("", "an encrypted state", "provide the output of `tofu show -json`")
    if not isinstance(document.get("format_version"), str):
        return _state_file(document, around)
    major = document["format_version"].partition(".")[0]
    if not _MAJOR.fullmatch(major) or int(major) > _LAST_MAJOR:
        version = shortened(document["format_version"])
        message = f"unsupported Terraform format version `{version}`; the latest supported one is {_LAST_MAJOR}"
        return _refuse("/format_version", message, "use an older Terraform, or update policyeng")
    if "planned_values" in document:
        return _plan(document, around)
    if "resource_changes" in document or "configuration" in document:
        remedy = f"provide the complete output of {_PLAN_COMMAND}"
        return _refuse("", "a plan without `planned_values`", remedy)
    if "values" not in document:
        return ParsedDocument(nothing="an empty Terraform state")
    return _read(_estate({}, tuple(in_values(document["values"], "/values")), around), {})


def _plan(document: JsonObject, around: Surroundings) -> ParsedDocument:
    planned = in_values(document["planned_values"], "/planned_values", _changes(document))
    stated = tuple(actions.resolve_actions([*planned, *actions.deferred(document)], document))
    prior = document.get("prior_state")
    looked_up = (
        instance
        for instance in in_values(prior.get("values") if isinstance(prior, dict) else None, "/prior_state/values")
        if instance.is_data
    )
    every = (*stated, *looked_up)
    incomplete = (*_incomplete(document, around.file), *_find_unread(document, every, around.file))
    return _read(_estate(document, every, around), document, incomplete)


def _state_file(document: JsonObject, around: Surroundings) -> ParsedDocument:
    if document.get("version") != _STATE_VERSION:
        message = f"a state file whose `version` is not {_STATE_VERSION}"
        return _refuse("/version", message, f"run {_STATE_COMMAND}")
    if not isinstance(document.get("resources"), list):
        return _refuse("", "a state file without a list of `resources`", f"run {_STATE_COMMAND}")
    return _read(_estate({}, tuple(in_state_file(document)), around), {})


def _estate(document: JsonObject, instances: tuple[Instance, ...], around: Surroundings) -> ResolvedInstances:
    configuration, variables = document.get("configuration"), document.get("variables")
    known = Configuration(
        configuration if isinstance(configuration, dict) else {},
        variables if isinstance(variables, dict) else {},
        instances,
    )
    return ResolvedInstances(instances, known, around, is_state=not document)


def _read(estate: ResolvedInstances, plan: JsonObject, incomplete: Iterable[str] = ()) -> ParsedDocument:
    """Read the instances of a document; `plan` is the document, or empty for a state."""
    managed = [instance for instance in estate.instances if not instance.is_data]
    entries = list(_entries(estate, managed))
    replaced = actions.list_replaced(managed, plan)
    placed = (
        entry
        for entry in entries
        if isinstance(entry, Placed) and (lowered(entry.resource["id"]), entry.pointer) not in replaced
    )
    every = updated(estate, placed, (entry for entry in entries if isinstance(entry, Update)))
    manifests, unread = read_manifests(managed, estate.around)
    whole = [*fold_children(every.whole), *every.parts, *manifests.resources]
    refusals = (entry for entry in entries if isinstance(entry, Problem))
    remarks = (*_find_problems(managed, is_state=not plan), *unread)
    reading = reading_of([*whole, *refusals, *remarks, *manifests.problems])
    missing = (
        *incomplete,
        *_missing(estate, whole),
        *(_find_open_updates(estate, every.parts) if plan else ()),
        *(f"{estate.around.file}: {each.message}" for each in remarks),
    )
    deletes = tuple(plan_changes.requested(managed)) if plan else ()
    nothing = "" if whole or reading.problems or missing or deletes else _explain_nothing(managed)
    return replace(
        reading,
        incomplete=missing,
        nothing=nothing,
        movable=estate.movable,
        states_changes=bool(plan),
        changes=(*plan_changes.deletions(plan, estate), *deletes, *plan_changes.updates(every.parts)) if plan else (),
        unchanged=plan_changes.unchanged(plan, managed, whole) if plan else frozenset(),
    )


def _entries(estate: ResolvedInstances, managed: Iterable[Instance]) -> Iterator[Placed | Update | Problem]:
    for instance in managed:
        if instance.type in KINDS:
            yield converter.convert_instance(estate, instance)
            if instance.type == "azurerm_private_endpoint" and (
                group := converter.convert_zone_group(estate, instance)
            ):
                yield group
        elif (misspelt := describe_misspelt("type", instance.type)) and _is_read(as_technical_name(instance.type)):
            yield refuse(f"{instance.pointer}/type", misspelt, "write it in ASCII, without spaces")
        elif instance.type in DEPLOYS:
            yield embedded_documents.convert_deployment(estate, instance)
        elif instance.type in AZAPI:
            entry = azapi.convert_azapi(estate, instance)
            yield Update(instance, entry) if isinstance(entry, Placed) and instance.type == AZAPI_UPDATE else entry
        elif instance.type in actions.UNSTATED and carrier_of(_arm_type(instance), {}) is not None:
            message = f"`{instance.address}` is not read: it deploys resources that it does not name"
            yield refuse(instance.pointer, message, "deploy them with `azapi_resource`")


def _is_read(kind: str) -> bool:
    """Check whether resources of a type are read, or are named as not read."""
    return kind in (*KINDS, *DEPLOYS, *AZAPI, *actions.UNSTATED, *MANIFESTS) or kind.startswith(_CONCERNED)


def _arm_type(instance: Instance) -> str:
    return str(instance.values.get("type")).partition("@")[0]


def _changes(document: JsonObject) -> dict[str, PlannedChange]:
    """Return the planned change of each instance by address, without deposed objects."""
    found: dict[str, PlannedChange] = {}
    for entry in objects(document.get("resource_changes")):
        change = entry.get("change")
        if not isinstance(change, dict) or entry.get("deposed") or not isinstance(entry.get("address"), str):
            continue
        before = change.get("before")
        before = before if isinstance(before, dict) else {}
        if change.get("actions") not in (["update"], ["no-op"]):
            before = {"id": before.get("id")}
        found[entry["address"]] = PlannedChange(change.get("after_unknown"), change.get("after_sensitive"), before)
    return found


def _incomplete(document: JsonObject, file: str) -> Iterator[str]:
    if document.get("errored") is True:
        yield f"{file}: the plan ended with an error, so it is incomplete"
    elif document.get("complete") is False:
        yield f"{file}: the plan is not complete (`-target`, or deferred changes): another plan has to follow"


def _find_unread(document: JsonObject, instances: Iterable[Instance], file: str) -> Iterator[str]:
    """Yield a line for each deferred change and each command of a plan whose result is not in it."""
    messages = dict.fromkeys((*actions.find_deferred(document), *actions.find_commands(document, instances)))
    return (f"{file}: {message}" for message in messages)


def _missing(estate: ResolvedInstances, every: Iterable[Placed]) -> Iterator[str]:
    """Yield a message for each resource in an unknown workspace, because any workspace can be the one."""
    for placed in every:
        arm_id = placed.resource["id"]
        if "/workspaces/{workspace}/" in arm_id:
            last = arm_id.rpartition("/")[2]
            yield f"{estate.around.file}: the workspace of `{last}` is known only after apply"


def _find_open_updates(estate: ResolvedInstances, parts: Iterable[Placed]) -> Iterator[str]:
    """Yield a message for each update of a resource that is not in the document and whose id is not known."""
    for part in parts:
        if is_placeholder(part.resource["id"]):
            yield f"{estate.around.file}: the resource that `{part.names.address}` updates is known only after apply"


def _find_problems(managed: Iterable[Instance], *, is_state: bool) -> Iterator[Problem]:
    for instance in managed:
        if instance.type.startswith(_CONCERNED) and instance.type not in KINDS:
            yield remark(instance.pointer, f"`{instance.address}` is not read: `{instance.type}` is not supported")
        elif instance.type == actions.ACTION and (action := actions.action_of(instance)):
            why = action.why or ("it ran before" if is_state and action.method in actions.CHANGES else "")
            if why:
                message = f"`{instance.address}` is not read: `{instance.type}` does not state its result: {why}"
                yield remark(instance.pointer, message)
        elif instance.type in actions.UNSTATED:
            message = f"`{instance.address}` is not read: `{instance.type}` does not state its result"
            yield remark(instance.pointer, message)


def _explain_nothing(managed: list[Instance]) -> str:
    if not managed:
        return "a Terraform document without resources"
    kinds = list(dict.fromkeys(instance.type for instance in managed))
    named = ", ".join(f"`{shortened(kind)}`" for kind in kinds[:3]) + (", …" if len(kinds) > 3 else "")
    return f"Terraform resources that no policy checks: {named}"


def _is_state_file(document: JsonObject) -> bool:
    has_resources = "resources" in document or "modules" in document
    version = document.get("version")
    is_version = isinstance(version, int) and not isinstance(version, bool)
    return is_version and has_resources and len(_STATE_KEYS & document.keys()) > 1


def _is_log(document: JsonObject) -> bool:
    return "@level" in document and "@message" in document and "@timestamp" in document


def _is_encrypted(document: JsonObject) -> bool:
    return "encrypted_data" in document and "encryption_version" in document


def _is_configuration(document: JsonObject) -> bool:
    """Check whether the document is a `.tf.json` file: resources by type and name."""
    resources = document.get("resource")
    kinds = resources.values() if isinstance(resources, dict) and resources and document.keys() <= _BLOCKS else ()
    return (
        bool(kinds)
        and all(isinstance(kind, dict | list) for kind in kinds)
        and all("_" in kind for kind in resources or ())
    )


def _refuse(pointer: str, message: str, remedy: str) -> ParsedDocument:
    return ParsedDocument(problems=(refuse(pointer, message, remedy),))
