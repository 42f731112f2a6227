"""Policies that never apply, never fail or never pass, and reasons that are never given."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import get_args

import orjson

from policyeng.bundle import Bundle, Policy
from policyeng.bundle.header import TargetType
from policyeng.evaluation.plan import plan
from policyeng.evaluation.pointers import has_value
from policyeng.evaluation.prepared_snapshot import estate_of
from policyeng.models import Accelerator, Cadence, JsonObject, Outcome, Purpose, Target, lowered
from policyeng.report.phrases import count
from policyeng.verify.generators.documents import judges_documents
from policyeng.verify.generators.estates import STATEMENTS, EstateGenerator
from policyeng.verify.redundancy.observing import ObservedOutcomes, Seen, as_read
from policyeng.verify.redundancy.report import Remark

#: The possible values of the fields of workloads.
_WORDS = {"/purpose": Purpose, "/target": Target, "/accelerator": Accelerator, "/cadence": Cadence}
_REASON = re.compile(r"""(?:"msg"\s*:|\bmsg\s*=)\s*"((?:[^"\\\n]|\\.)*)\"""")
#: The similarity from which on a word is reported as a misspelling of a known one.
_ALIKE = 0.85


@dataclass(frozen=True)
class _Known:
    """The resources of the baselines and of every case."""

    resources: tuple[JsonObject, ...]

    @cached_property
    def types(self) -> dict[str, str]:
        """The types by lower-case type."""
        return {lowered(kind): kind for entry in self.resources if isinstance(kind := entry.get("type"), str)}

    def of_type(self, kind: str) -> list[JsonObject]:
        """Return the resources of a type."""
        return [entry for entry in self.resources if lowered(str(entry.get("type"))) == lowered(kind)]


def outcome_remarks(observed: ObservedOutcomes, estates: EstateGenerator) -> Iterator[Remark]:
    """Yield remarks on the outcomes of each policy on cases and examples."""
    documents = [document for cases in estates.cases.values() for _, document in cases]
    every = {id(entry): entry for document in documents for entry in document["resources"]}
    known = _Known((*estates.baselines.resources.values(), *every.values()))
    for policy in observed.bundle.policies:
        if judges_documents(policy):
            message = "it evaluates documents, and examples are snapshots of resources"
            yield Remark(policy.id, "not tried", message, "nothing", "test it with your own documents", is_fault=False)
            continue
        yield from _of_policy(policy, observed, known)


def describe_tests(observed: ObservedOutcomes, policy: Policy) -> str:
    """Describe what a policy was tested on, and its outcomes."""
    more = f", {observed.more[policy.id]:,} more drawn for it" if observed.more[policy.id] else ""
    outcomes = sorted(observed.seen[policy.id].outcomes.items())
    counts = ", ".join(f"{number:,} {outcome}" for outcome, number in outcomes) or "no finding"
    return f"{count(observed.cases, 'case')} and {count(observed.examples, 'example')}{more}: {counts}"


def _of_policy(policy: Policy, observed: ObservedOutcomes, known: _Known) -> Iterator[Remark]:
    seen = observed.seen[policy.id]
    missed = [(judged, *_explain_mismatch(judged, known)) for judged in policy.header.judges]
    wrong = [(reason, is_proved) for _, reason, is_proved in missed if reason]
    if len(wrong) == len(missed):
        message = f"it never applies: {'; '.join(reason for reason, _ in wrong)}"
        remedy = "correct its `judges`"
        is_proved = all(proved for _, proved in wrong)
        yield Remark(policy.id, "vacuous", message, describe_tests(observed, policy), remedy, is_proved=is_proved)
        return
    for reason, is_proved in wrong:
        message = f"one entry of its `judges` matches nothing: {reason}"
        remedy = "correct the entry, or remove it"
        yield Remark(
            policy.id, "vacuous", message, describe_tests(observed, policy), remedy, is_fault=False, is_proved=is_proved
        )
    if not seen.decided or (seen.decided == {Outcome.UNKNOWN} and _decides_all(policy)):
        yield _remark_vacuous(policy, observed, known)
        return
    yield from _find_one_sided(policy, observed, seen)
    if seen.failures:
        yield from _find_unused_reasons(policy, observed, seen)


def _remark_vacuous(policy: Policy, observed: ObservedOutcomes, known: _Known) -> Remark:
    taken = _count_matches(observed.bundle.only([policy]), known)
    if taken:
        message = (
            f"it never applies: its `judges` matches {taken} resources of the baselines, but `applies` is never true"
        )
        remedy = "loosen `applies`, or add a case to which it applies"
    else:
        message = "it never applies: nothing matches its `judges`"
        remedy = "correct its `judges`, or add a case to which it applies"
    return Remark(policy.id, "vacuous", message, describe_tests(observed, policy), remedy)


def _decides_all(policy: Policy) -> bool:
    """Check whether a policy is unknown only where a field cannot be read, which is before `applies` is evaluated."""
    return policy.python is None and all(role != "unknown" for role, _ in policy.rules)


def _count_matches(alone: Bundle, known: _Known) -> int:
    """Count the known resources that match the `judges` of a policy."""
    distinct = {lowered(str(entry.get("id"))): entry for entry in known.resources}
    snapshot = as_read(orjson.dumps({"snapshotVersion": 1, "resources": list(distinct.values())}))
    return sum(1 for _ in plan(alone, estate_of(snapshot, alone.facts)))


def _find_one_sided(policy: Policy, observed: ObservedOutcomes, seen: Seen) -> Iterator[Remark]:
    evidence = describe_tests(observed, policy)
    if not seen.failures:
        always = "is unknown" if seen.decided == {Outcome.UNKNOWN} else "passes"
        if len(seen.decided) > 1:
            always = "passes or is unknown"
        remedy = "add a case that fails; if there cannot be one, remove the policy"
        yield Remark(policy.id, "dead", f"it never fails: it always {always}", evidence, remedy)
    elif not seen.outcomes[Outcome.PASS]:
        remedy = "add a case that passes; if there cannot be one, no one can comply"
        yield Remark(policy.id, "never passes", "it never passes", evidence, remedy, is_fault=False)


def _find_unused_reasons(policy: Policy, observed: ObservedOutcomes, seen: Seen) -> Iterator[Remark]:
    """Yield a remark for each reason in the policy's own Rego that it never returned."""
    sources = dict(observed.bundle.modules)
    for reason in dict.fromkeys(_REASON.findall(sources.get(policy.file, ""))):
        if reason not in seen.reasons:
            remedy = "add a case in which the rule is true; if there cannot be one, remove the rule"
            message = f"it never returns the reason `{reason}`"
            yield Remark(policy.id, "reason", message, describe_tests(observed, policy), remedy, is_fault=False)


