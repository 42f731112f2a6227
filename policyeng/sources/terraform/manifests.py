"""Kubernetes objects that a Terraform document applies: those of Azure Service Operator are Azure resources.

Source: https://registry.terraform.io/providers/hashicorp/kubernetes/latest/docs/resources/manifest and
https://registry.terraform.io/providers/alekc/kubectl/latest/docs/resources/kubectl_manifest.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from policyeng.errors import InputError
from policyeng.frozen import replace
from policyeng.parsing.json_pointer import filled, keys_of
from policyeng.sources import kubernetes
from policyeng.sources.parsed import ParsedDocument, Surroundings
from policyeng.sources.terraform.instances import AFTER_APPLY, Instance

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
        """Where a part of the object is."""
        return self.pointer if self.is_text else self.pointer + rest


def read_manifests(instances: Iterable[Instance], around: Surroundings) -> tuple[ParsedDocument, list[tuple[str, str]]]:
    """Read the objects of all instances together, because one names another, as the manifest reader reads a list.

    Returns:
        What is read, and by JSON Pointer why of an instance nothing is.
    """
    held: list[_Manifest] = []
    unread: list[tuple[str, str]] = []
    for instance in instances:
        if instance.type in MANIFESTS:
            try:
                held += _manifests(instance)
            except InputError as error:
                unread.append((instance.pointer, f"`{instance.address}` is not read: {error.message}"))
    found = kubernetes.read([each.object for each in held], around)

    def place(pointer: str) -> str:
        index, slash, rest = pointer[1:].partition("/")
        return held[int(index)].place(slash + rest)

    resources = [
        placed._replace(pointer=place(placed.pointer), fields={at: place(there) for at, there in placed.fields.items()})
        for placed in found.resources
    ]
    refusals = [refusal._replace(pointer=place(refusal.pointer)) for refusal in found.refusals]
    remarks = [(place(pointer), message) for pointer, message in found.remarks]
    return replace(found, resources=tuple(resources), refusals=tuple(refusals), remarks=tuple(remarks)), unread


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
