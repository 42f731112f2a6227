"""Kubernetes objects and ARM templates that a Terraform document applies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from policyeng.errors import InputError
from policyeng.models import JsonObject, Problem, SourceNames
from policyeng.parsing.json_pointer import filled, keys_of
from policyeng.sources import kubernetes
from policyeng.sources.arm_resource import is_placeholder
from policyeng.sources.arm_template.expressions import in_braces
from policyeng.sources.parsed import ParsedDocument, Placed, Surroundings, remark
from policyeng.sources.terraform.instances import AFTER_APPLY, Instance
from policyeng.sources.terraform.related_resources import DEPLOYMENT, DEPLOYS
from policyeng.sources.terraform.resolution import ResolvedInstances
from policyeng.sources.terraform.resource_types import Unstated

#: By type, the attributes that have the manifest, the first that is known; the second one of kubectl hides secrets.
_MANIFESTS = {"kubectl_manifest": ("yaml_body", "yaml_body_parsed"), "kubernetes_manifest": ("manifest",)}
MANIFESTS = frozenset(_MANIFESTS)
#: What the manifest reader takes for a value that is not known yet, as of a tool that fills it in.
_UNKNOWN = {True: "<known after apply>", False: "<sensitive>"}
_NOT_KNOWN = "its manifest, or the kind in it, is known only after apply or is sensitive"


class _Manifest(NamedTuple):
    """An object with its place in the document; of one in a text the place is that of the text."""

    object: object
    pointer: str
    is_text: bool = False

    def place(self, rest: str) -> str:
        """Return the path of a part of the object."""
        return self.pointer if self.is_text else self.pointer + rest


def read_manifests(instances: Iterable[Instance], around: Surroundings) -> tuple[ParsedDocument, list[Problem]]:
    """Read the objects of all instances together, because one names another, as the manifest reader reads a list.

    Returns:
        What is read, and why of an instance nothing is.
    """
    manifests: list[_Manifest] = []
    unread: list[Problem] = []
    for instance in instances:
        if instance.type in MANIFESTS:
            try:
                manifests += _manifests(instance)
            except InputError as error:
                unread.append(remark(instance.pointer, f"`{instance.address}` is not read: {error.message}"))
    found = kubernetes.read([each.object for each in manifests], around)

    def place(pointer: str) -> str:
        index, slash, rest = pointer[1:].partition("/")
        return manifests[int(index)].place(slash + rest)

    resources = [
        placed._replace(pointer=place(placed.pointer), fields={at: place(there) for at, there in placed.fields.items()})
        for placed in found.resources
    ]
    problems = tuple(replace(problem, place=place(problem.place)) for problem in found.problems)
    return replace(found, resources=tuple(resources), problems=problems), unread


def _manifests(instance: Instance) -> list[_Manifest]:
    """Return the objects that an instance applies.

    Raises:
        InputError: they are not known, or their text is no YAML.
    """
    for attribute in _MANIFESTS[instance.type]:
        value, pointer = instance.values.get(attribute), f"{instance.attributes}/{attribute}"
        if isinstance(value, str):
            from policyeng.parsing.yaml_text import parse_kubernetes_yaml  # most plans have no YAML

            documents = parse_kubernetes_yaml(value.encode(), attribute)
            values = [document.value for document in documents]
            return [_Manifest(value, pointer, is_text=True) for value in values if value is not None]
        if isinstance(value, dict):
            if value.keys() == {"type", "value"}:  # a state file wraps dynamic values with their type
                return [_Manifest(value["value"], f"{pointer}/value")]
            if not {f"/{attribute}/apiVersion", f"/{attribute}/kind"}.isdisjoint(instance.unread):
                break
            known: object = value
            for at, why in instance.unread.items():
                if at.startswith(f"/{attribute}/"):
                    known = filled(known, keys_of(at)[1:], _UNKNOWN[why == AFTER_APPLY])
            return [_Manifest(known, pointer)]
    raise InputError(_NOT_KNOWN)


#: By attribute, the member of `properties`; `parameters` contains only values, and all others are as ARM has them.
_MEMBERS: Mapping[str, str] = {
    "deployment_mode": "mode",
    "main_template": "mainTemplate",
    "parameters": "parameters",
    "parameters_body": "parameters",
    "parameters_content": "parameters",
    "template_body": "template",
    "template_content": "template",
}
#: What the provider calls computed unless the configuration states it.
_UNSTATED = tuple(Unstated(f"/{name}") for name in ("parameters_content", "template_body", "template_content"))
_SPEC = "template_spec_version_id"
_GROUP = "/providers/Microsoft.Management/managementGroups/{managementGroup}"


class _Attribute(NamedTuple):
    """An attribute's value and its pointer in the document."""

    value: object
    pointer: str


def convert_deployment(estate: ResolvedInstances, instance: Instance) -> Placed:
    """Return the ARM resource of an instance whose type is in `DEPLOYS`."""
    settled = estate.settled(instance, {}, _UNSTATED)
    properties: JsonObject = {}
    unreadable: dict[str, str] = {}
    fields: dict[str, str] = {}
    for attribute, name in _MEMBERS.items():
        stated = _Attribute(settled.values.get(attribute), f"{instance.attributes}/{attribute}")
        why = next((why for at, why in settled.unread.items() if not at or f"{at}/".startswith(f"/{attribute}/")), "")
        if name == "template" and (spec := _stored(estate, settled.values.get(_SPEC))):
            stated, why = spec, ""
        if why:
            unreadable[f"/properties/{name}"] = why
        elif stated.value in (None, "", {}):
            continue
        elif attribute == "parameters" and isinstance(stated.value, dict):
            properties[name] = {key: {"value": value} for key, value in stated.value.items()}
        else:
            properties[name] = stated.value
        fields[f"/properties/{name}"] = stated.pointer
    identity = _build_id(estate, instance)
    if is_placeholder(identity):
        unreadable["/id"] = estate.why_unplaced(instance) or "its deployment scope is known only after apply"
    resource = {"id": identity, "type": DEPLOYS[instance.type], "properties": properties}
    names = SourceNames(address=instance.address, base=instance.attributes)
    return Placed(resource, instance.pointer, unreadable, None, fields, names=names)


def _stored(estate: ResolvedInstances, version: object) -> _Attribute | None:
    """Return the template of a template spec that the document looks up."""
    found = estate.by_id(version) if isinstance(version, str) else None
    if found is None or not found.values.get("template_body"):
        return None
    return _Attribute(found.values["template_body"], f"{found.attributes}/template_body")


def _build_id(estate: ResolvedInstances, instance: Instance) -> str:
    if stated := estate.stated_id(instance):
        return stated
    if "_subscription_" in instance.type:
        scope = estate.subscription
    elif "_management_group_" in instance.type:
        scope = estate.parent(instance, "management_group_id", "") or _GROUP
    elif "_tenant_" in instance.type:
        scope = ""
    else:
        return estate.identity(instance)
    name = instance.values.get("name")
    name = name.replace("/", "~") if isinstance(name, str) and name.strip() else in_braces(instance.address)
    return f"{scope}/providers/{DEPLOYMENT}/{name}"
