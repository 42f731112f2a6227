"""Changes that a resource makes because it carries a template, such as a deployment: those of the template's resources.

Source: https://learn.microsoft.com/azure/azure-resource-manager/templates/deployment-modes and deployment-stacks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from policyeng.admission.named import as_arm_reads_it
from policyeng.bundle.spellings import Spellings
from policyeng.errors import InputError
from policyeng.evaluation.estate import Becomes
from policyeng.facts.ids import folded_id
from policyeng.models import Change, JsonObject, Operation, Origin, Problem, lowered
from policyeng.sources.arm_template import Contents
from policyeng.sources.reading import Placed, Reading
from policyeng.sources.template_carriers import APPLICATION, DEPLOYMENT, STACK, carrier_of, member

#: What takes the resources that it deployed away with it, if it was created so or is deleted so.
_MANAGING = (STACK, APPLICATION)

#: How the types begin that complete mode does not delete.
_STAYS = ("microsoft.authorization/", "microsoft.consumption/", f"{DEPLOYMENT}/")

#: The resources of a snapshot, and what changes have made of them, by id as `folded_id` gives it.
State = tuple[Mapping[str, JsonObject], Mapping[str, Becomes]]


def carried(
    change: Change, now: Becomes, was: JsonObject | None, state: State, spellings: Spellings, contents: Contents
) -> list[Change | Problem]:
    """The changes of the resources in the template of what a change puts, and why they are not all known.

    Args:
        change: of any resource; one that carries no template makes no other changes.
        now: the resource after the change.
        was: the resource before it.
        state: what is there before the template is deployed.
        spellings: as for `changes_of`.
        contents: reads the templates of all of the changes.
    """
    resource = now.resource or was
    if resource is None or carrier_of(resource["type"], resource) is None:
        return []
    arm_type = lowered(resource["type"])
    if now.resource is None:
        message = "deleting it may delete the resources that it manages, which are not evaluated as deleted"
        return [_problem("warning", message, change)] if arm_type in _MANAGING else []
    if change.operation is Operation.PATCH and member(change.patch, "properties") is None:
        return []
    reading = contents.read(now.resource, now.notes.unreadable)
    found: list[Change | Problem] = [
        _problem("error", f"{refusal.message}; {refusal.remedy}".removesuffix("; "), change)
        for refusal in reading.refusals
    ]
    found += _deleted(change, now, was, reading, state)
    for placed in reading.resources:
        try:
            found.append(as_arm_reads_it(_put(placed, now.notes.origin), placed.resource["id"], spellings))
        except InputError as error:
            found.append(_problem("error", str(error), change))
    return found


def _put(placed: Placed, origin: Origin | None) -> Change:
    if origin is not None:
        fields = {at: origin.pointer_to(there) for at, there in placed.fields.items()}
        origin = origin.model_copy(update={"pointer": origin.pointer_to(placed.pointer), "fields": fields})
    return Change(
        operation=Operation.REPLACE,
        id=placed.resource["id"],
        resource=placed.resource,
        unreadable=placed.unreadable,
        carried=placed.carried,
        origin=origin,
    )


def _deleted(
    change: Change, now: Becomes, was: JsonObject | None, reading: Reading, state: State
) -> Iterator[Change | Problem]:
    """The deletions of a deployment in complete mode, and of a stack that deletes what it no longer has."""
    resource = now.resource or {}
    arm_type, properties = lowered(resource["type"]), member(resource, "properties")
    held, becomes = state
    there = {**held, **{key: after.resource for key, after in becomes.items()}}
    if arm_type == DEPLOYMENT and "/properties/mode" in map(lowered, now.notes.unreadable):
        yield _problem("error", "the mode of the deployment is not known, so neither is what it deletes", change)
    elif arm_type == DEPLOYMENT and lowered(str(member(properties, "mode"))) == "complete":
        group = change.id[: lowered(change.id).rfind("/providers/")]
        if reading.refusals or any("/id" in placed.unreadable for placed in reading.resources):
            message = "mode Complete deletes what the template does not name, and not all that it names is known"
            yield _problem("error", message, change)
        else:
            yield from _deletes(_below(folded_id(group), there), reading, there)
    elif arm_type == STACK and "delete" in _unmanaged(properties):
        managed = member(member(was, "properties"), "resources")
        if not isinstance(managed, list):
            message = "the stack deletes what its template no longer has; the snapshot does not have that list"
            yield _problem("warning", message, change)
        else:
            ids = (member(one, "id") for one in managed)
            yield from _deletes((folded_id(one) for one in ids if isinstance(one, str)), reading, there)


def _unmanaged(properties: object) -> list[str]:
    """What a stack does with resources, groups and management groups that it no longer has."""
    actions = member(properties, "actionOnUnmanage")
    return [lowered(str(action)) for action in actions.values()] if isinstance(actions, Mapping) else []


def _below(group: str, there: Mapping[str, JsonObject | None]) -> Iterator[str]:
    """The resources that complete mode deletes: those of a resource group itself, not those in them."""
    for key, held in there.items():
        rest = key.removeprefix(f"{group}/providers/")
        if held is not None and key != rest and rest.count("/") == 2 and not rest.startswith(_STAYS):
            yield key


def _deletes(keys: Iterable[str], reading: Reading, there: Mapping[str, JsonObject | None]) -> Iterator[Change]:
    named = {folded_id(placed.resource["id"]) for placed in reading.resources}
    for key in keys:
        held = there.get(key)
        if held is not None and key not in named:
            yield Change(operation=Operation.DELETE, id=held["id"])


def _problem(level: Literal["error", "warning"], message: str, change: Change) -> Problem:
    return Problem(level=level, message=message, place=change.id)
