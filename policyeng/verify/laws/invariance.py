"""Law 15: fields that a header calls insensitive, and the letter case of ids and types, change nothing."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any, TypeAlias

from policyeng.bundle import Policy
from policyeng.evaluation.prepared_snapshot import Resource
from policyeng.models import Evaluation, Finding, JsonObject, Snapshot, lowered
from policyeng.parsing.json_pointer import keys_of
from policyeng.verify.generators.estates import TAG_VALUES, TAGS
from policyeng.verify.generators.json_mutations import (
    Json,
    altered,
    copied,
    draw_boolean,
    draw_odd_value,
    put_value,
    remove,
)
from policyeng.verify.laws.law import Law, Trial, Violation, by_pair, find_first_difference, format_finding
from policyeng.verify.laws.read_laws import (
    Attempt,
    Change,
    SnapshotField,
    attempts,
    change_fields,
    count_tests,
    fields_of,
    format_at,
    get_value,
    is_alone,
    is_below,
    judges,
    list_read_pointers,
    list_selected,
    pair_of,
    reachable,
    vocabulary,
)

_Spelling: TypeAlias = Callable[[str], str]

_SENSITIVE = "a field in `insensitive_to` changes the finding; remove it from `insensitive_to`"
_BY_CASE = "the letter case of ids, types or references changes the finding; ignore case when you compare them"
_LOWER, _UPPER = string.ascii_lowercase, string.ascii_uppercase
#: ASCII letters only: other letters can become two letters in another case, which is another name.
_SPELLINGS = (
    str.maketrans(_LOWER, _UPPER),
    str.maketrans(_UPPER, _LOWER),
    str.maketrans(_LOWER + _UPPER, _UPPER + _LOWER),
)
_ROOTS = ("/subscriptions/", "/providers/")


def _find_violations(trial: Trial) -> Violation | None:
    random = trial.random("insensitive")
    findings = {finding.policy for finding in trial.evaluation.findings}
    stated = [policy for policy in trial.bundle.policies if policy.header.insensitive_to and policy.id in findings]
    bound = [policy for policy in stated if not is_alone(trial.bundle, policy)]
    kind = random.random()
    if not stated or kind < 0.25:
        return _test_letter_case(trial, random)
    if bound and kind < 0.55:
        policy = random.choice(bound)
        return _test_policy(trial, random, policy, random.choice(policy.header.insensitive_to))
    places = {policy.id: policy.header.insensitive_to for policy in stated}
    return _test_all(trial, random, attempts(trial, random, places, of_workloads=kind > 0.8))


LAW = Law(
    number=15,
    name="insensitive",
    sentence="fields that a policy calls insensitive, and the letter case of ids, types and references, change nothing",
    reference="metamorphic relations of invariance: Chen et al., Metamorphic testing (ACM CSUR 51, 2018)",
    violated=_find_violations,
)


def _test_policy(trial: Trial, random: Random, policy: Policy, place: str) -> Violation | None:
    """Return the first finding of a policy that differs after the values at a place are changed."""
    pointer = _at_or_below(random, trial, place)
    judged = [subject for subject in list_selected(trial, policy) if draw_boolean(random, 0.8)]
    fields = [field for subject in judged for field in fields_of(trial.snapshot, subject, pointer)]
    snapshot, changed_fields = change_fields(
        trial.snapshot, fields, _change_values(random, trial, [field.pointer for field in fields])
    )
    if not changed_fields:
        return None
    ours, theirs = (_of(evaluation, policy) for evaluation in (trial.evaluation, trial.judged(snapshot)))
    count_tests(trial.grounds)["insensitive", policy.id, place] += len(ours.findings)
    found = find_first_difference(ours, theirs, _content)
    return found and _violation(found, snapshot, changed_fields)


def _test_all(trial: Trial, random: Random, attempted: Iterable[Attempt]) -> Violation | None:
    """Return the first finding that differs after a value is changed at some place of each resource."""
    before, snapshot, written = (
        by_pair(trial.evaluation),
        trial.snapshot,
        list[tuple[Resource, str, list[SnapshotField]]](),
    )
    for attempt in attempted:
        pointer = _at_or_below(random, trial, attempt.place)
        fields = list(fields_of(snapshot, attempt.subject, pointer))
        snapshot, changed_fields = change_fields(
            snapshot, fields, _change_values(random, trial, [field.pointer for field in fields])
        )
        written += [(attempt.subject, pointer, changed_fields)] if changed_fields else []
    after = by_pair(trial.judged(snapshot)) if written else {}
    for subject, pointer, changed_fields in written:
        for policy in (one for one in trial.bundle.policies if is_alone(trial.bundle, one)):
            places = [place for place in policy.header.insensitive_to if is_below(pointer, place)]
            pair = pair_of(policy, subject)
            if not places or not judges(policy, subject) or (pair not in before and pair not in after):
                continue
            count_tests(trial.grounds)["insensitive", policy.id, places[0]] += 1
            one, other = before.get(pair), after.get(pair)
            if (one and _content(one)) != (other and _content(other)):
                lines = (f"before: {format_finding(one)}", f"after:  {format_finding(other)}")
                return _violation(Violation("", policy.id, subject.reported_id, lines), snapshot, changed_fields)
    return None


def _violation(found: Violation, snapshot: Snapshot, changed_fields: Sequence[SnapshotField]) -> Violation:
    written = [format_at(snapshot, field) for field in changed_fields[:3]]
    return Violation(_SENSITIVE, found.policy, found.resource, (*written, *found.lines))


def _at_or_below(random: Random, trial: Trial, place: str) -> str:
    """Return a place, or a pointer below it that some policy reads, because a dependency is most likely there."""
    return random.choice(
        [place, *(pointer for pointer in list_read_pointers(trial.grounds) if is_below(pointer, place))]
    )


def _words(trial: Trial) -> list[Json]:
    """Return the words of all policies."""
    known: list[Json] = trial.grounds.once(
        "words of all policies", lambda: [word for one in vocabulary(trial.grounds).words.values() for word in one.own]
    )
    return known


def _values_at(snapshot: Snapshot, pointer: str) -> list[Json]:
    """Return the values at a pointer in all resources of a snapshot."""
    found = (get_value(resource, keys_of(pointer)) for resource in snapshot.resources)
    return [value for stands, value in found if stands]


def _change_values(random: Random, trial: Trial, pointers: Iterable[str]) -> Change:
    """Return a change that writes a value from elsewhere, a word of the policies, a tag, another type, or none."""
    words = _words(trial)
    by_pointer = {pointer: _values_at(trial.snapshot, pointer) for pointer in {*pointers}}

    def write(document: JsonObject, pointer: str) -> None:
        place = reachable(random, document, pointer)
        if not place:
            return
        stands, value = get_value(document, place)
        kind = random.randrange(8)
        if kind == 0:
            remove(document, place)
        elif kind == 1 and stands:
            put_value(document, place, altered(random, copied(value)))
        elif kind == 2:
            put_value(document, place, draw_odd_value(random))
        elif "tags" in place and kind < 6:
            tag: Json = random.choice(TAG_VALUES)
            put_value(document, place, {random.choice(TAGS): tag} if place[-1] == "tags" else tag)
        else:
            put_value(document, place, copied(random.choice((by_pointer[pointer] if kind > 6 else words) or [None])))

    return write


def _of(evaluation: Evaluation, policy: Policy) -> Evaluation:
    """Return the evaluation with only the findings of one policy."""
    own = tuple(finding for finding in evaluation.findings if finding.policy == policy.id)
    return evaluation.model_copy(update={"findings": own})


def _content(finding: Finding) -> object:
    return finding.outcome, finding.denials, finding.unknowns


def _test_letter_case(trial: Trial, random: Random) -> Violation | None:
    """Return the first finding that differs after ids, types and references are written in other letter case."""
    spelling = random.choice((*_SPELLINGS, None))

    def spell(text: str) -> str:
        if spelling is not None:
            return text.translate(spelling)
        return text.translate(random.choice(_SPELLINGS)) if draw_boolean(random, 0.3) else text

    after = trial.judged(_respell(trial.snapshot, spell))
    count_tests(trial.grounds)["insensitive", "", "letter case"] += len(trial.evaluation.findings)
    found = find_first_difference(trial.evaluation, after, _without_case)
    return found and Violation(_BY_CASE, found.policy, found.resource, found.lines)


def _without_case(finding: Finding) -> object:
    return finding.outcome, sorted((lowered(denial.path), lowered(denial.msg)) for denial in finding.denials)


def _respell(snapshot: Snapshot, spell: _Spelling) -> Snapshot:
    """Return a snapshot with other letter case in types, in ids, and in references by id."""
    resources = []
    for resource in snapshot.resources:
        other: JsonObject = {key: _spell_ids(value, key, spell) for key, value in resource.items()}
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


#: The members of statements that refer to Azure resources.
_REFERENCES = {
    "approvals": ("scope", "model"),
    "evidence": ("scope",),
    "workloads": ("workspace_id", "source_id"),
    "quotas": ("scope",),
    "metrics": ("resource_id",),
    "principals": ("id",),
}


def _spell_ids(value: Json, key: str, spell: _Spelling) -> Json:
    """Return a document with other letter case in ARM ids, and in text under a key that ends in `id`."""
    if isinstance(value, str):
        return spell(value) if lowered(key).endswith("id") or lowered(value).startswith(_ROOTS) else value
    if isinstance(value, dict):
        return {name: _spell_ids(inner, name, spell) for name, inner in value.items()}
    return [_spell_ids(inner, key, spell) for inner in value] if isinstance(value, list) else value
