"""Law 2: order is irrelevant."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from policyeng.bundle import Bundle
from policyeng.bundle.cases import STATED
from policyeng.frozen import replace
from policyeng.models import Snapshot
from policyeng.verify.generators.json_mutations import Json
from policyeng.verify.laws.law import Law, LawContext, Trial, Violation, find_first_difference

_Entry = TypeVar("_Entry")

_STATED = (*STATED, "incomplete", "documents")


def _find_violations(trial: Trial) -> Violation | None:
    random = trial.random("order")
    bundle = random.choice(_other_orders(trial.grounds))
    first, again = trial.evaluation, trial.judged(_shuffle_snapshot(trial.snapshot, random), bundle)
    if first.findings != again.findings:
        found = find_first_difference(first, again, lambda finding: finding)
        message = "the finding depends on the order of resources, of their members, of statements or of policies"
        return replace(found, message=message) if found else Violation("the findings are in another order")
    if first.snapshot.digest != again.snapshot.digest and not trial.snapshot.documents:  # documents are ordered
        return Violation("the digest of the snapshot depends on the order of its entries")
    if first.exit_code != again.exit_code or first.summary != again.summary:
        return Violation("the exit code or the counts depend on the order of the resources")
    return None


def _other_orders(grounds: LawContext) -> Sequence[Bundle]:
    """Return the bundle with its policies in other orders, but few, because each is compiled."""

    def reorder() -> list[Bundle]:
        bundle = grounds.bundle
        titled = sorted(bundle.policies, key=lambda policy: (policy.header.title, policy.id))
        return [bundle.only(bundle.policies[::-1]), bundle.only(titled)]

    orders: Sequence[Bundle] = grounds.once("orders of the policies", reorder)
    return orders


def _shuffle_snapshot(snapshot: Snapshot, random: Random) -> Snapshot:
    shuffled = {name: _shuffle(getattr(snapshot, name), random) for name in _STATED}
    resources = tuple(_reverse_members(resource) for resource in _shuffle(snapshot.resources, random))
    return snapshot.model_copy(update={**shuffled, "resources": resources})


def _shuffle(entries: Sequence[_Entry], random: Random) -> tuple[_Entry, ...]:
    return tuple(random.sample(entries, len(entries)))


def _reverse_members(value: Json) -> Json:
    """Return a value with the members of its objects in reverse order."""
    if isinstance(value, dict):
        return {key: _reverse_members(member) for key, member in reversed(value.items())}
    return [_reverse_members(entry) for entry in value] if isinstance(value, list) else value


LAW = Law(
    2,
    "order",
    "the order of resources, of their members, of statements and of policies changes no finding and no digest",
    "permutative metamorphic relations: C. Murphy et al., Properties of Machine Learning Applications for Use in "
    "Metamorphic Testing (2008)",
    _find_violations,
)
