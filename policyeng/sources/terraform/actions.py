"""What a plan does besides setting attributes: requests to Azure, commands, and changes that it defers.

Sources: https://registry.terraform.io/providers/Azure/azapi/latest/docs/resources/resource_action,
https://developer.hashicorp.com/terraform/internals/json-format and
https://developer.hashicorp.com/terraform/language/resources/provisioners/syntax.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from policyeng.facts.ids import types_of
from policyeng.models import JsonObject, lowered
from policyeng.parsing.json_text import shortened
from policyeng.sources.arm_resource import is_placeholder, type_in_id
from policyeng.sources.terraform.instances import Instance, PlannedChange, instance_of, module_calls
from policyeng.sources.terraform.resolution import AZAPI_UPDATE, list_modules, objects

ACTION = "azapi_resource_action"
#: Types whose result is not among their attributes.
UNSTATED = (ACTION, "azapi_data_plane_resource")
_STAYS = (["no-op"], ["read"])
_READS = ("GET", "HEAD")
CHANGES = ("PUT", "PATCH", "DELETE")
#: By type of managed and looked-up resources, what they run.
_COMMANDS: Mapping[str, str] = {
    "ansible_playbook": "a playbook",
    "external": "a command",
    "restapi_object": "a request",
    "shell_script": "a command",
    "shell_sensitive_script": "a command",
    "terracurl_request": "a request",
}


class Action(NamedTuple):
    """A request to Azure.

    Attributes:
        method: in upper case; empty if it is not known.
        id: of the resource that it changes; empty for one that is known only after apply.
        arm_type: of that resource.
        why: why it is not known what it changes; empty if that is known, or it changes nothing.
    """

    method: str = ""
    id: str = ""
    arm_type: str = ""
    why: str = ""


def action_of(instance: Instance) -> Action:
    """Return the request of an `azapi_resource_action`."""
    values, unread = instance.values, instance.unread
    method = str(values.get("method") or "POST").upper()
    stated = str(values.get("type") or "").partition("@")[0]
    if open_still := next((name for name in ("method", "type", "action", "resource_id") if f"/{name}" in unread), ""):
        if method == "PATCH" and open_still == "resource_id" and not values.get("action"):
            return Action(method, "", stated)  # the resource can be one of the plan, as that of an update
        return Action(why=f"its `{open_still}` is known only after apply or is sensitive")
    identity, path = (str(values.get(name) or "").strip("/") for name in ("resource_id", "action"))
    if method in _READS or (method == "POST" and lowered(path.rpartition("/")[2]).startswith("list")):
        return Action(method)  # by convention, actions of ARM that begin with `list` read
    if method not in CHANGES:
        return Action(method, why=f"it calls `{shortened(path)}` of `{shortened(identity)}` with {shortened(method)}")
    whole = "/".join(("", identity, *filter(None, [path])))
    if not types_of(whole) or "?" in whole or is_placeholder(whole):
        return Action(method, why=f"it sends a {method} to `{shortened(whole)}`, which is not the id of a resource")
    if not path and lowered(stated) not in types_of(whole):
        return Action(method, why=f"`type` is `{shortened(stated)}`, which `{shortened(whole)}` is not")
    arm_type = type_in_id(whole) if path else stated
    if method != "DELETE" and values.get("body") is None and not _has_unread_body(instance):
        return Action(method, whole, arm_type, f"it sends a {method} without `body` to `{shortened(whole)}`")
    return Action(method, whole, arm_type)


def _has_unread_body(instance: Instance) -> bool:
    return any(pointer.startswith(("/body", "/sensitive_body")) for pointer in instance.unread) or bool(
        instance.values.get("sensitive_body")
    )


def resolve_actions(instances: Iterable[Instance], plan: JsonObject) -> Iterator[Instance]:
    """Yield instances without actions that do not run, and with what actions put or patch as such a resource."""
    staying = _list_staying(plan)
    for instance in instances:
        if instance.type != ACTION or instance.is_data:
            yield instance
        elif instance.address not in staying and instance.values.get("when") != "destroy":
            yield _resolve(instance)
    for index, entry in enumerate(objects(plan.get("resource_changes"))):
        change, actions = entry.get("change"), _actions(entry)
        before = change.get("before") if isinstance(change, dict) else None
        is_destroyed = isinstance(actions, list) and "delete" in actions and entry.get("type") == ACTION
        if is_destroyed and isinstance(before, dict) and before.get("when") == "destroy":
            yield _resolve(instance_of(entry, before, f"/resource_changes/{index}", "/change/before"))


def _resolve(instance: Instance) -> Instance:
    action = action_of(instance)
    if action.why or action.method not in ("PUT", "PATCH"):
        return instance
    kind = "azapi_resource" if action.method == "PUT" else AZAPI_UPDATE
    name = action.id.rpartition("/")[2]
    known = {"name": name, "id": action.id, "resource_id": action.id} if action.id else {}
    values = {**instance.values, "type": action.arm_type, **known}
    return replace(instance, type=kind, declared=instance.type, values=values)


def list_replaced(instances: Iterable[Instance], plan: JsonObject) -> set[tuple[str, str]]:
    """Return id and pointer of each resource that the plan leaves as it is, but that an action writes again.

    If the plan changes such a resource, too, it does not state which change is the last one.
    """
    managed = list(instances)
    put = {lowered(str(each.values["id"])) for each in managed if each.declared and each.type != AZAPI_UPDATE}
    staying = _list_staying(plan) if put else set()
    return {(arm_id, each.pointer) for each in managed if each.address in staying for arm_id in put}


def deferred(plan: JsonObject) -> Iterator[Instance]:
    """Yield the instances whose changes a plan defers, as far as it states what they become."""
    for index, entry in enumerate(_list(plan.get("deferred_changes"))):
        if _is_stated(entry) and isinstance(entry, dict):
            stated = entry["resource_change"]
            after = stated["change"]["after"]
            change = PlannedChange(stated["change"].get("after_unknown"), stated["change"].get("after_sensitive"))
            place = f"/deferred_changes/{index}/resource_change"
            yield instance_of(stated, after, place, "/change/after", change)


def find_deferred(plan: JsonObject) -> Iterator[str]:
    """Yield a message for each deferred change whose result the plan does not state."""
    for entry in _list(plan.get("deferred_changes")):
        if not _is_stated(entry):
            change = entry.get("resource_change") if isinstance(entry, dict) else None
            address = change.get("address") if isinstance(change, dict) else None
            of = f" of `{shortened(address)}`" if isinstance(address, str) else ""
            yield f"the plan defers changes{of} to a later plan"


def _is_stated(entry: object) -> bool:
    """Check whether a deferred change states its result, or changes nothing."""
    stated = entry.get("resource_change") if isinstance(entry, dict) else None
    change = stated.get("change") if isinstance(stated, dict) else None
    if not isinstance(stated, dict) or not isinstance(change, dict):
        return False
    actions = _actions(stated)
    is_known = isinstance(stated.get("type"), str) and "[*]" not in str(stated.get("address"))
    return is_known and isinstance(change.get("after"), dict) and isinstance(actions, list) and "delete" not in actions


def find_commands(plan: JsonObject, instances: Iterable[Instance]) -> Iterator[str]:
    """Yield a message for each command that a plan runs: what it changes is not in the plan.

    Provisioners run when a resource is created or destroyed.
    """
    staying, started = _list_staying(plan), _list_started(plan)
    running: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for instance in instances:
        key = (tuple(module_calls(instance.module)), f"{instance.declared or instance.type}.{instance.name}")
        if started.get(instance.address, True):
            running.setdefault(key, []).append(instance.address)
        method = instance.values.get("method")
        is_request = instance.type == "http" and instance.is_data and method not in (None, *_READS)
        what = "a request" if is_request else _COMMANDS.get(instance.type, "")
        if what and (instance.is_data or instance.address not in staying):
            yield f"`{instance.address}` runs {what}: what it changes is not read"
        if instance.type == ACTION and instance.is_data and (why := action_of(instance).why):
            yield f"`{instance.address}` is not read: {why}"
    for entry in objects(plan.get("resource_changes")):
        if started.get(str(entry.get("address"))) and isinstance(entry.get("address"), str):
            key = (
                tuple(module_calls(str(entry.get("module_address") or ""))),
                f"{entry.get('type')}.{entry.get('name')}",
            )
            running.setdefault(key, []).append(entry["address"])
    configuration = plan.get("configuration")
    for path, module in list_modules(configuration if isinstance(configuration, dict) else {}):
        for entry in objects(module.get("resources")):
            addresses = running.get((path, f"{entry.get('type')}.{entry.get('name')}"), ())
            kinds = ", ".join(f"`{shortened(str(one.get('type')))}`" for one in objects(entry.get("provisioners")))
            for address in dict.fromkeys(addresses if kinds else ()):
                yield f"`{address}` runs a command ({kinds}): what it changes is not read"
    for entry in objects(plan.get("action_invocations")):
        yield f"`{shortened(str(entry.get('address')))}` runs an action: what it changes is not read"


def _list_staying(plan: JsonObject) -> set[str]:
    """Return the addresses of instances that the plan does not change."""
    return {str(entry.get("address")) for entry in objects(plan.get("resource_changes")) if _actions(entry) in _STAYS}


def _list_started(plan: JsonObject) -> dict[str, bool]:
    """Return by address whether an instance is created or destroyed."""
    started: dict[str, bool] = {}
    for entry in objects(plan.get("resource_changes")):
        address, actions = str(entry.get("address")), _actions(entry)
        is_started = not isinstance(actions, list) or not {"create", "delete"}.isdisjoint(map(str, actions))
        started[address] = started.get(address, False) or is_started
    return started


def _actions(entry: JsonObject) -> object:
    change = entry.get("change")
    return change.get("actions") if isinstance(change, dict) else None


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
