"""Resolution of the ids and the unknown attributes of a Terraform document's instances."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from policyeng.facts.ids import types_of
from policyeng.models import WORKSPACE_TYPE, JsonObject, lowered
from policyeng.parsing.json_pointer import filled, keys_of, value_at
from policyeng.sources.arm_resource import is_placeholder
from policyeng.sources.parsed import Surroundings
from policyeng.sources.terraform import governance, machine_learning, monitoring, related_resources, services
from policyeng.sources.terraform.instances import AFTER_APPLY, SENSITIVE, Instance
from policyeng.sources.terraform.references import Configuration, ResolvedReference
from policyeng.sources.terraform.resource_types import Addressed, TerraformResourceType, Unstated

KINDS: Mapping[str, TerraformResourceType] = {
    **machine_learning.KINDS,
    **related_resources.KINDS,
    **monitoring.KINDS,
    **governance.KINDS,
    **services.KINDS,
}
GROUP = "azurerm_resource_group"
GROUP_TYPE = "microsoft.resources/resourcegroups"
AZAPI_UPDATE = "azapi_update_resource"
AZAPI = ("azapi_resource", AZAPI_UPDATE)

_PLACED: Mapping[str, Addressed] = {**related_resources.ADDRESSED, **{name: kind.place for name, kind in KINDS.items()}}
_NO_SUBSCRIPTION = "/subscriptions/{subscription}"
_UNKNOWN_GROUP = "{resource-group}"
_SUBSCRIPTION = re.compile(r"/subscriptions/([^/{}]+)(?:/|$)", re.IGNORECASE)
#: The ends of attributes that are lists of ids.
_LISTS = ("_ids", "/scopes")
#: Ids that lie in one another further than this are not made.
_MAX_DEPTH = 16


class SettledAttributes(NamedTuple):
    """The attributes of an instance, with known ones filled in, and why the others are unreadable."""

    values: JsonObject
    unread: Mapping[str, str]


@dataclass(frozen=True, eq=False)
class ResolvedInstances:
    """All instances of a document.

    Attributes:
        instances: managed and looked up.
        configuration: where references are looked up; an empty one in a state, in which all is known.
        around: where the document belongs.
        is_state: everything in it is there, and not only planned.
    """

    instances: tuple[Instance, ...]
    configuration: Configuration
    around: Surroundings
    is_state: bool = False
    _ids: dict[int, str] = field(default_factory=dict)

    def identity(self, instance: Instance, depth: int = 0) -> str:
        """Return the ARM id, or a constructed one with `{...}` for every unknown part."""
        known = self._ids.get(id(instance))
        if known is None:
            known = self._ids[id(instance)] = self.stated_id(instance) or self._made(instance, depth)
        return known

    def settled(
        self, instance: Instance, named: Mapping[str, str], unstated: Iterable[Unstated] = ()
    ) -> SettledAttributes:
        """Resolve attributes that are known only after apply.

        An attribute that is not configured has its value before, or the provider's default. An attribute that comes
        from one resource has the id of that resource.
        """
        values: object = instance.values
        unread = dict(instance.unread)
        for one in unstated:
            open_still = one.unless and value_at(values, one.unless) is not None
            unknown = unread.get(one.source) == AFTER_APPLY and not open_still
            if unknown and self.configuration.is_null(instance, one.source):
                before = value_at(dict(instance.before), one.source)
                _forget(unread, one.source)
                values = filled(values, keys_of(one.source), one.value if before is None else before)
        for pointer, wanted in named.items():
            if found := self._named(instance, pointer, wanted):
                ids = [self.identity(one) for one in found]
                _forget(unread, pointer)
                values = filled(values, keys_of(pointer), ids if pointer.endswith(_LISTS) else ids[0])
        why = {pointer: _why(pointer, reason) for pointer, reason in unread.items()}
        return SettledAttributes(values if isinstance(values, dict) else {}, why)

    def _named(self, instance: Instance, pointer: str, wanted: str) -> list[Instance]:
        """Return the instance whose id an unknown attribute will have, or those of a list; empty if it is not known."""
        unknown = [at for at in instance.unread if f"{at}/".startswith(f"{pointer}/")]
        if not unknown or any(instance.unread[at] != AFTER_APPLY for at in unknown):
            return []
        found = self.configuration.sources(instance, pointer)
        stated = value_at(instance.values, pointer)
        is_list = isinstance(stated, list) and any(map(bool, stated))
        types = {lowered(self.arm_type(one)) for one in found.instances}
        if not found.whole or is_list or (len(found.instances) > 1 and not self._are_all(instance, pointer, found)):
            return []
        return list(found.instances) if types == {lowered(wanted) or next(iter(types), "")} - {""} else []

    def _are_all(self, instance: Instance, pointer: str, found: ResolvedReference) -> bool:
        """Check whether each reference of a list leads to one instance, so that the list has the ids of all of them."""
        return pointer.endswith(_LISTS) and len(found.instances) == len(
            self.configuration.references(instance, pointer)
        )

    def source(self, instance: Instance, pointer: str, wanted: str) -> Instance | None:
        """Return the only instance that an attribute comes from, if it has the wanted ARM type (any if empty)."""
        found = self.configuration.sources(instance, pointer)
        if not found.whole or len(found.instances) != 1:
            return None
        arm_type = lowered(self.arm_type(found.instances[0]))
        return found.instances[0] if arm_type and arm_type == (lowered(wanted) or arm_type) else None

    def arm_type(self, instance: Instance) -> str:
        """Return the ARM type of an instance; empty if it is unknown."""
        if instance.type in AZAPI:
            stated = instance.values.get("type")
            return stated.partition("@")[0] if isinstance(stated, str) else ""
        if instance.type == GROUP:
            return GROUP_TYPE
        if instance.type == "azurerm_subscription":
            return "microsoft.resources/subscriptions"
        return _PLACED[instance.type].arm_type if instance.type in _PLACED else ""

    def parent(self, instance: Instance, attribute: str, wanted: str, depth: int = 0) -> str:
        """Return the id in an attribute, or of the instance that it comes from; empty if it is unknown."""
        stated = instance.values.get(attribute)
        if isinstance(stated, str) and stated.strip():
            return stated.strip().rstrip("/")
        found = self.source(instance, f"/{attribute}", wanted)
        return self.identity(found, depth + 1) if found is not None and depth < _MAX_DEPTH else ""

    def is_aimed(self, update: Instance) -> bool:
        """Check whether the resource that an `azapi_update_resource` updates is known."""
        for _ in range(_MAX_DEPTH):  # updates may follow one another
            aim = self._aim(update)
            if self.stated_id(update) or (aim is not None and aim.type != AZAPI_UPDATE):
                return True
            update = aim or update
        if self._says_target(update) or not update.values.get("name"):
            return False
        return bool(self.parent(update, "parent_id", self._wanted_parent(update)))

    def by_id(self, arm_id: str) -> Instance | None:
        """Return the managed or looked-up instance with an ARM id; updates, which have the same id, do not count."""
        return self._by_id.get(lowered(arm_id))

    @cached_property
    def _by_id(self) -> Mapping[str, Instance]:
        return {lowered(self.identity(one)): one for one in self.instances if one.type != AZAPI_UPDATE}

    @cached_property
    def subscription(self) -> str:
        """Return `/subscriptions/<id>` for new resources, from the user or the plan."""
        if not self.around.scope.startswith(_NO_SUBSCRIPTION):
            return "/".join(self.around.scope.split("/")[:3])
        known = {lowered(one): one for one in self._subscriptions()}
        return f"/subscriptions/{next(iter(known.values()))}" if len(known) == 1 else _NO_SUBSCRIPTION

    @property
    def movable(self) -> str:
        """Return the prefix of the ids that the document does not state."""
        if self.subscription == _NO_SUBSCRIPTION:
            return _NO_SUBSCRIPTION
        return f"{self.subscription}/resourceGroups/{_UNKNOWN_GROUP}"

    def why_unplaced(self, instance: Instance) -> str:
        """Return why the id of an instance is unknown; empty if it is known."""
        arm_id = self.identity(instance)
        if not is_placeholder(arm_id):
            return ""
        if "/workspaces/{workspace}/" in arm_id:
            return "its workspace is known only after apply; pass `--workspace`"
        if arm_id.startswith(_NO_SUBSCRIPTION):
            return "the plan does not name its subscription; pass `--scope`"
        if _UNKNOWN_GROUP in arm_id:
            return "the resource group is known only after apply; pass `--scope`"
        return "its name, or the name of its parent, is known only after apply; provide the state after apply"

    def _subscriptions(self) -> Iterator[str]:
        """Yield the subscriptions of the configured provider, if there is one provider."""
        providers = self.configuration.root.get("provider_config")
        azure = [
            one
            for one in (providers.values() if isinstance(providers, dict) else ())
            if isinstance(one, dict) and one.get("name") in ("azurerm", "azapi")
        ]
        if any(one.get("alias") for one in azure):
            return
        for one in azure:
            stated = value_at(one, "/expressions/subscription_id/constant_value")
            if isinstance(stated, str) and stated:
                yield stated
        for instance in self.instances:
            if instance.type in ("azurerm_client_config", "azurerm_subscription", "azapi_client_config"):
                stated = instance.values.get("subscription_id")
                if instance.is_data and isinstance(stated, str) and stated:
                    yield stated
            else:
                known = _SUBSCRIPTION.match(str(instance.values.get("id") or instance.before.get("id") or ""))
                if known and not instance.is_data and instance.type.startswith(("azurerm_", "azapi_")):
                    yield known[1]

    def stated_id(self, instance: Instance) -> str:
        """Return the ARM id in an instance's attributes; empty if there is none."""
        stated = instance.values.get("id")
        if instance.type == AZAPI_UPDATE:
            stated = instance.values.get("resource_id") or stated
        if instance.type == "azurerm_role_definition":
            stated = instance.values.get("role_definition_resource_id") or stated
        if not isinstance(stated, str):
            return ""
        stated, _, more = stated.partition("|")
        if instance.type == monitoring.SETTING and more and types_of(stated):
            return f"{stated}/providers/{_PLACED[instance.type].arm_type}/{more}"
        return stated if types_of(stated) else ""

    def _made(self, instance: Instance, depth: int) -> str:
        placeholder = "{" + instance.address.replace("/", "~").replace("{", "(").replace("}", ")") + "}"
        name = instance.values.get(_PLACED[instance.type].name if instance.type in _PLACED else "name")
        name = name.replace("/", "~") if isinstance(name, str) and name.strip() else placeholder
        if instance.type == GROUP:
            return f"{self.subscription}/resourceGroups/{name if name != placeholder else self._group_said}"
        if (aim := self._aim(instance)) is not None and depth < _MAX_DEPTH:
            return self.identity(aim, depth + 1)
        if instance.type in AZAPI:
            return self._below(self._azapi_parent(instance, depth), self.arm_type(instance), name)
        place = _PLACED.get(instance.type)
        if place is None:
            return f"{self.subscription}/resourceGroups/{_UNKNOWN_GROUP}/providers/{{type}}/{placeholder}"
        if instance.type == "azurerm_role_definition":
            name = str(instance.values.get("role_definition_id") or placeholder)
        return self._below(self._holder(instance, place, depth), place.arm_type, name)

    def _holder(self, instance: Instance, place: Addressed, depth: int) -> str:
        """Return the id of an instance's parent."""
        above = place.arm_type.rpartition("/")[0]
        if place.in_subscription:
            return self.subscription
        if place.parent:
            wanted = KINDS[instance.type].named.get(f"/{place.parent}", above) if instance.type in KINDS else above
            found = self.parent(instance, place.parent, wanted, depth)
            if wanted == place.arm_type:  # a project is in the resource group of its hub
                found = found[: lowered(found).rfind("/providers/")] if found else self._group("")
            return found or self._some(wanted)
        held = self._group_of(instance, depth)
        if not place.within:
            return held
        name = instance.values.get(place.within)
        source = None if isinstance(name, str) else self.source(instance, f"/{place.within}", above)
        if source is not None and depth < _MAX_DEPTH:
            return self.identity(source, depth + 1)
        return self._below(held, above, str(name or f"{{{place.within}}}"))

    def _group_of(self, instance: Instance, depth: int) -> str:
        name = instance.values.get("resource_group_name")
        if isinstance(name, str) and name.strip():
            return self._group(name.strip())
        source = self.source(instance, "/resource_group_name", GROUP_TYPE) if depth < _MAX_DEPTH else None
        return self.identity(source, depth + 1) if source is not None else self._group("")

    def _some(self, arm_type: str) -> str:
        """Return a placeholder id for a parent of a type that is known only after apply."""
        if lowered(arm_type) == WORKSPACE_TYPE:
            return self.around.workspace
        last = arm_type.rpartition("/")[2]
        return self._below(self._group(""), arm_type, f"{{{last}}}") if "." in arm_type else self._group("")

    def _azapi_parent(self, instance: Instance, depth: int) -> str:
        wanted = self._wanted_parent(instance)
        return self.parent(instance, "parent_id", wanted, depth) or self._some(wanted)

    def _wanted_parent(self, instance: Instance) -> str:
        arm_type = self.arm_type(instance)
        return arm_type.rpartition("/")[0] if arm_type.count("/") > 1 else ""

    def _aim(self, instance: Instance) -> Instance | None:
        """Return the instance that the `resource_id` of an update comes from; None if its type differs."""
        if instance.type != AZAPI_UPDATE or not self._says_target(instance):
            return None
        return self.source(instance, "/resource_id", self.arm_type(instance))

    def _says_target(self, update: Instance) -> bool:
        """Check whether the configuration has a `resource_id` instead of `name` and `parent_id`."""
        return self.configuration.expression(update, "/resource_id") is not None

    def _below(self, parent: str, arm_type: str, name: str) -> str:
        """Return the id of a child of its parent type, or of a resource below any scope."""
        above, _, last = arm_type.rpartition("/")
        if lowered(above) in types_of(parent):
            return f"{parent}/{last}/{name}"
        return f"{parent}/providers/{arm_type}/{name}"

    def _group(self, name: str) -> str:
        return f"{self.subscription}/resourceGroups/{name or self._group_said}"

    @property
    def _group_said(self) -> str:
        """Return the resource group from the user, or a placeholder."""
        return (self.around.scope.split("/") + [""] * 5)[4] or _UNKNOWN_GROUP


def _why(pointer: str, reason: str) -> str:
    name = pointer[1:] or "all of it"
    if reason == SENSITIVE:
        return f"`{name}` is marked sensitive, so it is not read; check the deployed resource instead"
    return f"`{name}` is known only after apply; check the state after apply, too (`terraform show -json`)"


def _forget(unread: dict[str, str], pointer: str) -> None:
    for at in [at for at in unread if f"{at}/".startswith(f"{pointer}/")]:
        del unread[at]
