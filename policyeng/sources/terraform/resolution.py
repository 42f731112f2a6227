"""Resolution of the ids and the unknown attributes of a Terraform document's instances."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from policyeng.facts.ids import types_of
from policyeng.models import WORKSPACE_TYPE, JsonObject, lowered
from policyeng.parsing.json_pointer import filled, keys_of, member, value_at
from policyeng.sources.arm_resource import is_placeholder
from policyeng.sources.parsed import Surroundings
from policyeng.sources.terraform import machine_learning, related_resources
from policyeng.sources.terraform.instances import (
    AFTER_APPLY,
    SENSITIVE,
    Instance,
    module_calls,
    module_key,
    parent_module,
)
from policyeng.sources.terraform.resource_types import Addressed, TerraformResourceType, Unstated

#: Inputs and outputs that lead to one another further than this lead nowhere.
MAX_STEPS = 64
#: An expression that refers to more than this is not followed.
MAX_REFERENCES = 256

#: What is known while planning, and at most chooses among instances.
_CHOOSING = ("each.key", "count.", "path.", "terraform.")
_NOT_IN_PLAN = ("local.", "self.", "each.")
_OUTPUT = re.compile(r'module\.([^.\[]+)(?:\[("(?:[^"\\]|\\.)*"|\d+)\])?\.([^.\[]+)')
_RESOURCE = re.compile(r'(data\.)?([a-z][a-z0-9_]*)\.([^.\[]+)(?:\[("(?:[^"\\]|\\.)*"|\d+)\])?')


class _Scoped(NamedTuple):
    """References in a module instance.

    Attributes:
        each: those of the `for_each` that `each.value` is of.
        key: what `each.key` is there; empty without one.
    """

    module: str
    references: tuple[str, ...]
    each: tuple[str, ...] = ()
    key: str = ""


class ResolvedReference(NamedTuple):
    """What references lead to: instances, and whether anything among them leads nowhere."""

    instances: tuple[Instance, ...]
    whole: bool


@dataclass(frozen=True, eq=False)
class Configuration:
    """The configuration of a plan.

    Attributes:
        root: `configuration` of the plan; empty when it has none.
        variables: the values of the root module's variables, by name.
        instances: all of the plan, managed and looked up.
    """

    root: JsonObject
    variables: Mapping[str, object]
    instances: tuple[Instance, ...]

    def expression(self, instance: Instance, pointer: str) -> object:
        """Return the expression of an attribute (`/scale_settings/0/min_node_count`); None if there is none."""
        found: object = self._stated(instance).get("expressions")
        for part in keys_of(pointer):
            if isinstance(found, dict) and "references" in found:
                return found
            found = member(found, part)
        return found

    def is_null(self, instance: Instance, pointer: str) -> bool:
        """Return whether an unknown attribute is left to Azure: it is not stated, or is null.

        What is known while planning and not null would be in the plan. So an expression of variables alone is null.
        """
        above = pointer.rpartition("/")[0].rpartition("/")[0]
        if not self._stated(instance) or (above and self.expression(instance, above) is None):
            return False  # a `dynamic` block is not in the configuration of a plan
        return self.sources(instance, pointer) == ResolvedReference((), whole=True)

    def references(self, instance: Instance, pointer: str) -> list[str]:
        """Return the references of an attribute of an instance, each resource once."""
        return _select_longest(_references(self.expression(instance, pointer)))

    def sources(self, instance: Instance, pointer: str) -> ResolvedReference:
        """Return the instances that an attribute of an instance comes from."""
        each = _references(self._stated(instance).get("for_each_expression"))
        stated = _references(self.expression(instance, pointer))
        start = _Scoped(instance.module, stated, each, str(instance.index))
        waiting, met, found = [start], set[_Scoped](), list[ResolvedReference]()
        while waiting:
            scoped = waiting.pop()
            if len(met) > MAX_STEPS or len(scoped.references) > MAX_REFERENCES:
                return ResolvedReference((), whole=False)
            if scoped not in met:
                met.add(scoped)
                for reference in _select_longest(scoped.references):
                    sources = self._find_sources(scoped, reference)
                    waiting += sources
                    found.append(self._found(scoped, reference, has_sources=bool(sources)))
        every = {id(one): one for entry in found for one in entry.instances}
        return ResolvedReference(tuple(every.values()), all(entry.whole for entry in found))

    def _found(self, scoped: _Scoped, reference: str, *, has_sources: bool) -> ResolvedReference:
        if has_sources or reference.startswith(_CHOOSING):
            return ResolvedReference((), whole=True)
        named = _RESOURCE.match(reference)
        if named is None or reference.startswith(("var.", "module.", *_NOT_IN_PLAN)):
            return ResolvedReference((), whole=False)
        there = self._by_resource.get((scoped.module, bool(named[1]), named[2], named[3]), {})
        if named[4] is not None:
            there = {key: one for key, one in [(named[4].strip('"'), there.get(named[4].strip('"')))] if one}
        elif len(there) > 1 and "each.key" in scoped.references and scoped.key in there:
            there = {"": there[scoped.key]}
        return ResolvedReference(tuple(islice(there.values(), 2)), whole=True)  # two are as many as more

    def _find_sources(self, scoped: _Scoped, reference: str) -> list[_Scoped]:
        """Find the references that give an input, an output or an element of `for_each` its value."""
        if reference.startswith("var."):
            return self._given(scoped.module, re.split(r"[.\[]", reference)[1])
        if reference.startswith("each.value") and scoped.each:
            return [_Scoped(scoped.module, scoped.each, key=scoped.key)]
        output = _OUTPUT.match(reference)
        if output is None:
            return []
        child = f"{scoped.module}.module.{output[1]}".lstrip(".")
        outputs = self._modules.get(tuple(module_calls(child)), {}).get("outputs")
        stated = outputs.get(output[3]) if isinstance(outputs, dict) else None
        references = _references(stated.get("expression") if isinstance(stated, dict) else None)
        wanted = f"{child}[{output[2]}]" if output[2] else ""
        return [
            _Scoped(address, references)
            for address in self._module_addresses.get((scoped.module, output[1]), ())
            if address == wanted or not wanted
        ]

    def _given(self, module: str, name: str) -> list[_Scoped]:
        """Return the sources of a variable's value."""
        if not module:
            return [_Scoped("", ())] if name in self.variables else []
        call = self._calls.get(tuple(module_calls(module)), {})
        expressions = call.get("expressions")
        stated = expressions.get(name) if isinstance(expressions, dict) else None
        each = _references(call.get("for_each_expression"))
        return [_Scoped(parent_module(module), _references(stated), each, module_key(module))]

    def _stated(self, instance: Instance) -> JsonObject:
        """Return the configuration of an instance; empty if it is not in the plan."""
        return self._resources.get((tuple(module_calls(instance.module)), _resource_key(instance)), {})

    @cached_property
    def _by_resource(self) -> Mapping[tuple[str, bool, str, str], dict[str, Instance]]:
        """The instances by module instance, mode, type and name, then by index."""
        found: dict[tuple[str, bool, str, str], dict[str, Instance]] = {}
        for instance in self.instances:
            key = (instance.module, instance.is_data, instance.declared or instance.type, instance.name)
            found.setdefault(key, {})[str(instance.index)] = instance
        return found

    @cached_property
    def _module_addresses(self) -> Mapping[tuple[str, str], list[str]]:
        """The module instances by the module instance that calls them and the name of the call."""
        found: dict[tuple[str, str], list[str]] = {}
        met: set[str] = set()
        for instance in self.instances:
            module = instance.module
            while module not in met and (calls := module_calls(module)):
                met.add(module)
                found.setdefault((parent_module(module), calls[-1]), []).append(module)
                module = parent_module(module)
        return found

    @cached_property
    def _modules(self) -> Mapping[tuple[str, ...], JsonObject]:
        """The modules of the configuration by the names of the calls that lead there."""
        return {path: module for path, _, module in _modules(self.root)}

    @cached_property
    def _calls(self) -> Mapping[tuple[str, ...], JsonObject]:
        return {path: call for path, call, _ in _modules(self.root)}

    @cached_property
    def _resources(self) -> Mapping[tuple[tuple[str, ...], str], JsonObject]:
        return {
            (path, f"{entry.get('mode')}.{entry.get('type')}.{entry.get('name')}"): entry
            for path, _, module in _modules(self.root)
            for entry in objects(module.get("resources"))
        }


