"""Law 2: the order in which things come is irrelevant."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from policyeng.bundle import Bundle
from policyeng.bundle.cases import STATED
from policyeng.frozen import replace
from policyeng.models import Snapshot
from policyeng.verify.generators.json_mutations import Json
from policyeng.verify.laws.law import Law, LawContext, Trial, Violation, first_difference

_Entry = TypeVar("_Entry")

_STATED = (*STATED, "incomplete", "documents")


def _violated(trial: Trial) -> Violation | None:
    random = trial.random("order")
    bundle = random.choice(_other_orders(trial.grounds))
    first, again = trial.evaluation, trial.judged(_shuffled(trial.snapshot, random), bundle)
    if first.findings != again.findings:
        found = first_difference(first, again, lambda finding: finding)
        message = "in another order of resources, of their members, of stated entries and of policies it says otherwise"
        return replace(found, message=message) if found else Violation("the findings come in another order")
    if first.snapshot.digest != again.snapshot.digest and not trial.snapshot.documents:  # whose order is what was given
        return Violation("the digest of the snapshot depends on the order of what is in it")
    if first.exit_code != again.exit_code or first.summary != again.summary:
        return Violation("the exit code or the counts depend on the order of what is judged")
    return None


def _other_orders(grounds: LawContext) -> Sequence[Bundle]:
    """The bundle with its policies in other orders: few, because each is compiled."""

    def made() -> list[Bundle]:
        bundle = grounds.bundle
        titled = sorted(bundle.policies, key=lambda policy: (policy.header.title, policy.id))
        return [bundle.only(bundle.policies[::-1]), bundle.only(titled)]

    orders: Sequence[Bundle] = grounds.once("orders of the policies", made)
    return orders


def _shuffled(snapshot: Snapshot, random: Random) -> Snapshot:
    mixed = {name: _mixed(getattr(snapshot, name), random) for name in _STATED}
    resources = tuple(_turned(resource) for resource in _mixed(snapshot.resources, random))
    return snapshot.model_copy(update={**mixed, "resources": resources})


def _mixed(entries: Sequence[_Entry], random: Random) -> tuple[_Entry, ...]:
    return tuple(random.sample(entries, len(entries)))


def _turned(value: Json) -> Json:
    """A value whose objects have their members the other way round."""
    if isinstance(value, dict):
        return {key: _turned(member) for key, member in reversed(value.items())}
    return [_turned(entry) for entry in value] if isinstance(value, list) else value


LAW = Law(
    2,
    "order",
    "the order of resources, of their members, of stated entries and of policies changes no finding and no digest",
    "permutative metamorphic relations: C. Murphy et al., Properties of Machine Learning Applications for Use in "
    "Metamorphic Testing (2008)",
    _violated,
)
