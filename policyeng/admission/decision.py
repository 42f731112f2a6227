"""Find the enforcement mode of a failure, from the most specific setting for its policy and scope."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from msgspec.structs import replace

from policyeng.admission.attribution import Sorted
from policyeng.bundle import Bundle
from policyeng.bundle.policy_selection import selected
from policyeng.errors import UsageError
from policyeng.evaluation import EvaluationOptions
from policyeng.evaluation.findings import order_of
from policyeng.facts.ids import fold_id, is_at_or_under, segments
from policyeng.models import (
    AppliedSettings,
    Blame,
    BundleRef,
    Change,
    Changed,
    Decision,
    Enforcement,
    EngineRef,
    FailureCriteria,
    Finding,
    LedgerEntry,
    Mode,
    Outcome,
    Problem,
    SnapshotRef,
    leaves_undecided,
)

_STRICTEST = tuple(Mode)


class _Setting(NamedTuple):
    """A setting with the ids of its policies; no ids mean all policies."""

    policies: frozenset[str]
    scope: str
    mode: Mode


class Modes:
    """The mode of each policy in each scope."""

    def __init__(self, bundle: Bundle, enforcements: Sequence[Enforcement]) -> None:
        """Read settings in any order.

        Raises:
            UsageError: a setting names a policy that is not in the bundle, or a scope that is not an ARM id.
        """
        self._settings = [_setting(bundle, entry) for entry in enforcements]

    def of(self, policy: str, home: str) -> Mode:
        """Return the mode for a policy's failures at an ARM id; `deny` by default.

        The setting with the longest scope applies, then the one with the fewest policies, then the strictest.
        """
        near = [
            setting
            for setting in self._settings
            if (not setting.policies or policy in setting.policies)
            and (not setting.scope or is_at_or_under(home, setting.scope))
        ]
        return min(near, key=_rank).mode if near else Mode.DENY


def _rank(setting: _Setting) -> tuple[int, float, int]:
    depth = len(segments(setting.scope) or ()) if setting.scope else -1
    return -depth, len(setting.policies) or float("inf"), _STRICTEST.index(setting.mode)


def _setting(bundle: Bundle, entry: Enforcement) -> _Setting:
    if entry.scope and segments(entry.scope) is None:
        raise UsageError(
            f"`{entry.scope}` is not an ARM id", place=("modes",), remedy="name a scope such as `/subscriptions/...`"
        )
    everything = entry.policy == "*"
    policies = () if everything else (policy.id for policy in selected(bundle, [entry.policy]).policies)
    return _Setting(frozenset(policies), entry.scope, entry.mode)


def with_problems(
    decision: Decision, problems: Iterable[Problem], ledger: Iterable[LedgerEntry], criteria: FailureCriteria
) -> Decision:
    """Return a decision with what reading the inputs brought; an error denies with exit code 2.

    Args:
        decision: the decision on the readable inputs.
        problems: the problems; they come before those of the decision.
        ledger: what was not read of the changes.
        criteria: whether relevant entries of the ledger deny, as failures do.
    """
    added, unread = tuple(problems), tuple(ledger)
    code = max(
        decision.exit_code,
        2 * any(problem.level == "error" for problem in added),
        int(leaves_undecided(unread, criteria)),
    )
    return decision.model_copy(
        update={
            "allowed": code == 0,
            "exit_code": code,
            "problems": (*added, *decision.problems),
            "ledger": (*decision.ledger, *unread),
        }
    )


#: Changes are of resources. A bundle can have only policies that evaluate documents.
_NO_POLICY = Problem(
    level="error",
    message="no active policy checks resources, so no change can be allowed; see `policyeng policies list`",
)


class AdmissionOptions(EvaluationOptions, frozen=True):
    """The options of a decision, which evaluates before and after the changes.

    Attributes:
        fail_on: the lowest severity that denies; failures below it warn.
        modes: how failures are enforced; by default they deny.
        blame: whether earlier failures on changed resources also deny.
        standing: list all earlier failures and errors that do not deny, not only those on changed resources. This does
            not affect whether the change is allowed.
    """

    modes: Sequence[Enforcement] = ()
    blame: Blame = Blame.TOUCHED
    standing: bool = False

    def gate(self, bundle: Bundle, homes: Mapping[str, str]) -> DecisionThreshold:
        """Return what denies a change.

        Args:
            bundle: the policies.
            homes: the result of `homes_of`.

        Raises:
            UsageError: a mode names a policy that is not in the bundle, or a scope that is not an ARM id.
        """
        problems = () if any(policy.input_form == "policy" for policy in bundle.policies) else (_NO_POLICY,)
        return DecisionThreshold(Modes(bundle, self.modes), homes, self, problems)


@dataclass(frozen=True, slots=True)
class DecisionThreshold:
    """The rules for which findings deny a change.

    Attributes:
        homes: ARM ids to compare with the scopes of modes, by reported id, where the two differ.
        options: the options of the decision.
        problems: reasons why no change can be allowed.
    """

    modes: Modes
    homes: Mapping[str, str]
    options: AdmissionOptions
    problems: Sequence[Problem] = ()


@dataclass
class _Effects:
    """The findings that are attributed to a change, by their effect."""

    denied: list[Finding] = field(default_factory=list)
    warned: list[Finding] = field(default_factory=list)
    shadowed: list[Finding] = field(default_factory=list)
    undecided: list[Finding] = field(default_factory=list)


class DecisionHeader(NamedTuple):
    """The inputs that a decision names; the attributes are those of `Decision`."""

    bundle: BundleRef
    snapshot: SnapshotRef
    as_of: datetime
    engine: EngineRef
    ledger: tuple[LedgerEntry, ...]


def decided(
    changes: Sequence[Change],
    header: DecisionHeader,
    attributed: Sorted,
    problems: Sequence[Problem],
    gate: DecisionThreshold,
) -> Decision:
    """Decide on changes.

    Args:
        changes: the requested changes.
        header: the inputs.
        attributed: the findings, as `sorted_out` returns them.
        problems: the problems that the changes cause.
        gate: the rules for which findings deny.
    """
    earlier = attributed.there if gate.options.blame is Blame.TOUCHED else ()
    effects = _sort_by_effect([*attributed.introduced, *earlier], gate)
    standing = list(attributed.elsewhere) if gate.options.standing else []
    for finding in attributed.there if gate.options.blame is not Blame.TOUCHED else ():
        (effects.undecided if finding.outcome is Outcome.UNKNOWN else standing).append(finding)
    problems = (*gate.problems, *problems)
    undecidable = any(problem.level == "error" for problem in problems)
    errors = any(finding.outcome is Outcome.ERROR for finding in effects.denied)
    unread = leaves_undecided(header.ledger, gate.options)
    code = 2 if undecidable or errors else int(bool(effects.denied) or unread)
    return Decision(
        decision_version=1,
        allowed=code == 0,
        exit_code=code,
        **header._asdict(),
        changes=tuple(Changed(operation=change.operation, id=change.id) for change in changes),
        denied=_sort(effects.denied),
        warned=_sort(effects.warned),
        shadowed=_sort(effects.shadowed),
        undecided=_sort(effects.undecided),
        exempted=_sort(attributed.exempted),
        standing=_sort(standing),
        cleared=_sort(attributed.cleared),
        problems=problems,
        settings=AppliedSettings(),
    )


def _sort_by_effect(findings: Iterable[Finding], gate: DecisionThreshold) -> _Effects:
    effects = _Effects()
    for finding in findings:
        if finding.outcome is Outcome.UNKNOWN and not gate.options.strict_unknown:
            effects.undecided.append(finding)
            continue
        mode = gate.modes.of(finding.policy, gate.homes.get(finding.resource, finding.resource))
        below = finding.outcome is not Outcome.ERROR and finding.severity.rank < gate.options.fail_on.rank
        if mode is Mode.SHADOW:
            effects.shadowed.append(finding)
        elif mode is Mode.WARN or below:
            effects.warned.append(finding)
        else:
            effects.denied.append(finding)
    return effects


def find_new_problems(known: Container[Problem], after: Iterable[Problem], changed: Container[str]) -> list[Problem]:
    """Return the new problems, and all errors about changed resources, because these are not evaluated.

    Args:
        known: the problems before.
        after: the problems after.
        changed: the ids that the changes name, as `folded_id` returns them.
    """
    # This error counts resources: its text changes although the change does not cause it.
    others = (problem for problem in after if problem.kind != "nothing_evaluated")
    return [problem for problem in others if problem not in known or _is_error_of(problem, changed)]


def _is_error_of(problem: Problem, changed: Container[str]) -> bool:
    return problem.level == "error" and fold_id(problem.place or "") in changed


def _sort(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings in their order, without owners, which decisions do not include."""
    return tuple(sorted((replace(finding, owner="") for finding in findings), key=order_of))
