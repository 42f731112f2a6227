"""Laws of what headers declare: insensitive fields (15), stricter values (14), and patches that fix (11)."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from random import Random
from typing import Any, TypeAlias

from policyeng.bundle import Policy
from policyeng.bundle.header import PARAMETER, WORKSPACE, fits
from policyeng.evaluation.prepared_snapshot import estate_of
from policyeng.evaluation.summary import by_pair
from policyeng.facts.times import moment
from policyeng.models import Evaluation, Finding, JsonObject, Outcome, Resource, Snapshot, lowered
from policyeng.parsing.json_pointer import escaped, keys_of
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
from policyeng.verify.json_patch import (
    GONE,
    Claim,
    DocumentPatch,
    apply_edits,
    apply_patch,
    document_of,
    find_worse,
    of_defaults,
    select_patches,
)
from policyeng.verify.laws.law import Law, Trial, Violation, find_first_difference, format_finding
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
    is_evaluated_by,
    list_read_pointers,
    list_selected,
    pair_of,
    reachable,
    reasons,
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


def _find_variances(trial: Trial) -> Violation | None:
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


INVARIANCE = Law(
    number=15,
    name="insensitive",
    sentence="fields that a policy calls insensitive, and the letter case of ids, types and references, change nothing",
    reference="metamorphic relations of invariance: Chen et al., Metamorphic testing (ACM CSUR 51, 2018)",
    violated=_find_variances,
)


def _test_policy(trial: Trial, random: Random, policy: Policy, place: str) -> Violation | None:
    """Return the first finding of a policy that differs after the values at a place are changed."""
    pointer = _at_or_below(random, trial, place)
    subjects = [subject for subject in list_selected(trial, policy) if draw_boolean(random, 0.8)]
    fields = [field for subject in subjects for field in fields_of(trial.snapshot, subject, pointer)]
    snapshot, changed_fields = change_fields(
        trial.snapshot, fields, _change_values(random, trial, [field.pointer for field in fields])
    )
    if not changed_fields:
        return None
    ours, theirs = (_of(evaluation, policy) for evaluation in (trial.evaluation, trial.evaluate(snapshot)))
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
    after = by_pair(trial.evaluate(snapshot)) if written else {}
    for subject, pointer, changed_fields in written:
        for policy in (one for one in trial.bundle.policies if is_alone(trial.bundle, one)):
            places = [place for place in policy.header.insensitive_to if is_below(pointer, place)]
            pair = pair_of(policy, subject)
            if not places or not is_evaluated_by(policy, subject) or (pair not in before and pair not in after):
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
    return [value for exists, value in found if exists]


def _change_values(random: Random, trial: Trial, pointers: Iterable[str]) -> Change:
    """Return a change that writes a value from elsewhere, a word of the policies, a tag, another type, or none."""
    words = _words(trial)
    by_pointer = {pointer: _values_at(trial.snapshot, pointer) for pointer in {*pointers}}

    def write(document: JsonObject, pointer: str) -> None:
        place = reachable(random, document, pointer)
        if not place:
            return
        exists, value = get_value(document, place)
        kind = random.randrange(8)
        if kind == 0:
            remove(document, place)
        elif kind == 1 and exists:
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

    after = trial.evaluate(_respell(trial.snapshot, spell))
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


#: The direction that is stricter, as in headers.
Way: TypeAlias = str | Sequence[str | bool | int | float]

_ADDED = "a stricter value adds a denial; reverse the comparison, or remove the place from `monotone_in`"
_LOST = "a stricter parameter removes a denial; reverse the comparison, or remove it from `monotone_in`"
_WHOLE = re.compile(r"[0-9]{1,9}", re.ASCII)
_FAR = (0, -1, 1, 1_000_000, -1_000_000)
_DAYS = (1e-6, 1, 7, 30, 365, 3650)


def _find_reversals(trial: Trial) -> Violation | None:
    random = trial.random("monotone")
    findings = {finding.policy for finding in trial.evaluation.findings}
    stated = [policy for policy in trial.bundle.policies if policy.header.monotone_in and policy.id in findings]
    fields = {policy.id: places for policy in stated if (places := _fields(policy))}
    bound = [policy for policy in stated if policy.id in fields and not is_alone(trial.bundle, policy)]
    kind = random.random()
    if kind < 0.2:
        return _test_stricter_parameters(trial, random, stated)
    if bound and kind < 0.5:
        return _test_stricter_values(trial, random, _one_by_one(trial, random, bound), most=1)
    return _test_stricter_values(trial, random, attempts(trial, random, fields, of_workloads=kind > 0.8))


def _fields(policy: Policy) -> list[str]:
    return [place for place in policy.header.monotone_in if not place.startswith(PARAMETER)]


def _one_by_one(trial: Trial, random: Random, policies: Sequence[Policy]) -> list[Attempt]:
    """Return all attempts for some policies in random order, those of one policy in a row."""
    before, subjects = by_pair(trial.evaluation), estate_of(trial.snapshot, trial.bundle.facts).subjects
    shuffled = random.sample(policies, len(policies))
    return [
        Attempt(subject, policy, place)
        for policy in shuffled
        for place in random.sample(_fields(policy), len(_fields(policy)))
        for subject in random.sample(subjects, len(subjects))
        if is_evaluated_by(policy, subject) and pair_of(policy, subject) in before
    ]


MONOTONICITY = Law(
    number=14,
    name="monotone",
    sentence="a value that a policy calls stricter adds no denial, and a stricter parameter removes none",
    reference="metamorphic relations of monotony: Chen et al., Metamorphic testing (ACM CSUR 51, 2018)",
    violated=_find_reversals,
)


def _test_stricter_values(
    trial: Trial, random: Random, attempted: Iterable[Attempt], most: int | None = None
) -> Violation | None:
    """Return the first resource with more denials after a stricter value is written at a place of it.

    At most `most` of the attempts change something: if a policy reads neighbors, a stricter value of one can add a
    denial about another.
    """
    before, snapshot, written = by_pair(trial.evaluation), trial.snapshot, list[tuple[Attempt, list[SnapshotField]]]()
    for attempt in attempted:
        subject, policy, place = attempt
        change = _make_stricter(random, policy.header.monotone_in[place], _constants(trial, policy))
        snapshot, changed_fields = change_fields(snapshot, fields_of(snapshot, subject, place), change)
        written += [(attempt, changed_fields)] if changed_fields else []
        if len(written) == most:
            break
    after = by_pair(trial.evaluate(snapshot)) if written else {}
    for (subject, policy, place), changed_fields in written:
        pair = pair_of(policy, subject)
        count_tests(trial.grounds)["monotone", policy.id, place] += 1
        if not reasons(after.get(pair)) <= reasons(before[pair]):
            shown = [format_at(snapshot, field) for field in changed_fields]
            return Violation(_ADDED, policy.id, subject.reported_id, (*shown, *_both(before[pair], after.get(pair))))
    return None


def _make_stricter(random: Random, way: Way, constants: Iterable[Json]) -> Change:
    """Return a change that writes a stricter value than the one at a pointer, if there is one."""
    known = list(constants)

    def write(document: JsonObject, pointer: str) -> None:
        place = reachable(random, document, pointer)
        exists, value = get_value(document, place) if place else (False, None)
        if place and (options := list_stricter_values(random, way, value, known) if exists else _strictest(way)):
            put_value(document, place, random.choice(options))

    return write


def _strictest(way: Way) -> list[Json]:
    """Return the values for a place without one: the last value of a list; of numbers, none is known to be stricter."""
    return [] if isinstance(way, str) else [way[-1]]


def list_stricter_values(random: Random, way: Way, value: Json, constants: Iterable[Json]) -> list[Json]:
    """Return values stricter than another one: near it, near the constants of the policy, and far away."""
    if not isinstance(way, str):
        ranks = [rank for rank, one in enumerate(way) if _key(one) == _key(value)]
        return [_format_value(random, one) for one in way[ranks[-1] + 1 :]] if ranks else []
    sign = 1 if way == "higher" else -1
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        numbers = _beyond(int(value), sign, constants)
        return [str(number) for number in numbers if isinstance(number, int) and 0 <= number < 10**9]
    if isinstance(value, str):
        return _moments_beyond(value, sign)
    return _beyond(value, sign, constants) if isinstance(value, int | float) and not isinstance(value, bool) else []


def _key(value: Json) -> object:
    """Return the key under which two values of a list are equal: text ignores case, and true is not 1."""
    return lowered(value) if isinstance(value, str) else (isinstance(value, bool), value)


def _format_value(random: Random, value: Json) -> Json:
    return random.choice((value, value, value.upper(), value.lower())) if isinstance(value, str) else value


def _beyond(value: float, sign: int, constants: Iterable[Json]) -> list[Json]:
    """Return numbers beyond another one: the next, half way, and near the constants; integers if it is one."""
    stated = [one for one in constants if isinstance(one, int | float) and not isinstance(one, bool)]
    near: list[int | float] = [value + sign, value + 2 * sign, value * 2, *_FAR]
    near += [one + step for one in stated for step in (-1, 0, 1)]
    if not isinstance(value, int):
        near += [value + sign * 1e-6, value / 2, *(one + step for one in stated for step in (-1e-6, 1e-6))]
    return [one for one in near if sign * one > sign * value]


def _moments_beyond(text: str, sign: int) -> list[Json]:
    """Moments later or earlier than one that is written as RFC 3339 has it; none for any other text."""
    at = moment(text)
    found: list[Json] = []
    for days in _DAYS if at else ():
        try:
            found.append((at + sign * timedelta(days=days)).isoformat() if at else None)
        except OverflowError:  # the calendar ends
            break
    return found


def _constants(trial: Trial, policy: Policy) -> list[Json]:
    """Return the constants that a policy compares with: its own, and its parameters in the example."""
    given = trial.example.parameters.get(policy.id, {})
    return [*vocabulary(trial.grounds).words[policy.id].own, *given.values()]


def _test_stricter_parameters(trial: Trial, random: Random, stated: Iterable[Policy]) -> Violation | None:
    """Return the first denial that is missing after every policy is evaluated with a stricter parameter."""
    given: dict[str, JsonObject] = {**trial.example.parameters}
    places: dict[str, tuple[str, str]] = {}
    for policy in stated:
        names = [place.removeprefix(PARAMETER) for place in policy.header.monotone_in if place.startswith(PARAMETER)]
        name = random.choice(names) if names else ""
        value = {**policy.header.defaults, **given.get(policy.id, {})}.get(name)
        way = policy.header.monotone_in.get(f"{PARAMETER}{name}", ())
        options = list_stricter_values(random, way, value, _constants(trial, policy)) if names else []
        fitting = [one for one in options if fits(policy.header.parameters[name], one)]
        if fitting:
            chosen = random.choice(fitting)
            given[policy.id] = {**given.get(policy.id, {}), name: chosen}
            places[policy.id] = f"{PARAMETER}{name}", f"`{name}` is {chosen!r} instead of {value!r}"
    after = by_pair(trial.evaluate(parameters=given)) if places else {}
    for pair, finding in by_pair(trial.evaluation).items():
        if pair[0] in places:
            place, words = places[pair[0]]
            count_tests(trial.grounds)["monotone", pair[0], place] += 1
            if not reasons(finding) <= reasons(after.get(pair)):
                return Violation(_LOST, pair[0], finding.resource, (words, *_both(finding, after.get(pair))))
    return None


def _both(before: Finding, after: Finding | None) -> tuple[str, str]:
    return f"before: {format_finding(before)}", f"after:  {format_finding(after)}"


#: The most patches that are tested on one example, each of another policy, because each costs an evaluation.
_MOST = 3
#: The name under which the context counts, by policy id, the failures met, the patches tested and those withheld.
TRIED = "remediation/tried"


def _find_failed_patches(trial: Trial) -> Violation | None:
    violations = (check_patches(trial, policy, finding, claimed) for policy, finding, claimed in _claims(trial))
    return next((violation for violation in violations if violation is not None), None)


def check_patches(trial: Trial, policy: Policy, finding: Finding, claimed: Claim) -> Violation | None:
    """Return the violation of the patches of a policy for a finding; None if there is none, or if they are withheld."""
    counts: Counter[tuple[str, str]] = trial.grounds.once(TRIED, Counter)
    after = apply_edits(trial.snapshot, claimed.edits)
    if after is None:
        return _patch_violation("the patch makes the document unreadable", finding, claimed)
    evaluation = trial.evaluate(after)
    worsened = {pair[0] for pair in find_worse(trial.evaluation, evaluation)} - {policy.id}
    if any(one.id in worsened and {one.id, one.area} & claimed.provided for one in trial.bundle.policies):
        counts[policy.id, "withheld"] += 1
        return None
    counts[policy.id, "tried"] += 1
    return _check_patch(trial, finding, claimed, after, evaluation)


def _claims(trial: Trial) -> Iterator[tuple[Policy, Finding, Claim]]:
    """Yield one failure of each of a few policies, with the patch for it."""
    counts: Counter[tuple[str, str]] = trial.grounds.once(TRIED, Counter)
    chance = trial.random("remediation")
    failing: dict[str, list[Finding]] = {}
    for finding in trial.evaluation.findings:
        if finding.outcome is Outcome.FAIL:
            failing.setdefault(finding.policy, []).append(finding)
    with_patches = [one for one in trial.bundle.policies if one.header.remediation and one.header.remediation.patches]
    policies = [policy for policy in with_patches if policy.id in failing]
    chance.shuffle(policies)
    # The least tested patches first, so that common failures do not displace rare ones.
    policies.sort(key=lambda policy: counts[policy.id, "tried"])
    tried = 0
    for policy in policies:
        findings = failing[policy.id]
        counts[policy.id, "met"] += len(findings)
        for finding in chance.sample(findings, len(findings)):
            claimed = select_patches(policy, finding, trial.snapshot, trial.example.parameters)
            if claimed is not None and tried < _MOST:
                tried += 1
                yield policy, finding, claimed
                break


def _check_patch(
    trial: Trial, finding: Finding, claimed: Claim, after: Snapshot, evaluation: Evaluation
) -> Violation | None:
    """Return the violation of a patch that was applied."""
    policy = next(policy for policy in trial.bundle.policies if policy.id == finding.policy)
    pair = next(pair for pair, found in by_pair(trial.evaluation).items() if found is finding)
    left = by_pair(evaluation).get(pair)
    if left is not None and left.outcome is not Outcome.PASS:
        return _patch_violation(
            "the patch does not fix the finding", finding, claimed, f"after: {format_finding(left)}"
        )
    counted = of_defaults(trial.bundle, trial.example.parameters) | {policy.id}
    for other, found in find_worse(trial.evaluation, evaluation).items():
        if other[0] in counted:
            line = f"{found.policy} of {found.resource} is worse: {format_finding(found)}"
            return _patch_violation("the patch makes another finding worse", finding, claimed, line)
    unexpected = [
        path for edit in claimed.edits for path in _find_unexpected(policy, edit, trial.snapshot, after, finding)
    ]
    if unexpected:
        return _patch_violation(
            "the patch changes a field that the policy does not inspect", finding, claimed, *unexpected
        )
    if any(_is_changed_again(after, edit) for edit in claimed.edits):
        return _patch_violation("the patch makes further changes when it is applied again", finding, claimed)
    return None


def _patch_violation(message: str, finding: Finding, claimed: Claim, *lines: str) -> Violation:
    done = [f"patch of {edit.identity}: {[*edit.patch]}" for edit in claimed.edits]
    return Violation(message, finding.policy, finding.resource, (f"before: {format_finding(finding)}", *done, *lines))


def _is_changed_again(after: Snapshot, edit: DocumentPatch) -> bool:
    document = document_of(after, edit.kind, edit.identity)
    again = apply_patch(document, edit.patch) if document is not None and edit.patch != GONE else None
    return again is not None and again != document


def _find_unexpected(
    policy: Policy, edit: DocumentPatch, before: Snapshot, after: Snapshot, finding: Finding
) -> Iterator[str]:
    """Yield the places that an edit changed and that no patch of the policy names."""
    remediation = policy.header.remediation
    named = [path for patch in remediation.patches for path in patch.written] if remediation else []
    for path in _find_differences(
        document_of(before, edit.kind, edit.identity), document_of(after, edit.kind, edit.identity)
    ):
        own = edit.identity.lower() == finding.resource.lower()
        whole = {path, f"{WORKSPACE}{path}"} if own else {f"{WORKSPACE}{path}"}
        if not any(one == name or one.startswith(f"{name}/") for one in whole for name in named):
            yield path


def _find_differences(before: JsonObject | None, after: JsonObject | None) -> Iterator[str]:
    """Yield the leaves in which two documents differ; null counts as absent."""
    if before is None or after is None:
        return
    ours, theirs = dict(_list_leaves(before)), dict(_list_leaves(after))
    yield from (path for path in sorted({*ours, *theirs}) if ours.get(path) != theirs.get(path))


def _list_leaves(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _list_leaves(inner, f"{path}/{escaped(key)}")
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from _list_leaves(inner, f"{path}/{index}")
    elif value not in (None, {}):
        yield path, value


REMEDIATION = Law(
    11,
    "remediation",
    "where the patch of a policy applies, its finding then passes and no other finding gets worse; it changes only "
    "what the policy reads, and applying it twice has the same result as applying it once",
    "design, section 8, law 11; JSON Patch: RFC 6902",
    _find_failed_patches,
)
