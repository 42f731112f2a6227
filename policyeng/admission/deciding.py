"""The decision: which of the findings that a change is to blame for deny it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from policyeng.admission.blame import sorted_out
from policyeng.admission.changes import After
from policyeng.admission.modes import Modes
from policyeng.models import (
    Blame,
    Change,
    Changed,
    Decision,
    Evaluation,
    Finding,
    Mode,
    Outcome,
    Problem,
    Severity,
    lowered,
)

#: How the one error begins whose text counts resources: it says nothing about a change.
_NOTHING = "nothing was evaluated"


@dataclass(frozen=True, slots=True)
class Gate:
    """What denies.

    Attributes:
        homes: by what findings report, the ARM id that the scopes of modes are held against, where that is another.
        fail_on, strict_unknown, blame: as for `admit`.
    """

    modes: Modes
    homes: Mapping[str, str]
    fail_on: Severity
    strict_unknown: bool
    blame: Blame


@dataclass
class _Heard:
    """The findings that a change is to blame for, by what comes of them."""

    denied: list[Finding] = field(default_factory=list)
    warned: list[Finding] = field(default_factory=list)
    shadowed: list[Finding] = field(default_factory=list)
    undecided: list[Finding] = field(default_factory=list)


def decided(changes: Sequence[Change], after: After, before: Evaluation, judged: Evaluation, gate: Gate) -> Decision:
    """Decide on changes from the evaluations before and after them.

    Args:
        changes: what was asked for.
        after: the snapshot after them.
        before: of the snapshot before.
        judged: of the snapshot after, with the same clock and options.
        gate: what denies.
    """
    sorted_ = sorted_out(before.findings, judged.findings, after.changed)
    heard = _heard([*sorted_.introduced, *(sorted_.there if gate.blame is Blame.TOUCHED else ())], gate)
    standing = [*sorted_.elsewhere, *(() if gate.blame is Blame.TOUCHED else sorted_.there)]
    brought = _brought(before.problems, [*after.problems, *judged.problems])
    undecidable = [problem for problem in brought if problem.level == "error"]
    errors = any(finding.outcome is Outcome.ERROR for finding in heard.denied)
    code = 2 if undecidable or errors else int(bool(heard.denied))
    return Decision(
        allowed=code == 0,
        exit_code=code,
        bundle=before.bundle,
        snapshot=before.snapshot,
        as_of=before.as_of,
        engine=before.engine,
        changes=tuple(Changed(operation=change.operation, id=change.id) for change in changes),
        denied=_ordered(heard.denied),
        warned=_ordered(heard.warned),
        shadowed=_ordered(heard.shadowed),
        undecided=_ordered(heard.undecided),
        exempted=_ordered(sorted_.exempted),
        standing=_ordered(finding for finding in standing if finding.outcome is not Outcome.UNKNOWN),
        cleared=_ordered(sorted_.cleared),
        problems=tuple(brought),
    )


def _heard(findings: Iterable[Finding], gate: Gate) -> _Heard:
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


def _brought(before: Iterable[Problem], after: Iterable[Problem]) -> list[Problem]:
    """The problems that were not there before."""
    known = set(before)
    return [problem for problem in after if problem not in known and not problem.message.startswith(_NOTHING)]


def _ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda finding: (finding.policy, lowered(finding.resource), finding.resource)))
