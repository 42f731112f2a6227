"""Law 3: what is found of a resource does not depend on resources that its policy does not say it reads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from random import Random
from typing import Any, TypeAlias

from policyeng.bundle import Bundle, Policy
from policyeng.evaluation import Prepared
from policyeng.evaluation.pointers import has_value
from policyeng.facts.ids import folded_id, is_open, scopes_of, workspace_of
from policyeng.models import Evaluation, Finding, JsonObject, Model, Snapshot, lowered
from policyeng.strict.json_pointer import escaped
from policyeng.verify.drawing.edits import Json, altered, copied, happens, odd, place_of, places, put, remove
from policyeng.verify.drawing.estates import copied_object
from policyeng.verify.laws.consulting import Neighbours
from policyeng.verify.laws.declared import unlike_declared
from policyeng.verify.laws.fields import looked_at, stands_at
from policyeng.verify.laws.law import Law, Trial, Violation, by_pair, spelled

#: What is put behind the names of subscriptions, and of the roles defined in them, for an estate that is another one.
_BESIDE = "-beside"
_NAMES = re.compile(r"(?i)(/(?:subscriptions|roledefinitions)/[^/]+)")
_SUBSCRIPTION = re.compile(r"(?i)/subscriptions/")
#: How many resources are changed at once; alone is each of them tried only where they show something together.
_AT_ONCE = (1, 1, 2, 4, 8)
_UNDECLARED = "a resource that the policy does not declare changes its finding; declare it under `consults`"
_ELSEWHERE = "another estate in another subscription changes the finding; declare what is read under `consults`"

#: A finding's policy, type and id, the latter two in lower case.
_Pair: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True)
class _Change:
    """A resource that is added, taken away (`becomes` is None) or changed at one JSON Pointer.

    Attributes:
        key: its id in lower case.
        pointer: what is no longer as it was; empty for all of it.
    """

    key: str
    was: JsonObject | None
    becomes: JsonObject | None
    pointer: str = ""

    @property
    def words(self) -> str:
        """What is done to it, in a line."""
        if self.was is None:
            return f"added: {self.key}"
        return f"changed: {self.key}:{self.pointer}" if self.becomes is not None else f"taken away: {self.key}"


def _violated(trial: Trial) -> Violation | None:
    random = trial.random("neighbours")
    if happens(random, 0.25) and not _has_open_scopes(trial.snapshot):
        return _beside_another(trial, random)
    if happens(random, 0.4):
        return unlike_declared(trial)
    changes = _drawn(random, trial)
    found = _changed_by(trial, changes)
    if found is None or len(changes) == 1:
        return found
    alone = (_changed_by(trial, [change]) for change in changes)
    return next((violation for violation in alone if violation), found)


LAW = Law(
    number=3,
    name="neighbours",
    sentence="what is found of a resource does not depend on resources that its policy does not say it consults",
    reference="non-interference, as a metamorphic relation: Chen et al., Metamorphic testing (ACM CSUR 51, 2018)",
    violated=_violated,
)


def _drawn(random: Random, trial: Trial) -> list[_Change]:
    """Some resources taken away, changed at one place, or added; no subscription comes or goes with them.

    Which subscriptions a snapshot takes in is no matter of neighbours.
    """
    known = {lowered(resource["id"]): resource for resource in trial.snapshot.resources if _is_named(resource)}
    held: dict[str, int] = {}
    for key in known:
        for scope in scopes_of(key)[:1]:
            held[scope] = held.get(scope, 0) + 1
    changes = []
    for key in random.sample(sorted(known), min(random.choice(_AT_ONCE), len(known))):
        kind, resource = random.randrange(3), known[key]
        home = next(iter(scopes_of(key)), "")
        clone = {**resource, "id": f"{resource['id']}{_BESIDE}"}
        if kind == 0 and held.get(home, 2) > 1:
            held[home] = held.get(home, 2) - 1
            changes.append(_Change(key, resource, None))
        elif kind == 1 and lowered(clone["id"]) not in known:
            changes.append(_Change(lowered(clone["id"]), None, clone))
        else:
            changes += _edited(random, key, resource, looked_at(trial.grounds))
    return changes


def _is_named(resource: JsonObject) -> bool:
    return all(isinstance(resource.get(name), str) and resource[name] for name in ("id", "type"))


def _edited(random: Random, key: str, resource: JsonObject, pointers: Sequence[str]) -> list[_Change]:
    """A resource with another value, or none, in one place, which often is one that policies look at."""
    document = copied_object(resource)
    stated = [pointer for pointer in pointers if has_value(document, pointer) and pointer not in ("/id", "/type")]
    open_places = [place for place in places(document) if place[0] not in ("id", "type")]
    if not open_places:
        return []
    is_directed = bool(stated) and happens(random, 0.5)
    place = place_of(random, document, random.choice(stated)) if is_directed else random.choice(open_places)
    stands, value = stands_at(document, place)
    if happens(random, 0.4):
        remove(document, place)
        if isinstance(place[-1], int):
            place = place[:-1]  # the rest of the list has moved
    elif stands and happens(random, 0.5):
        put(document, place, altered(random, copied(value)))
    else:
        put(document, place, odd(random))
    return [_Change(key, resource, document, "".join(f"/{escaped(step)}" for step in place))]


def _changed_by(trial: Trial, changes: Sequence[_Change]) -> Violation | None:
    """The first finding that changes do change, although its policy says that it does not read there."""
    before, after = trial.snapshot, _with(trial.snapshot, changes)
    if not changes:
        return None
    changed = trial.ready(after)
    evaluation = trial.said(changed)
    differing = _differing(trial.evaluation, evaluation)
    if not differing:
        return None
    moved = _moved_workloads(trial.prepared, changed)
    own = {change.key for change in changes}
    far = [pair for pair in differing if not _is_at(trial.bundle, pair, own, moved)]
    reached = _reached(trial, _marked(before, changes)) | _reached(trial, _marked(after, changes)) if far else set()
    for pair in far:
        if pair not in reached:
            return _blamed(_UNDECLARED, pair, (trial.evaluation, evaluation), [change.words for change in changes])
    return None


def _is_at(bundle: Bundle, pair: _Pair, changed: Set[str], moved: Mapping[str, str | None]) -> bool:
    """Whether what is judged is itself what changes, lies in a workspace that does, or is derived from what does."""
    near = {pair[2], workspace_of(pair[2])} | ({moved[pair[2]]} if pair[2] in moved else set())
    judged = {lowered(kind.type) for kind in _policy(bundle, pair[0]).header.judges}
    is_derived = pair[2] in moved and "workload" in judged
    return bool(near & changed) or (is_derived and moved[pair[2]] is None)


def _with(snapshot: Snapshot, changes: Sequence[_Change]) -> Snapshot:
    by_key = {change.key: change.becomes for change in changes if change.was is not None}
    kept = [
        by_key.get(lowered(resource["id"]), resource) if _is_named(resource) else resource
        for resource in snapshot.resources
    ]
    added = [change.becomes for change in changes if change.was is None]
    resources = tuple(resource for resource in (*kept, *added) if resource is not None)
    return snapshot.model_copy(update={"resources": resources})


def _marked(snapshot: Snapshot, changes: Iterable[_Change]) -> Snapshot:
    """A snapshot in which nobody can read what changes: whoever reads it there is unknown before it runs."""
    unreadable = {key: dict(pointers) for key, pointers in snapshot.unreadable.items()}
    for change in changes:
        unreadable.setdefault(change.key, {})[change.pointer] = "it changes"
    return snapshot.model_copy(update={"unreadable": unreadable})


def _reached(trial: Trial, marked: Snapshot) -> set[_Pair]:
    """The pairs that their header makes unknown where what is marked cannot be read."""
    whole = trial.bundle
    consulting: Bundle = trial.grounds.once(
        "policies that consult", lambda: whole.only(policy for policy in whole.policies if policy.header.consults)
    )
    prepared = trial.ready(marked, consulting)
    subjects = prepared.estate.subjects
    neighbours = Neighbours(subjects, [at for at, subject in enumerate(subjects) if subject.unreadable])
    found = set()
    for pair, _ in prepared.planned:
        policy, subject = consulting.policies[pair.policy], subjects[pair.subject]
        telling = neighbours.telling(policy.header.consults, prepared.parameters[pair.policy])
        if neighbours.unknowns(telling, pair.subject):
            found.add((policy.id, lowered(subject.reported_type), lowered(subject.reported_id)))
    return found


def _moved_workloads(before: Prepared, after: Prepared) -> dict[str, str | None]:
    """By lower-case id of each workload, the workspace that it lies in; None where the workload itself is another."""
    were, are = (
        {lowered(str(workload["id"])): workload for workload in prepared.estate.view.workloads}
        for prepared in (before, after)
    )
    return {
        key: folded_id(str(document.get("workspaceId") or "")) if were.get(key) == are.get(key) else None
        for key, document in {**are, **were}.items()
    }


def _differing(before: Evaluation, after: Evaluation) -> list[_Pair]:
    ours, theirs = by_pair(before), by_pair(after)
    return [pair for pair in sorted({*ours, *theirs}) if _said(ours.get(pair)) != _said(theirs.get(pair))]


def _said(finding: Finding | None) -> object:
    return finding and (finding.outcome, finding.denials, finding.unknowns)


def _policy(bundle: Bundle, identity: str) -> Policy:
    return next(policy for policy in bundle.policies if policy.id == identity)


def _blamed(message: str, pair: _Pair, both: tuple[Evaluation, Evaluation], done: Iterable[str]) -> Violation:
    before, after = (by_pair(evaluation).get(pair) for evaluation in both)
    shown = before or after
    lines = (*done, f"before: {spelled(before)}", f"after:  {spelled(after)}")
    return Violation(message, pair[0], shown.resource if shown else pair[2], lines)


def _has_open_scopes(snapshot: Snapshot) -> bool:
    """Whether anything may turn out to lie in any subscription, because nobody says in which."""
    scopes = [str(resource.get("id")) for resource in snapshot.resources]
    scopes += [approval.scope for approval in snapshot.approvals]
    scopes += [quota.scope for quota in snapshot.quotas]
    return any(map(is_open, scopes))


def _beside_another(trial: Trial, random: Random) -> Violation | None:
    """The first finding that an estate in another subscription changes; it is a copy of this one, edited."""
    snapshot = trial.snapshot
    resources = _elsewhere(random, trial)
    lists: dict[str, tuple[Any, ...]] = {"resources": (*snapshot.resources, *resources)}
    for name in _COPIED:
        lists[name] = (*getattr(snapshot, name), *filter(None, map(_moved, getattr(snapshot, name))))
    kinds = {lowered(resource["type"]) for resource in resources}
    aware = {policy.id for policy in trial.bundle.policies if _consults_all_of(policy, kinds)}

    def counts(policy: str, identity: str) -> bool:
        return policy not in aware and _BESIDE not in lowered(identity)

    larger = trial.ready(snapshot.model_copy(update=lists))
    after = trial.said(larger.only(lambda policy, subject: counts(policy.id, subject.reported_id)))
    words = f"added: {len(resources)} resources of subscriptions that end in `{_BESIDE}`"
    differing = (pair for pair in _differing(trial.evaluation, after) if counts(pair[0], pair[2]))
    return next((_blamed(_ELSEWHERE, pair, (trial.evaluation, after), [words]) for pair in differing), None)


#: What is stated of one subscription alone. Principals are of a directory, which all subscriptions share; approvals of
#: another scope are named in denials, because one may be meant for this.
_COPIED = ("workloads", "quotas", "metrics")


def _elsewhere(random: Random, trial: Trial) -> list[JsonObject]:
    """What of an estate lies in a subscription, moved to another one; some of it edited."""
    moved: list[JsonObject] = []
    for resource in trial.snapshot.resources:
        if _is_named(resource) and scopes_of(resource["id"]):
            other = _renamed_object(resource)
            while happens(random, 0.3):
                edits = _edited(random, "", other, looked_at(trial.grounds))
                other = next((edit.becomes or other for edit in edits), other)
            moved.append(other)
    return moved


def _moved(entry: Model) -> Model | None:
    """A statement about what lies in another subscription; None for one that is about no subscription."""
    document = entry.model_dump(mode="json", by_alias=True)
    other = _renamed_object(document)
    if other == document:
        return None
    if "workspaceId" in other:  # a declared workload, which nobody may take for the one that it is a copy of
        other["id"] += _BESIDE
    return type(entry).model_validate(other)


def _renamed(value: Json) -> Json:
    """A document with other names for all subscriptions, and for the roles that they define."""
    if isinstance(value, str):
        return _NAMES.sub(rf"\1{_BESIDE}", value) if _SUBSCRIPTION.match(value) else value
    if isinstance(value, dict):
        return {key: _renamed(member) for key, member in value.items()}
    return [*map(_renamed, value)] if isinstance(value, list) else value


def _renamed_object(document: JsonObject) -> JsonObject:
    return {key: _renamed(member) for key, member in document.items()}


def _consults_all_of(policy: Policy, kinds: Iterable[str]) -> bool:
    """Whether a policy says that it reads every resource of one of some types, wherever it lies."""
    alone = (one for one in policy.header.consults if not (one.through or one.naming or one.within))
    return any(lowered(one.type) in kinds for one in alone)