def _explain_mismatch(judged: TargetType, known: _Known) -> tuple[str, bool]:
    """Return why nothing can match an entry of `judges`, and whether that is proved; empty if something may match."""
    if lowered(judged.type) not in STATEMENTS:
        return _unknown_type(judged, known), False
    for pointer, allowed in judged.where.items() if lowered(judged.type) == "workload" else ():
        words = get_args(_WORDS.get(pointer))
        if words and not {lowered(str(entry)) for entry in allowed} & set(words):
            return f"no workload has `{allowed[0]}` at `{pointer}`: it is one of {', '.join(words)}", True
    return "", False


def _unknown_type(judged: TargetType, known: _Known) -> str:
    kind = lowered(judged.type)
    if kind not in known.types:
        near = next((known.types[other] for other in sorted(known.types) if _is_misspelling(kind, other)), "")
        return f"nothing has the type `{judged.type}`; did you mean `{near}`" if near else ""
    for pointer, allowed in judged.where.items():
        peers = known.of_type(kind)
        if not any(has_value(entry, pointer) for entry in peers) and (near := _find_near_pointer(pointer, peers)):
            return f"no resource of the type has `{pointer}`, expected one of {list(allowed)}; did you mean `{near}`"
    return ""


def _is_misspelling(kind: str, other: str) -> bool:
    """Check whether one type is a misspelling of another: nearly the same word in place of one."""
    ours, theirs = kind.split("/"), other.split("/")
    differing = [(one, two) for one, two in zip(ours, theirs, strict=False) if one != two]
    return len(ours) == len(theirs) and all(get_close_matches(one, [two], 1, _ALIKE) for one, two in differing)


def _find_near_pointer(pointer: str, resources: Iterable[JsonObject]) -> str:
    """Return a pointer that some resource has, with nearly the same last word."""
    above, _, last = pointer.rpartition("/")
    for resource in resources:
        value: object = resource
        for key in above.split("/")[1:]:
            value = value.get(key) if isinstance(value, dict) else None
        names = {lowered(name): name for name in value} if isinstance(value, dict) else {}
        if close := get_close_matches(lowered(last), names, 1, _ALIKE):
            return f"{above}/{names[close[0]]}"
    return ""
