"""Decide by evaluating everything before and after a change; every faster way must give the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from policyeng.admission.attribution import reported, sorted_out, touches_of
from policyeng.admission.changes import changed
from policyeng.admission.decision import DecisionHeader, DecisionThreshold, brought, decided
from policyeng.admission.enforcement import Modes
from policyeng.bundle import Bundle
from policyeng.evaluation import EvaluationOptions, evaluate_prepared, prepare
from policyeng.evaluation.member_names import with_known_names
from policyeng.evaluation.prepared_snapshot import estate_of
from policyeng.evaluation.tracing import Differences, Numbers, rows_of
from policyeng.facts.ids import folded_id
from policyeng.frozen import frozen
from policyeng.models import (
    Blame,
    Change,
    Decision,
    Enforcement,
    Finding,
    JsonObject,
    Problem,
    Snapshot,
    SnapshotRef,
)

#: A change is of resources, and policies in the forms of others judge documents.
_NO_POLICY = Problem(
    level="error",
    message="no policy in force judges resources, so no change can be allowed; see `policyeng policies list`",
)


@frozen
class AdmissionOptions(EvaluationOptions):
    """How a change is evaluated and what denies it; the attributes are the arguments of `admit`."""

    modes: Sequence[Enforcement] = ()
    blame: Blame = Blame.TOUCHED
    standing: bool = False

    def gate(self, bundle: Bundle, homes: Mapping[str, str]) -> DecisionThreshold:
        """What denies.

        Args:
            bundle: the policies.
            homes: as `homes_of` gives them.

        Raises:
            UsageError: a mode names no policy of the bundle, or a scope that is no ARM id.
        """
        problems = () if any(policy.input_form == "policy" for policy in bundle.policies) else (_NO_POLICY,)
        return DecisionThreshold(
            Modes(bundle, self.modes), homes, self.fail_on, self.strict_unknown, self.blame, self.standing, problems
        )


def decided_wholly(
    bundle: Bundle,
    snapshot: Snapshot,
    changes: Sequence[Change],
    options: AdmissionOptions,
    parameters: Mapping[str, JsonObject] | None = None,
    before: Sequence[Change] = (),
) -> Decision:
    """Decide on changes by evaluating every pair before and after them; see `admit`."""
    gate, state = options.gate(bundle, homes_of(snapshot)), changed(snapshot, before, bundle.spellings)
    after = changed(state.snapshot, changes, bundle.spellings)
    sides = [prepare(bundle, side.snapshot, parameters) for side in (state, after)]
    standing, judged = (evaluate_prepared(side, options) for side in sides)
    earlier, later = (side.estate.subjects for side in sides)
    positions: dict[tuple[str, str], list[int]] = {}
    for at, subject in enumerate(earlier):
        positions.setdefault(reported(subject), []).append(at)
    differences = Differences(rows_of(earlier, later), sides[0].estate.view)
    numbers = {policy.id: number for number, policy in enumerate(bundle.policies)}

    def pairs_of(finding: Finding) -> Iterator[Numbers]:
        key = finding.resource_type, folded_id(finding.resource)
        return ((numbers[finding.policy], at) for at in positions.get(key, ()))

    touches = touches_of(standing.findings, sides[0], standing.as_of, differences, pairs_of)
    said = sorted_out(standing.findings, judged.findings, after.changed, touches)
    made = [*state.problems, *after.problems, *judged.problems]
    problems: list[Problem] = brought(frozenset(standing.problems), made, after.changed)
    digest = standing.snapshot.digest
    if before:
        digest = estate_of(with_known_names(snapshot, bundle.spellings)[0], bundle.facts).digest
    named = SnapshotRef(scope=snapshot.scope, taken_at=snapshot.taken_at, digest=digest)
    grounds = DecisionHeader(standing.bundle, named, standing.as_of, standing.engine)
    return decided(changes, grounds, said, problems, gate)


def homes_of(snapshot: Snapshot) -> Mapping[str, str]:
    """By what findings report, the ARM id that scopes of modes are held against, where that is another one."""
    homes = {workload.id: workload.workspace_id or "" for workload in snapshot.workloads}
    return homes | {approval.id: approval.scope for approval in snapshot.approvals}
