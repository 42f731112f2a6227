"""Law 15: what a header says it does not look at changes nothing, and no more does the letter case of ids and types."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any, TypeAlias

from policyeng.bundle import Policy
from policyeng.evaluation.prepared_snapshot import Resource
from policyeng.models import Evaluation, Finding, JsonObject, Snapshot, lowered
from policyeng.parsing.json_pointer import keys_of
from policyeng.verify.generators.json_mutations import Json, altered, copied, happens, odd, put, remove
from policyeng.verify.generators.statements import TAG_VALUES, TAGS
from policyeng.verify.laws.field_perturbation import (
    Attempt,
    Change,
    SnapshotField,
    attempts,
    changed,
    fields_of,
    is_alone,
    is_below,
    judged_by,
    judges,
    looked_at,
    pair_of,
    reachable,
    spelled_at,
    stands_at,
    tried,
    vocabulary,
)
from policyeng.verify.laws.law import Law, Trial, Violation, by_pair, first_difference, spelled

_Spelling: TypeAlias = Callable[[str], str]

_SENSITIVE = "a field that the policy calls insensitive changes its finding; leave it out of `insensitive_to`"
_BY_CASE = "the letter case of ids, types or references changes the finding; compare them without case"
_LOWER, _UPPER = string.ascii_lowercase, string.ascii_uppercase
#: Letters of ASCII alone: others may become two, and then it is another name.
_SPELLINGS = (
    str.maketrans(_LOWER, _UPPER),
    str.maketrans(_UPPER, _LOWER),
    str.maketrans(_LOWER + _UPPER, _UPPER + _LOWER),
)
_ROOTS = ("/subscriptions/", "/providers/")


def _violated(trial: Trial) -> Violation | None:
    random = trial.random("insensitive")
    findings = {finding.policy for finding in trial.evaluation.findings}
    stated = [policy for policy in trial.bundle.policies if policy.header.insensitive_to and policy.id in findings]
    bound = [policy for policy in stated if not is_alone(trial.bundle, policy)]
    kind = random.random()
    if not stated or kind < 0.25:
        return _with_other_case(trial, random)
    if bound and kind < 0.55:
        policy = random.choice(bound)
        return _of_one(trial, random, policy, random.choice(policy.header.insensitive_to))
    places = {policy.id: policy.header.insensitive_to for policy in stated}
    return _of_each(trial, random, attempts(trial, random, places, of_workloads=kind > 0.8))


LAW = Law(
    number=15,
    name="insensitive",
    sentence="fields that a policy calls insensitive, and the letter case of ids, types and references, change nothing",
    reference="metamorphic relations of invariance: Chen et al., Metamorphic testing (ACM CSUR 51, 2018)",
    violated=_violated,
)


def _of_one(trial: Trial, random: Random, policy: Policy, place: str) -> Violation | None:
    """The first finding of a policy that is another one once something else stands at a place of what it judges."""
    pointer = _at_or_below(random, trial, place)
    judged = [subject for subject in judged_by(trial, policy) if happens(random, 0.8)]
    fields = [field for subject in judged for field in fields_of(trial.snapshot, subject, pointer)]
    snapshot, done = changed(trial.snapshot, fields, _other_at(random, trial, [field.pointer for field in fields]))
    if not done:
        return None
    ours, theirs = (_of(evaluation, policy) for evaluation in (trial.evaluation, trial.judged(snapshot)))
    tried(trial.grounds)["insensitive", policy.id, place] += len(ours.findings)
    found = first_difference(ours, theirs, _whole)
    return found and _blamed(found, snapshot, done)


def _of_each(trial: Trial, random: Random, made: Iterable[Attempt]) -> Violation | None:
    """The first finding that is another one once something else stands at some place of everything that is judged."""
    before, snapshot, written = (
        by_pair(trial.evaluation),
        trial.snapshot,
        list[tuple[Resource, str, list[SnapshotField]]](),
    )
    for attempt in made:
        pointer = _at_or_below(random, trial, attempt.place)
        fields = list(fields_of(snapshot, attempt.subject, pointer))
        snapshot, done = changed(snapshot, fields, _other_at(random, trial, [field.pointer for field in fields]))
        written += [(attempt.subject, pointer, done)] if done else []
    after = by_pair(trial.judged(snapshot)) if written else {}
    for subject, pointer, done in written:
        for policy in (one for one in trial.bundle.policies if is_alone(trial.bundle, one)):
            places = [place for place in policy.header.insensitive_to if is_below(pointer, place)]
            pair = pair_of(policy, subject)
            if not places or not judges(policy, subject) or (pair not in before and pair not in after):
                continue
            tried(trial.grounds)["insensitive", policy.id, places[0]] += 1
            one, other = before.get(pair), after.get(pair)
            if (one and _whole(one)) != (other and _whole(other)):
                lines = (f"before: {spelled(one)}", f"after:  {spelled(other)}")
                return _blamed(Violation("", policy.id, subject.reported_id, lines), snapshot, done)
    return None


def _blamed(found: Violation, snapshot: Snapshot, done: Sequence[SnapshotField]) -> Violation:
    written = [spelled_at(snapshot, field) for field in done[:3]]
    return Violation(_SENSITIVE, found.policy, found.resource, (*written, *found.lines))


def _at_or_below(random: Random, trial: Trial, place: str) -> str:
    """A place, or what policies look at below it: there one could fear that something matters."""
    return random.choice([place, *(pointer for pointer in looked_at(trial.grounds) if is_below(pointer, place))])


def _words(trial: Trial) -> list[Json]:
    """What the policies speak of, whichever of them it is."""
    spoken: list[Json] = trial.grounds.once(
        "words of all policies", lambda: [word for one in vocabulary(trial.grounds).words.values() for word in one.own]
    )
    return spoken


def _standing(snapshot: Snapshot, pointer: str) -> list[Json]:
    """What stands at a pointer in any resource of a snapshot."""
    found = (stands_at(resource, keys_of(pointer)) for resource in snapshot.resources)
    return [value for stands, value in found if stands]


def _other_at(random: Random, trial: Trial, pointers: Iterable[str]) -> Change:
    """Write something else: what stands there elsewhere, a word of the policies, a tag, another type, nothing."""
    words = _words(trial)
    standing = {pointer: _standing(trial.snapshot, pointer) for pointer in {*pointers}}

    def write(document: JsonObject, pointer: str) -> None:
        place = reachable(random, document, pointer)
        if not place:
            return
        stands, value = stands_at(document, place)
        kind = random.randrange(8)
        if kind == 0:
            remove(document, place)
        elif kind == 1 and stands:
            put(document, place, altered(random, copied(value)))
        elif kind == 2:
            put(document, place, odd(random))
        elif "tags" in place and kind < 6:
            tag: Json = random.choice(TAG_VALUES)
            put(document, place, {random.choice(TAGS): tag} if place[-1] == "tags" else tag)
        else:
            put(document, place, copied(random.choice((standing[pointer] if kind > 6 else words) or [None])))

    return write


def _of(evaluation: Evaluation, policy: Policy) -> Evaluation:
    """The findings of one policy."""
    own = tuple(finding for finding in evaluation.findings if finding.policy == policy.id)
    return evaluation.model_copy(update={"findings": own})


def _whole(finding: Finding) -> object:
    return finding.outcome, finding.denials, finding.unknowns


def _with_other_case(trial: Trial, random: Random) -> Violation | None:
    """The first finding that is another one once ids, types and references are written in other letters."""
    spelling = random.choice((*_SPELLINGS, None))

    def spell(text: str) -> str:
        if spelling is not None:
            return text.translate(spelling)
        return text.translate(random.choice(_SPELLINGS)) if happens(random, 0.3) else text

    after = trial.judged(_respelled(trial.snapshot, spell))
    tried(trial.grounds)["insensitive", "", "letter case"] += len(trial.evaluation.findings)
    found = first_difference(trial.evaluation, after, _without_case)
    return found and Violation(_BY_CASE, found.policy, found.resource, found.lines)


def _without_case(finding: Finding) -> object:
    return finding.outcome, sorted((lowered(denial.path), lowered(denial.msg)) for denial in finding.denials)


def _respelled(snapshot: Snapshot, spell: _Spelling) -> Snapshot:
    """A snapshot with other letters in types, in ids, and in what names something by its id."""
    resources = []
    for resource in snapshot.resources:
        other: JsonObject = {key: _in_other_letters(value, key, spell) for key, value in resource.items()}
        if isinstance(resource.get("type"), str):
            other["type"] = spell(resource["type"])
        resources.append(other)
    lists: dict[str, tuple[Any, ...]] = {"resources": tuple(resources)}
    for name, members in _REFERENCES.items():
        entries = getattr(snapshot, name)
        lists[name] = tuple(
            entry.model_copy(
                update={one: spell(value) for one in members if isinstance(value := getattr(entry, one), str)}
            )
            for entry in entries
        )
    return snapshot.model_copy(update=lists)


#: The members of statements that name something of Azure.
_REFERENCES = {
    "approvals": ("scope",),
    "workloads": ("workspace_id", "source_id"),
    "quotas": ("scope",),
    "metrics": ("resource_id",),
    "principals": ("id",),
}


def _in_other_letters(value: Json, key: str, spell: _Spelling) -> Json:
    """A document with other letters in ARM ids, and in whatever text stands under a key that ends in `id`."""
    if isinstance(value, str):
        return spell(value) if lowered(key).endswith("id") or lowered(value).startswith(_ROOTS) else value
    if isinstance(value, dict):
        return {name: _in_other_letters(inner, name, spell) for name, inner in value.items()}
    return [_in_other_letters(inner, key, spell) for inner in value] if isinstance(value, list) else value
