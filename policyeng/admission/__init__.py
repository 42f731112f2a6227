"""Evaluation before and after a change -> decision. Pure: no I/O, no clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from policyeng.admission.changes import Changes, changed, changes_of
from policyeng.admission.deciding import Gate, decided
from policyeng.admission.modes import Modes
from policyeng.bundle import Bundle
from policyeng.engines import OpaOptions
from policyeng.evaluation import evaluate
from policyeng.models import Blame, Decision, Enforcement, Exemption, JsonObject, Severity, Snapshot

__all__ = ["Changes", "admit", "changes_of"]


def admit(
    bundle: Bundle,
    snapshot: Snapshot,
    change: Changes,
    *,
    as_of: datetime,
    exemptions: Sequence[Exemption] = (),
    parameters: Mapping[str, JsonObject] | None = None,
    engine: str = "embedded",
    opa: OpaOptions | None = None,
    threads: int = 1,
    fail_on: Severity = Severity.LOW,
    strict_unknown: bool = False,
    modes: Sequence[Enforcement] = (),
    blame: Blame = Blame.TOUCHED,
) -> Decision:
    """Decide whether a change may be made: what `check` would say after it, held against what it says before.

    It is denied for failures and errors that the change introduces or that sit on what it changes, at or above
    `fail_on` (errors always), and where what it says cannot be judged. Failures that were there before elsewhere stand
    in the decision and are not blamed on it.

    Args:
        bundle: the policies in force.
        snapshot: the state before the change.
        change: a resource to create or replace, an id to delete, a `Change`, or several of them that are made at once.
        as_of: the evaluation clock; without a zone it is taken as UTC.
        exemptions: acceptances that mark failures while they are in force; what is marked denies nothing.
        parameters: by policy id, values that replace the defaults.
        engine: what judges Rego, a name of `policyeng.engines.ENGINES`.
        opa: which OPA judges, for the engine `opa`; a private server unless given.
        threads: how many threads judge Rego.
        fail_on: failures below this severity warn.
        strict_unknown: what cannot be decided counts as a failure does.
        modes: how failures are enforced; without any of them they deny.
        blame: whether old failures on what is changed deny, too.

    Raises:
        InputError: the change is none.
        UsageError: a parameter, the engine or a mode does not exist or does not fit.
        EngineError: the bundle does not compile, or the OPA server does not answer for every pair.
    """
    changes = changes_of(change)
    enforced = Modes(bundle, modes)
    after = changed(snapshot, changes)
    judged = [
        evaluate(
            bundle,
            state,
            as_of=as_of,
            exemptions=exemptions,
            parameters=parameters,
            engine=engine,
            opa=opa,
            threads=threads,
            fail_on=fail_on,
            strict_unknown=strict_unknown,
        )
        for state in (snapshot, after.snapshot)
    ]
    gate = Gate(enforced, _homes(after.snapshot), fail_on, strict_unknown, blame)
    return decided(changes, after, judged[0], judged[1], gate)


def _homes(snapshot: Snapshot) -> Mapping[str, str]:
    """By what findings report, the ARM id that scopes are held against, where that is another one."""
    homes = {workload.id: workload.workspace_id or "" for workload in snapshot.workloads}
    return homes | {approval.id: approval.scope for approval in snapshot.approvals}