def list_modules(root: JsonObject) -> Iterator[tuple[tuple[str, ...], JsonObject]]:
    """Yield every module of a configuration with the names of the calls that lead to it."""
    return ((path, module) for path, _, module in _modules(root))


def _modules(root: JsonObject) -> Iterator[tuple[tuple[str, ...], JsonObject, JsonObject]]:
    """Yield every module of a configuration with the names of the calls that lead to it, and the call."""
    waiting: list[tuple[tuple[str, ...], JsonObject, object]] = [((), {}, root.get("root_module"))]
    while waiting:
        path, call, module = waiting.pop()
        if not isinstance(module, dict) or len(path) > MAX_STEPS:
            continue
        yield path, call, module
        calls = module.get("module_calls")
        for name, inner in calls.items() if isinstance(calls, dict) else ():
            if isinstance(inner, dict):
                waiting.append(((*path, name), inner, inner.get("module")))


def _references(expression: object) -> tuple[str, ...]:
    """Return the references of an expression or of everything in a block."""
    found: list[str] = []
    waiting: list[object] = [expression]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            references = value.get("references")
            if isinstance(references, list):
                found += [entry for entry in references if isinstance(entry, str)]
            else:
                waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return tuple(found)


def _select_longest(references: Iterable[str]) -> list[str]:
    """Return the references without prefixes of others: `a.b.id` comes with `a.b`."""
    every = list(dict.fromkeys(references))
    beginnings = {shorter for entry in every for shorter in _list_prefixes(entry)}
    return [entry for entry in every if entry not in beginnings]


