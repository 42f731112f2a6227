"""Decide on changes: evaluate before, evaluate after, attribute, conclude.

This evaluates everything. `session` decides faster, and must return the same decisions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from policyeng.admission.attribution import Sorted, reported, sorted_out, touches_of
from policyeng.admission.changes import apply_earlier, apply_in_order, index_resources, make_snapshot
from policyeng.admission.decision import AdmissionOptions, DecisionHeader, decided, find_new_problems
from policyeng.bundle import Bundle
from policyeng.evaluation import EvaluationContext, evaluate_prepared, prepare
from policyeng.evaluation.normalization import with_known_names
from policyeng.evaluation.prepared_snapshot import estate_of
from policyeng.evaluation.tracing import Differences, Numbers, rows_of
from policyeng.facts.ids import fold_id
from policyeng.models import Change, Decision, Evaluation, Finding, Snapshot, SnapshotRef


def decided_wholly(
    bundle: Bundle,
    snapshot: Snapshot,
    changes: Sequence[Change],
    options: AdmissionOptions,
    before: Sequence[Change] = (),
    remembered: Sequence[Change] = (),
) -> Decision:
    """Decide on changes by evaluating every pair before and after them; see `admit`."""
    gate = options.gate(bundle, find_scopes(snapshot))
    existing = index_resources(snapshot)
    state = apply_earlier(remembered, before, existing, snapshot, bundle.spellings)
    after = apply_in_order(changes, existing, snapshot, state, bundle.spellings)
    old_context, new_context = (
        prepare(bundle, make_snapshot(snapshot, side), options.parameters) for side in (state, after)
    )
    old, new = (evaluate_prepared(context, options) for context in (old_context, new_context))
    attributed = _attribute(old, new, old_context, new_context, after.changed)
    problems = find_new_problems(
        frozenset(old.problems), [*state.problems, *after.problems, *new.problems], after.changed
    )
    digest = _digest_of(snapshot, bundle) if before or remembered else old.snapshot.digest
    named = SnapshotRef(scope=snapshot.scope, taken_at=snapshot.taken_at, digest=digest)
    header = DecisionHeader(old.bundle, named, old.as_of, old.engine, snapshot.ledger)
    return decided(changes, header, attributed, problems, gate)


def _attribute(
    old: Evaluation, new: Evaluation, old_context: EvaluationContext, new_context: EvaluationContext, named: Set[str]
) -> Sorted:
    """Sort the findings of two evaluations by whether the change between them is responsible.

    Args:
        old: the evaluation before the change.
        new: the evaluation after the change.
        old_context: the inputs of the evaluation before the change.
        new_context: the inputs of the evaluation after the change.
        named: the ids that the change names, as `folded_id` returns them.
    """
    subjects = old_context.estate.subjects
    positions: dict[tuple[str, str], list[int]] = {}
    for at, subject in enumerate(subjects):
        positions.setdefault(reported(subject), []).append(at)
    differences = Differences(rows_of(subjects, new_context.estate.subjects), old_context.estate.view)
    numbers = {policy.id: number for number, policy in enumerate(old_context.bundle.policies)}

    def pairs_of(finding: Finding) -> Iterator[Numbers]:
        key = finding.resource_type, fold_id(finding.resource)
        return ((numbers[finding.policy], at) for at in positions.get(key, ()))

    touches = touches_of(old.findings, old_context, old.as_of, differences, pairs_of)
    return sorted_out(old.findings, new.findings, named, touches)


def _digest_of(snapshot: Snapshot, bundle: Bundle) -> str:
    """Return the digest of a snapshot as an evaluation reports it."""
    return estate_of(with_known_names(snapshot, bundle.spellings)[0], bundle.facts).digest


def find_scopes(snapshot: Snapshot) -> Mapping[str, str]:
    """Return the ARM ids to compare with the scopes of modes, by reported id, for subjects where the two differ."""
    homes = {workload.id: workload.workspace_id or "" for workload in snapshot.workloads}
    return homes | {approval.id: approval.scope for approval in snapshot.approvals}
