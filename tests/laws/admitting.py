"""How laws check admission: against a full evaluation, and against check before and after a change."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from random import Random

from msgspec.structs import replace

import policyeng
from policyeng import evaluate
from policyeng.admission import AdmissionOptions, AdmissionSession, decided_wholly
from policyeng.admission.changes import apply_changes, changes_of
from policyeng.bundle import Bundle
from policyeng.errors import InputError
from policyeng.models import (
    Blame,
    Change,
    Decision,
    Enforcement,
    Evaluation,
    Finding,
    JsonObject,
    Mode,
    Operation,
    Outcome,
    Severity,
    Snapshot,
    lowered,
)
from policyeng.report.json import render
from policyeng.verify.generators.examples import Examples
from policyeng.verify.generators.json_mutations import draw_boolean
from policyeng.verify.laws.law import Trial, Violation
from policyeng.verify.laws.read_laws import list_read_pointers
from tests.laws.changing import changes_of_estate
from tests.laws.queries import PathResult, Query

#: How many changes of one state are tried.
_CHANGES = 4
#: How many of them come after others, which have been made of the state already.
_AFTER_OTHERS = 0.3
#: Days from the clock of an example to that of a change.
_LATER = (0, 0, 1, 40, 400)


def unlike_the_whole(trial: Trial, name: str, snapshot: Snapshot) -> Violation | None:
    """The first decision on a drawn change that is another after a full evaluation; None if there is none.

    `snapshot` is that of the example, from wherever it was read.
    """
    random = trial.random(f"{name}/admission")
    basis = AdmissionSession(trial.bundle, snapshot, trial.example.parameters)
    for _ in range(_CHANGES):
        before = _drawn(random, trial, snapshot) if draw_boolean(random, _AFTER_OTHERS) else ()
        changes = _drawn(random, trial, apply_changes(snapshot, before).snapshot)
        options = _draw_options(random, trial)
        found = _unlike(trial, basis, changes, options, before)
        if found is not None:  # on a machine without time to spare a pair may have met its deadline: once more, anew
            fresh = AdmissionSession(trial.bundle, snapshot, trial.example.parameters)
            found = _unlike(trial, fresh, changes, options, before)
        if found is not None:
            return found
        trial.grounds.remark(name, "changes decided alike from what they can affect and from everything", 1)
    return None


def unlike_the_whole_in_turns(trial: Trial, name: str, snapshot: Snapshot, turns: int) -> Violation | None:
    """As `unlike_the_whole`, of one basis, on which changes that were made already come, stay and go."""
    random = trial.random(f"{name}/turns")
    basis = AdmissionSession(trial.bundle, snapshot, trial.example.parameters)
    pool = [change for _ in range(3) for change in _drawn(random, trial, snapshot)]
    judgings = [_draw_options(random, trial) for _ in range(3)]
    before: tuple[Change, ...] = ()
    for _ in range(turns):
        way = random.randrange(4)
        if way == 0:
            before = tuple(change for change in pool if draw_boolean(random, 0.5))
        elif way == 1 and pool:
            before = (*before, random.choice(pool))
        elif way == 2:
            before = before[:-1]
        changes = _drawn(random, trial, apply_changes(snapshot, before).snapshot)
        if found := _unlike(trial, basis, changes, random.choice(judgings), before):
            return found
    return None


def _unlike(
    trial: Trial,
    basis: AdmissionSession,
    changes: Sequence[Change],
    options: AdmissionOptions,
    before: Sequence[Change],
) -> Violation | None:
    options = replace(options, parameters=trial.example.parameters)
    whole = decided_wholly(basis.bundle, basis.snapshot, changes, options, before)
    return _differing(whole, basis.decide(changes, options, before), changes, before)


def _drawn(random: Random, trial: Trial, state: Snapshot) -> tuple[Change, ...]:
    """Changes of a state, with resources of another one among what comes."""
    examples = trial.grounds.once("examples of changes", lambda: Examples(trial.bundle))
    other = examples.drawn(random).document["resources"] if draw_boolean(random, 0.3) else ()
    others = [one for one in other if all(isinstance(one.get(key), str) and one[key] for key in ("id", "type"))]
    read: list[Change] = []
    for change in changes_of_estate(random, state, others, list_read_pointers(trial.grounds)):
        with suppress(InputError):  # a duplicate member, for one
            read += changes_of(change, trial.bundle.spellings)
    return tuple(read)


def _draw_options(random: Random, trial: Trial) -> AdmissionOptions:
    """A clock, exemptions, a gate and modes."""
    examples: Examples = trial.grounds.once("examples of changes", lambda: Examples(trial.bundle))
    exemptions = trial.example.exemptions
    if draw_boolean(random, 0.5):
        exemptions = (*exemptions, *examples.exemptions(random, trial.example))
    ids = ["*", *(policy.id for policy in trial.bundle.policies)]
    modes = [
        Enforcement(policy=random.choice(ids), mode=random.choice(list(Mode))) for _ in range(random.choice((0, 0, 2)))
    ]
    try:
        as_of = trial.example.as_of + timedelta(days=random.choice(_LATER))
    except OverflowError:
        as_of = trial.example.as_of
    return AdmissionOptions(
        as_of,
        exemptions,
        fail_on=random.choice(list(Severity)),
        strict_unknown=draw_boolean(random, 0.3),
        modes=modes,
        blame=random.choice(list(Blame)),
        standing=draw_boolean(random, 0.5),
    )


def _differing(
    whole: Decision, quick: Decision, changes: Sequence[Change], before: Sequence[Change]
) -> Violation | None:
    one, other = whole.model_dump(mode="json", by_alias=True), quick.model_dump(mode="json", by_alias=True)
    for member in one:
        if one[member] != other[member]:
            lines = [f"before: {change.operation} {change.id}" for change in before]
            lines += [*(f"{change.operation} {change.id}" for change in changes), f"in `{member}`"]
            lines += _only("full evaluation", one[member], other[member])
            lines += _only("evaluation of what it can affect", other[member], one[member])
            first = next(iter(_apart(one[member], other[member])), {})
            message = "a change is decided otherwise by a full evaluation"
            return Violation(message, str(first.get("policy", "")), str(first.get("resource", "")), tuple(lines))
    return None


def _apart(one: object, other: object) -> list[JsonObject]:
    """The findings that only one of two lists has."""
    if not (isinstance(one, list) and isinstance(other, list)):
        return []
    return [entry for entry in (*one, *other) if (entry in one) != (entry in other) and isinstance(entry, dict)]


def _only(words: str, one: object, other: object) -> list[str]:
    if not (isinstance(one, list) and isinstance(other, list)):
        return [f"{words}: {one}"]
    return [f"only by {words}: {entry}" for entry in one if entry not in other][:3]


def allowed_otherwise(trial: Trial, gate: Severity) -> Violation | None:
    """A drawn change that is allowed although a failure is new after it, or denied for one that is not; None if none.

    That is read from the two evaluations as a reader of their reports would: by policy, resource and reasons.
    """
    random = trial.random("admission")
    changes = _drawn(random, trial, trial.snapshot)
    clock, parameters = trial.example.as_of, trial.example.parameters
    options = AdmissionOptions(clock, fail_on=gate, blame=Blame.INTRODUCED)
    decision = AdmissionSession(trial.bundle, trial.snapshot, parameters).decide(changes, options)
    after = apply_changes(trial.snapshot, changes)
    if any(problem.level == "error" for problem in decision.problems):
        return None if not decision.allowed else Violation("a change that cannot be evaluated is allowed")
    evaluation = evaluate(trial.bundle, after.snapshot, as_of=clock, parameters=parameters)
    before, now = _failing(trial.evaluation, gate), _failing(evaluation, gate)
    fresh = sorted(now.keys() - before.keys())
    if fresh and decision.allowed:
        return Violation("a change is allowed and a failure is new after it", *_named(fresh[0]))
    for finding in decision.denied:
        key = _key(finding)
        if key not in now or now[key] == before.get(key):
            return Violation("a change is denied for what is no new failure after it", *_named(key))
    return None


_Key = tuple[str, str, str, str]


def _key(finding: Finding) -> _Key:
    return finding.policy, lowered(finding.resource), lowered(finding.resource_type), finding.outcome


def _named(key: _Key) -> tuple[str, str]:
    return key[0], key[1]


def _failing(evaluation: Evaluation, gate: Severity) -> dict[_Key, list[str]]:
    """What denies in an evaluation, failures at or above the gate and errors, with its reasons."""
    found: dict[_Key, list[str]] = {}
    for finding in evaluation.findings:
        is_bad = finding.outcome is Outcome.FAIL and finding.severity.rank >= gate.rank
        if is_bad or finding.outcome is Outcome.ERROR:
            found.setdefault(_key(finding), []).append(f"{finding.denials} {finding.unknowns}")
    return found


def admitted(query: Query) -> PathResult | None:
    """An estate that comes to be, by changes: what is found of it is what `check` finds once it is there.

    A decision lists nothing that passes, no owners, nor again what is undecided of approvals and declared workloads.
    """
    trial = query.trial
    ids = [resource.get("id") for resource in trial.snapshot.resources]
    if query.refused or trial.bundle.wanted["documents"] or not ids or len(set(map(str, ids))) < len(ids):
        return None
    snapshot = query.inputs.snapshot
    changes = [
        Change(
            operation=Operation.CREATE,
            id=resource["id"],
            resource=resource,
            unreadable=snapshot.unreadable.get(lowered(resource["id"]), {}),
        )
        for resource in snapshot.resources
    ]
    if not _are_plain(changes, trial.bundle):  # a state is taken as it is, and a change as ARM reads it
        trial.grounds.remark("paths", "examples that admission would read otherwise than they are written", 1)
        return None
    empty = snapshot.model_copy(update=_NOTHING)
    decision: Decision = policyeng.admit(trial.bundle, empty, changes, standing=True, **query.options)  # type: ignore[arg-type]  # of `Query`
    evaluation: Evaluation = policyeng.evaluate(trial.bundle, snapshot, **query.options)  # type: ignore[arg-type]  # the same
    named = {lowered(resource["id"]) for resource in snapshot.resources}
    findings = [*decision.denied, *decision.warned, *decision.undecided, *decision.exempted, *decision.standing]
    silent = [
        finding
        for finding in evaluation.findings
        if finding.outcome is Outcome.PASS or lowered(finding.resource) not in named
    ]
    result = query.result(
        render(evaluation.model_copy(update={"findings": (*silent, *findings)})), query.expected.exit_code
    )
    found = query.expected.findings
    rows = {
        pair: {**row, **{key: found.get(pair, {}).get(key) for key in ("location", "owner") if key in row}}
        for pair, row in result.findings.items()
    }
    return PathResult(rows, None, result.exit_code)


def _are_plain(changes: Sequence[Change], bundle: Bundle) -> bool:
    """Whether ARM reads changes as they are written: no names in other letters, no white space around words."""
    try:
        return list(changes_of(changes, bundle.spellings)) == changes
    except InputError:
        return False


#: A snapshot before anything is deployed.
_NOTHING: JsonObject = {"resources": (), "unreadable": {}, "carried": {}, "origins": {}}