def _list_prefixes(reference: str) -> Iterator[str]:
    return (reference[: sign.start()] for sign in re.finditer(r"[.\[]", reference))


def _resource_key(instance: Instance) -> str:
    return f"{'data' if instance.is_data else 'managed'}.{instance.declared or instance.type}.{instance.name}"


def objects(value: object) -> list[JsonObject]:
    """Return the objects of a list; empty if the value is not a list."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


KINDS: Mapping[str, TerraformResourceType] = {
    **machine_learning.KINDS,
    **related_resources.KINDS,
    **related_resources.MONITORING_KINDS,
    **related_resources.GOVERNANCE_KINDS,
    **related_resources.SERVICE_KINDS,
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
        is_state: everything in it exists, and is not only planned.
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
        if self._states_target(update) or not update.values.get("name"):
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
        if instance.type == related_resources.SETTING and more and types_of(stated):
            return f"{stated}/providers/{_PLACED[instance.type].arm_type}/{more}"
        return stated if types_of(stated) else ""

    def _made(self, instance: Instance, depth: int) -> str:
        placeholder = "{" + instance.address.replace("/", "~").replace("{", "(").replace("}", ")") + "}"
        name = instance.values.get(_PLACED[instance.type].name if instance.type in _PLACED else "name")
        name = name.replace("/", "~") if isinstance(name, str) and name.strip() else placeholder
        if instance.type == GROUP:
            return f"{self.subscription}/resourceGroups/{name if name != placeholder else self._stated_group}"
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
        group = self._group_of(instance, depth)
        if not place.within:
            return group
        name = instance.values.get(place.within)
        source = None if isinstance(name, str) else self.source(instance, f"/{place.within}", above)
        if source is not None and depth < _MAX_DEPTH:
            return self.identity(source, depth + 1)
        return self._below(group, above, str(name or f"{{{place.within}}}"))

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
        if instance.values.get("parent_id") == "/":  # the tenant, below which ids begin with `/providers/`
            return ""
        return self.parent(instance, "parent_id", wanted, depth) or self._some(wanted)

    def _wanted_parent(self, instance: Instance) -> str:
        arm_type = self.arm_type(instance)
        return arm_type.rpartition("/")[0] if arm_type.count("/") > 1 else ""

    def _aim(self, instance: Instance) -> Instance | None:
        """Return the instance that the `resource_id` of an update comes from; None if its type differs."""
        if instance.type != AZAPI_UPDATE or not self._states_target(instance):
            return None
        return self.source(instance, "/resource_id", self.arm_type(instance))

    def _states_target(self, update: Instance) -> bool:
        """Check whether the configuration has a `resource_id` instead of `name` and `parent_id`."""
        return self.configuration.expression(update, "/resource_id") is not None

    def _below(self, parent: str, arm_type: str, name: str) -> str:
        """Return the id of a child of its parent type, or of a resource below any scope."""
        above, _, last = arm_type.rpartition("/")
        if lowered(above) in types_of(parent):
            return f"{parent}/{last}/{name}"
        return f"{parent}/providers/{arm_type}/{name}"

    def _group(self, name: str) -> str:
        return f"{self.subscription}/resourceGroups/{name or self._stated_group}"

    @property
    def _stated_group(self) -> str:
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
