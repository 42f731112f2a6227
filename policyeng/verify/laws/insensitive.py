"""Law 15: what a header says it does not look at changes nothing, and no more does the letter case of ids and types."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any, TypeAlias

from policyeng.bundle import Policy
from policyeng.models import Evaluation, Finding, JsonObject, Snapshot, lowered
from policyeng.strict.json_pointer import keys_of
from policyeng.verify.drawing.edits import Json, altered, copied, happens, odd, put, remove
from policyeng.verify.laws.fields import (
    Change,
    Field,
    changed,
    fields_of,
    is_below,
    judged_by,
    looked_at,
    reachable,
    spelled_at,
    stands_at,
    tried,
    vocabulary,
)
from policyeng.verify.laws.law import Law, Trial, Violation, first_difference

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
    if not stated or happens(random, 0.3):
        return _with_other_case(trial, random)
    policy = random.choice(stated)
    return _with_other_values(trial, random, policy, random.choice(policy.header.insensitive_to))


LAW = Law(
    number=15,
    name="insensitive",
    sentence="fields that a policy calls insensitive, and the letter case of ids, types and references, change nothing",
    reference="metamorphic relations of invariance: Chen et al., Metamorphic testing (ACM CSUR 51, 2018)",
    violated=_violated,
)


def _with_other_values(trial: Trial, random: Random, policy: Policy, place: str) -> Violation | None:
    """The first finding that is another one once something else stands at a place, or in it."""
    known = [pointer for pointer in looked_at(trial.grounds) if is_below(pointer, place)]
    pointer = random.choice([place, *known])
    judged = [subject for subject in judged_by(trial, policy) if happens(random, 0.8)]
    fields = [field for subject in judged for field in fields_of(trial.snapshot, subject, pointer)]
    change = _other_at(random, _words(trial), [_standing(trial.snapshot, field) for field in fields])
    snapshot, done = changed(trial.snapshot, fields, change)
    if not done:
        return None
    after = trial.judged(snapshot)
    for other in trial.bundle.policies:
        at = next((one for one in other.header.insensitive_to if is_below(pointer, one)), None)
        if at is None:
            continue
        about = None if other is policy else _judged_alike(other, trial.snapshot, done)
        ours, theirs = (_of(evaluation, other, about) for evaluation in (trial.evaluation, after))
        tried(trial.grounds)["insensitive", other.id, at] += len(ours.findings)
        if found := first_difference(ours, theirs, _whole):
            written = [spelled_at(snapshot, field) for field in done[:3]]
            return Violation(_SENSITIVE, found.policy, found.resource, (*written, *found.lines))
    return None


def _words(trial: Trial) -> list[Json]:
    """What the policies speak of, whichever of them it is."""
    spoken: list[Json] = trial.grounds.once(
        "words of all policies", lambda: [word for one in vocabulary(trial.grounds).words.values() for word in one.own]
    )
    return spoken


def _standing(snapshot: Snapshot, field: Field) -> Json:
    """What stands at a field of a resource; None where nothing does, and of a statement."""
    entry = getattr(snapshot, field.of)[field.position]
    return stands_at(entry, keys_of(field.pointer))[1] if isinstance(entry, dict) else None


def _other_at(random: Random, words: Sequence[Json], standing: Sequence[Json]) -> Change:
    """Write something else: what stands there elsewhere, a word of the policies, another type, nothing."""

    def write(document: JsonObject, pointer: str) -> None:
        place = reachable(random, document, pointer)
        if not place:
            return
        stands, value = stands_at(document, place)
        kind = random.randrange(6)
        if kind == 0:
            remove(document, place)
        elif kind == 1 and stands:
            put(document, place, altered(random, copied(value)))
        elif kind == 2:
            put(document, place, odd(random))
        else:
            put(document, place, copied(random.choice((standing, words)[kind > 3] or [None])))

    return write


def _judged_alike(policy: Policy, snapshot: Snapshot, done: Iterable[Field]) -> set[str] | None:
    """The lower-case ids of those changed resources that a policy judges by what stands in them and nowhere else."""
    if policy.header.consults:
        return set()
    kinds = {lowered(judged.type) for judged in policy.header.judges}
    resources = [snapshot.resources[field.position] for field in done if field.of == "resources"]
    return {lowered(one["id"]) for one in resources if lowered(str(one["type"])) in kinds}


def _of(evaluation: Evaluation, policy: Policy, about: set[str] | None) -> Evaluation:
    """The findings of one policy; with `about` those about these alone."""
    own = [finding for finding in evaluation.findings if finding.policy == policy.id]
    findings = tuple(finding for finding in own if about is None or lowered(finding.resource) in about)
    return evaluation.model_copy(update={"findings": findings})


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
        other = _in_other_letters(resource, "", spell)
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


def _in_other_letters(value: Any, key: str, spell: _Spelling) -> Any:
    """A document with other letters in ARM ids, and in whatever text stands under a key that ends in `id`."""
    if isinstance(value, str):
        return spell(value) if lowered(key).endswith("id") or lowered(value).startswith(_ROOTS) else value
    if isinstance(value, dict):
        return {name: _in_other_letters(inner, name, spell) for name, inner in value.items()}
    return [_in_other_letters(inner, key, spell) for inner in value] if isinstance(value, list) else value
