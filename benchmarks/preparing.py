"""Input of all contestants: policies in Rego, a snapshot file, and the pairs to evaluate as policyeng plans them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path

from benchmarks.verdicts import Verdicts, of_judgements
from policyeng.bundle import Bundle, load_bundle
from policyeng.bundle.parameters import parameters_of
from policyeng.engines import EvaluationRequest, Judgement, evaluate_pairs
from policyeng.evaluation.context import request_evaluation
from policyeng.evaluation.matching import plan
from policyeng.evaluation.prepared_snapshot import PreparedSnapshot, estate_of
from policyeng.sources import load_snapshot

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
MOMENT = "2026-06-01T00:00:00Z"
#: One of each kind: of a compute, of a workspace with its tags, of role assignments, of sizes and series.
FIVE = ("AML-CMP-002", "AML-NET-001", "AML-RBAC-101", "AML-SKU-102", "AML-SKU-104")


@cache
def whole_bundle() -> Bundle:
    """Return the built-in policies."""
    return load_bundle()


def selections() -> dict[str, Bundle]:
    """Return the measured sets of policies by their names in the tables; only policies in Rego, which OPA reads."""
    bundle = whole_bundle()
    rego = [policy for policy in bundle.policies if policy.rules]
    return {"5": bundle.only(policy for policy in rego if policy.id in FIVE), f"all {len(rego)}": bundle.only(rego)}


@dataclass(frozen=True)
class Prepared:
    """A snapshot planned for a selection of policies."""

    bundle: Bundle
    file: Path
    size: int
    estate: PreparedSnapshot
    work: EvaluationRequest

    @property
    def ids(self) -> list[str]:
        """Ids of the policies that are measured."""
        return [policy.id for policy in self.bundle.policies]

    def expected(self, positions: Sequence[int] | None = None) -> Verdicts:
        """Return the verdicts of policyeng's engine for all pairs, or for those at some positions."""
        chosen = range(len(self.work.pairs)) if positions is None else positions
        pairs = [self.work.pairs[position] for position in chosen]
        names = [(self.ids[pair.policy], self.estate.subjects[pair.subject].reported_id) for pair in pairs]
        return of_judgements(names, [self._judgements[position] for position in chosen])

    @cached_property
    def _judgements(self) -> list[Judgement]:
        results = evaluate_pairs(self.work)
        return [judgement for policy in self.work.positions for judgement in results[policy]]


def prepared(bundle: Bundle, file: Path) -> Prepared:
    """Read a snapshot and plan it.

    Raises:
        ValueError: the plan decides a pair by itself, so our engine would not evaluate what the others must.
    """
    snapshot = load_snapshot(file)
    estate = estate_of(snapshot, bundle.facts)
    planned = list(plan(bundle, estate))
    if any(column.undecided for column in planned):
        raise ValueError(f"{file.name} has fields that cannot be read; the engines would not evaluate the same pairs")
    work = request_evaluation(bundle, estate, planned, parameters_of(bundle, {}), AS_OF)
    return Prepared(bundle, file, len(snapshot.resources), estate, work)
