"""The decision: which of the findings that a change is to blame for deny it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from policyeng.admission.attribution import Sorted
from policyeng.admission.enforcement import Modes
from policyeng.evaluation.findings import order_of
from policyeng.facts.ids import folded_id
from policyeng.models import (
    AppliedSettings,
    Blame,
    BundleRef,
    Change,
    Changed,
    Decision,
    EngineRef,
    Finding,
    Mode,
    Outcome,
    Problem,
    Severity,
    SnapshotRef,
)


def with_problems(decision: Decision, problems: Iterable[Problem]) -> Decision:
    """A decision with what could not be read of the state or the changes; an error among it denies with exit code 2.

    Args:
        decision: on what could be read.
        problems: of the reading; they come before its own.
    """
    said = tuple(problems)
    if not any(problem.level == "error" for problem in said):
        return decision.model_copy(update={"problems": (*said, *decision.problems)})
    return decision.model_copy(update={"allowed": False, "exit_code": 2, "problems": (*said, *decision.problems)})


@dataclass(frozen=True, slots=True)
class DecisionThreshold:
    """What denies.

    Attributes:
        homes: by what findings report, the ARM id that the scopes of modes are held against, where that is another.
        fail_on, strict_unknown, blame, standing: as for `admit`.
        problems: why nothing can be allowed, whatever the change is.
    """

    modes: Modes
    homes: Mapping[str, str]
    fail_on: Severity
    strict_unknown: bool
    blame: Blame
    standing: bool
    problems: Sequence[Problem] = ()


@dataclass
class _Heard:
    """The findings that a change is to blame for, by what comes of them."""

    denied: list[Finding] = field(default_factory=list)
    warned: list[Finding] = field(default_factory=list)
    shadowed: list[Finding] = field(default_factory=list)
    undecided: list[Finding] = field(default_factory=list)


class DecisionHeader(NamedTuple):
    """What a decision rests on: the attributes are those of `Decision`."""

    bundle: BundleRef
    snapshot: SnapshotRef
    as_of: datetime
    engine: EngineRef


def decided(
    changes: Sequence[Change],
    grounds: DecisionHeader,
    said: Sorted,
    problems: Sequence[Problem],
    gate: DecisionThreshold,
) -> Decision:
    """Decide on changes.

    Args:
        changes: what was asked for.
        grounds: of the snapshot before them.
        said: the findings before and after them, compared, each list sorted as `order_of` has it.
        problems: those that the changes bring.
        gate: what denies.
    """
    heard = _heard([*said.introduced, *(said.there if gate.blame is Blame.TOUCHED else ())], gate)
    standing = list(said.elsewhere) if gate.standing else []
    for finding in said.there if gate.blame is not Blame.TOUCHED else ():
        (heard.undecided if finding.outcome is Outcome.UNKNOWN else standing).append(finding)
    problems = (*gate.problems, *problems)
    undecidable = any(problem.level == "error" for problem in problems)
    errors = any(finding.outcome is Outcome.ERROR for finding in heard.denied)
    code = 2 if undecidable or errors else int(bool(heard.denied))
    return Decision(
        decision_version=1,
        allowed=code == 0,
        exit_code=code,
        **grounds._asdict(),
        changes=tuple(Changed(operation=change.operation, id=change.id) for change in changes),
        denied=_ordered(heard.denied),
        warned=_ordered(heard.warned),
        shadowed=_ordered(heard.shadowed),
        undecided=_ordered(heard.undecided),
        exempted=_ordered(said.exempted),
        standing=_ordered(standing),
        cleared=_ordered(said.cleared),
        problems=problems,
        settings=AppliedSettings(),
    )


def _heard(findings: Iterable[Finding], gate: DecisionThreshold) -> _Heard:
    heard = _Heard()
    for finding in findings:
        if finding.outcome is Outcome.UNKNOWN and not gate.strict_unknown:
            heard.undecided.append(finding)
            continue
        mode = gate.modes.of(finding.policy, gate.homes.get(finding.resource, finding.resource))
        below = finding.outcome is not Outcome.ERROR and finding.severity.rank < gate.fail_on.rank
        if mode is Mode.SHADOW:
            heard.shadowed.append(finding)
        elif mode is Mode.WARN or below:
            heard.warned.append(finding)
        else:
            heard.denied.append(finding)
    return heard


def brought(known: Container[Problem], after: Iterable[Problem], changed: Container[str]) -> list[Problem]:
    """The problems that were not there before, and the errors about what changes, which is not judged then.

    Args:
        known: those before.
        after: those after.
        changed: the ids of what the changes name, as `folded_id` gives them.
    """
    # This error counts resources: its text changes although the change does not cause it.
    others = (problem for problem in after if problem.kind != "nothing_evaluated")
    return [problem for problem in others if problem not in known or _is_error_of(problem, changed)]


def _is_error_of(problem: Problem, changed: Container[str]) -> bool:
    return problem.level == "error" and folded_id(problem.place or "") in changed


def _ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=order_of))
