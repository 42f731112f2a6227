"""Two states that differ by chance, and the second with named causes undone: written apart from what finds them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random
from typing import Any

import jsonpatch

from policyeng.audit.diff.inputs import Cause, CauseKind, State
from policyeng.bundle import Bundle
from policyeng.evaluation import EvaluationOptions
from policyeng.facts.ids import fold_id
from policyeng.models import Exemption, JsonObject, Snapshot
from policyeng.parsing.json_pointer import keys_of, value_at
from policyeng.verify.generators.examples import Example, Examples
from policyeng.verify.generators.json_mutations import copied, edit_somewhere

_LISTS = {
    CauseKind.RESOURCE: "resources",
    CauseKind.APPROVAL: "approvals",
    CauseKind.WORKLOAD: "workloads",
    CauseKind.QUOTA: "quotas",
    CauseKind.METRIC: "metrics",
    CauseKind.PRINCIPAL: "principals",
}
_NAMES = {CauseKind.QUOTA: ("scope", "region", "family"), CauseKind.METRIC: ("resourceId", "name")}
_MEMBERS = {"taken_at": "takenAt"}


@dataclass(frozen=True)
class Given:
    """What a state is made of, as documents."""

    bundle: Bundle
    document: JsonObject
    as_of: datetime
    exemptions: tuple[Exemption, ...]
    parameters: Mapping[str, JsonObject]

    @property
    def state(self) -> State:
        """The state."""
        snapshot = Snapshot.model_validate({**self.document, "resources": tuple(self.document["resources"])})
        return State(self.bundle, snapshot, EvaluationOptions(self.as_of, self.exemptions, self.parameters))


def given_of(bundle: Bundle, example: Example) -> Given:
    """An example as it was drawn."""
    return Given(bundle, example.document, example.as_of, example.exemptions, example.parameters)


def drifted(random: Random, source: Examples, given: Given, other: Example) -> Given:
    """The same some time later: up to four things are other ones."""
    after = replace(given, document=_copied(given.document))
    for _ in range(random.choice((1, 1, 2, 4))):
        after = random.choice((_edited, _edited, _edited, _without, _joined, _later, _parameterised, _exempted))(
            random, source, after, other
        )
    return after


def _copied(document: JsonObject) -> JsonObject:
    made = copied(document)
    assert isinstance(made, dict)
    return made


def _edited(random: Random, _: Examples, given: Given, __: Example) -> Given:
    resources = list(given.document["resources"])
    at = random.randrange(len(resources)) if resources else -1
    if at < 0:
        return given
    edited: Any = copied(resources[at])
    for _number in range(random.choice((1, 3))):
        if any(key not in ("id", "type") for key in edited):
            edit_somewhere(random, edited)
    resources[at] = edited
    return replace(given, document={**given.document, "resources": resources})


def _without(random: Random, _: Examples, given: Given, __: Example) -> Given:
    name = random.choice([name for name in _LISTS.values() if given.document.get(name)] or ["resources"])
    left = list(given.document.get(name, ()))
    if left:
        left.pop(random.randrange(len(left)))
    return replace(given, document={**given.document, name: left})


def _joined(random: Random, _: Examples, given: Given, other: Example) -> Given:
    known = {fold_id(str(one["id"])) for one in given.document["resources"]}
    more = [one for one in other.document["resources"] if fold_id(str(one["id"])) not in known]
    chosen = random.sample(more, min(len(more), random.choice((1, 4))))
    return replace(given, document={**given.document, "resources": [*given.document["resources"], *chosen]})


def _later(random: Random, source: Examples, given: Given, _: Example) -> Given:
    return replace(given, as_of=source.moment(random))


def _parameterised(random: Random, source: Examples, given: Given, _: Example) -> Given:
    return replace(given, parameters=source.parameters(random, {}))


def _exempted(random: Random, source: Examples, given: Given, other: Example) -> Given:
    example = replace(other, document=given.document, as_of=given.as_of)
    return replace(given, exemptions=source.exemptions(random, example))


def undone(before: Given, after: Given, causes: Iterable[Cause]) -> Given:
    """What is after, with each cause as it was before."""
    for cause in causes:
        if cause.kind is CauseKind.CLOCK:
            after = replace(after, as_of=before.as_of)
        elif cause.kind is CauseKind.PARAMETERS:
            theirs = {cause.subject: before.parameters.get(cause.subject, {})}
            after = replace(after, parameters={**after.parameters, **theirs})
        elif cause.kind in (CauseKind.POLICY, CauseKind.LIBRARY):
            after = replace(after, bundle=before.bundle)
        elif cause.kind is not CauseKind.EXEMPTION:
            after = replace(after, document=_item_undone(before.document, after.document, cause))
    for cause in causes:  # an exemption is active at a clock, so these come last
        if cause.kind is CauseKind.EXEMPTION:
            after = replace(after, exemptions=_exemption_undone(before, after, cause.subject))
    return after


def _exemption_undone(before: Given, after: Given, name: str) -> tuple[Exemption, ...]:
    """Without one that was not active, with one that was, for as long as it takes."""
    others = [one for one in after.exemptions if one.id != name]
    day = timedelta(days=1)
    for one in before.exemptions:
        if one.id == name and one.created_at <= before.as_of < one.expires_at:
            begins, ends = min(one.created_at, after.as_of - day), max(one.expires_at, after.as_of + day)
            others.append(one.model_copy(update={"created_at": begins, "expires_at": ends}))
    return tuple(others)


def _item_undone(before: JsonObject, after: JsonObject, cause: Cause) -> JsonObject:
    if cause.kind is CauseKind.SNAPSHOT:
        name = _MEMBERS.get(cause.subject, cause.subject)
        left = {key: value for key, value in after.items() if key != name}
        return {**left, name: before[name]} if name in before else left
    name = _LISTS[cause.kind]
    was, now = (_entries(document.get(name, ()), cause) for document in (before, after))
    others = [one for one in after.get(name, ()) if not any(one is entry for entry in now)]
    if cause.change == "changed" and len(was) == len(now) == 1:
        return {**after, name: [*others, _places_undone(was[0], now[0], cause)]}
    return {**after, name: [*others, *was]}


def _entries(entries: Iterable[JsonObject], cause: Cause) -> list[JsonObject]:
    keys = _NAMES.get(cause.kind, ("id",))
    return [one for one in entries if fold_id(" ".join(str(one[key]) for key in keys)) == fold_id(cause.subject)]


def _places_undone(was: JsonObject, now: JsonObject, cause: Cause) -> JsonObject:
    """As it is now but for the named places; a value that is masked in the cause is taken from what was."""
    steps: list[dict[str, Any]] = []
    for change in cause.paths:
        operation = {"came": "remove", "went": "add", "changed": "replace"}[change.change]
        step = {"op": operation, "path": change.path}
        steps.append(step if operation == "remove" else {**step, "value": value_at(was, change.path)})
    steps.sort(key=lambda step: -len(keys_of(step["path"])))
    made: JsonObject = jsonpatch.apply_patch(now, steps)
    return made
