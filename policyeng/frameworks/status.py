"""What an evaluation says of the controls of a framework.

A status says what the policies that map directly to a control found. No status says that a control is met: a control
asks for more than configuration shows. Evidence is shown and never makes a control pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import orjson

from policyeng.bundle import Bundle, Policy
from policyeng.bundle.switches import unset_switches
from policyeng.facts.evidence import WHOLE_SNAPSHOT, count_evidence, mask_evidence
from policyeng.facts.ids import types_of
from policyeng.frameworks.documents import Control, Framework
from policyeng.models import (
    ControlResult,
    ControlScore,
    ControlStatus,
    Evaluation,
    Finding,
    FindingCounts,
    FrameworkResult,
    FrameworkSummary,
    JsonObject,
    Outcome,
    Snapshot,
    to_bytes,
)

#: The statuses of controls about which policies found something.
DECIDED = (
    ControlStatus.PASSING,
    ControlStatus.FAILING,
    ControlStatus.ERROR,
    ControlStatus.UNDECIDED,
    ControlStatus.ACCEPTED,
)


def evaluate_framework(
    framework: Framework,
    evaluation: Evaluation,
    bundle: Bundle,
    snapshot: Snapshot,
    parameters: Mapping[str, JsonObject] | None = None,
) -> FrameworkResult:
    """Return what an evaluation says of the controls of a framework.

    Args:
        framework: with the mappings of headers.
        evaluation: of the snapshot with the bundle.
        bundle: the policies in force are those that were evaluated.
        snapshot: gives evidence and its scope.
        parameters: by policy id, values that replace defaults.
    """
    evaluator = _ControlEvaluator(framework, evaluation, bundle, snapshot, parameters or {})
    controls = tuple(map(evaluator.result, framework.controls))
    return FrameworkResult(
        id=framework.id,
        version=framework.version,
        title=framework.title,
        preview=framework.preview,
        disclaimer=framework.disclaimer,
        summary=_summarize(controls),
        controls=controls,
    )


def _summarize(controls: Sequence[ControlResult]) -> FrameworkSummary:
    whole = _score(controls)
    statuses = Counter(control.status for control in controls)
    domains: dict[str, list[ControlResult]] = {}
    for control in controls:
        domains.setdefault(control.domain, []).append(control)
    return FrameworkSummary(
        controls=whole.controls,
        strict=whole.strict,
        decided=whole.decided,
        coverage=whole.coverage,
        technical=sum(control.kind == "technical" for control in controls),
        statuses={str(status): statuses[status] for status in ControlStatus},
        domains={domain: _score(members) for domain, members in domains.items()},
    )


def _score(controls: Sequence[ControlResult]) -> ControlScore:
    technical = [control for control in controls if control.kind == "technical"]
    decided = [control for control in controls if control.status in DECIDED]
    return ControlScore(
        controls=len(controls),
        strict=_percentage(sum(control.status is ControlStatus.PASSING for control in technical), len(technical)),
        decided=_percentage(sum(control.status is ControlStatus.PASSING for control in decided), len(decided)),
        coverage=_percentage(sum(control.findings.total > 0 for control in technical), len(technical)),
    )


def _percentage(part: int, whole: int) -> float | None:
    return round(100 * part / whole, 2) if whole else None


class _ControlEvaluator:
    """The findings of an evaluation by policy, and the evidence of a snapshot."""

    def __init__(
        self,
        framework: Framework,
        evaluation: Evaluation,
        bundle: Bundle,
        snapshot: Snapshot,
        parameters: Mapping[str, JsonObject],
    ) -> None:
        self._framework, self._bundle, self._snapshot = framework, bundle, snapshot
        self._parameters, self._as_of = parameters, evaluation.as_of
        self._active = {policy.id: policy for policy in bundle.policies}
        self._idle = {policy.id for policy in bundle.idle}
        self._findings: dict[str, list[Finding]] = {}
        for finding in evaluation.findings:
            self._findings.setdefault(finding.policy, []).append(finding)
        self._modules = dict(bundle.modules)
        self._entries = tuple(map(mask_evidence, snapshot.evidence))
        self._evidence: list[JsonObject] = [orjson.loads(to_bytes(entry)) for entry in self._entries]

    def result(self, control: Control) -> ControlResult:
        """Return the status of a control, with the policies of the bundle that map to it."""
        direct = [mapping.id for mapping in control.policies if mapping.is_direct]
        active = [self._active[identity] for identity in direct if identity in self._active]
        findings = [finding for policy in active for finding in self._counted(policy)]
        declared = self._declared(control, active)
        counts = Counter(finding.outcome for finding in findings)
        status, words = self._conclude(control, active, findings, declared)
        return ControlResult(
            id=control.id,
            title=control.title,
            domain=control.domain,
            kind=control.kind,
            status=status,
            words=words,
            guidance=control.guidance,
            policies=tuple(one for one in control.policies if one.id in self._active or one.id in self._idle),
            findings=FindingCounts(
                pass_=counts[Outcome.PASS],
                fail=counts[Outcome.FAIL],
                unknown=counts[Outcome.UNKNOWN],
                error=counts[Outcome.ERROR],
                exempt=sum(finding.exemption is not None for finding in findings),
            ),
            evidence=tuple(one for entry, one in zip(self._evidence, self._entries, strict=True) if entry in declared),
        )

    def _counted(self, policy: Policy) -> list[Finding]:
        """Return the findings of a policy that count: none that evidence alone can decide, except that it lapsed."""
        found = self._findings.get(policy.id, [])
        if policy.header.evidence:
            return [one for one in found if one.outcome in (Outcome.FAIL, Outcome.ERROR)]
        if not self._reads_evidence(policy):
            return found
        return [
            one
            for one in found
            if one.outcome is not Outcome.PASS or not self._in_force(self._evidence, policy.id, one.resource)
        ]

    def _reads_evidence(self, policy: Policy) -> bool:
        text = policy.python.text.decode(errors="replace") if policy.python else ""
        return "evidence" in text or "evidence" in self._modules.get(policy.file, "")

    def _in_force(self, entries: Iterable[JsonObject], subject: str, place: str) -> list[JsonObject]:
        counted = count_evidence(entries, subject, place, self._as_of)
        return [one.entry for one in counted if one.state == "in force" and one.covers]

    def _declared(self, control: Control, active: Iterable[Policy]) -> list[JsonObject]:
        """Return the evidence in force for a control that covers the snapshot, and for policies on resources in it."""
        subject = f"{self._framework.id}:{control.id}"
        found = [entry for entry in self._evidence if self._covers_snapshot(entry, subject)]
        for policy in active:
            places = {one.resource for one in self._findings.get(policy.id, ())}
            for place in sorted(places):
                found += [one for one in self._in_force(self._evidence, policy.id, place) if one not in found]
        return found

    def _covers_snapshot(self, entry: JsonObject, subject: str) -> bool:
        if entry["scope"] != WHOLE_SNAPSHOT and not types_of(self._snapshot.scope):
            places = [str(resource.get("id", "")) for resource in self._snapshot.resources]
            return bool(places) and all(self._in_force([entry], subject, place) for place in places)
        return bool(self._in_force([entry], subject, self._snapshot.scope))

    def _conclude(
        self, control: Control, active: Sequence[Policy], findings: Sequence[Finding], declared: Sequence[JsonObject]
    ) -> tuple[ControlStatus, str]:
        """Return the first status that holds, with its words."""
        failing = [one for one in findings if one.outcome is Outcome.FAIL and one.exemption is None]
        if failing:
            return ControlStatus.FAILING, f"{len(failing)} of {len(findings)} findings fail"
        if any(one.outcome is Outcome.ERROR for one in findings):
            return ControlStatus.ERROR, "could not be judged"
        if unknown := [one for one in findings if one.outcome is Outcome.UNKNOWN]:
            reasons = Counter(reason.msg for one in unknown for reason in one.unknowns[:1])
            missing = f": {reasons.most_common(1)[0][0]}" if reasons else ""
            verb = "finding is" if len(unknown) == 1 else "findings are"
            return ControlStatus.UNDECIDED, f"{len(unknown)} {verb} unknown{missing}"
        if accepted := [one.exemption for one in findings if one.exemption is not None]:
            first = min(accepted, key=lambda mark: (mark.expires_at is None, mark.expires_at or self._as_of))
            until = f" until {_day(first.expires_at)}" if first.expires_at else ""
            by = f" by {first.approved_by}" if first.approved_by else f" by {first.id}"
            return ControlStatus.ACCEPTED, f"fails, accepted{until}{by}"
        if findings:
            policies, resources = len({one.policy for one in findings}), len({one.resource for one in findings})
            counts = f"{_count(policies, 'policy', 'policies')}, {_count(resources, 'resource')}"
            return (
                ControlStatus.PASSING,
                f"what is checked passes ({counts}); the control asks for more than these check",
            )
        if declared:
            latest = max(declared, key=lambda entry: (str(entry["expiresAt"]), str(entry["id"])))
            return (
                ControlStatus.DECLARED,
                f"declared by {latest['givenBy']} until {str(latest['expiresAt'])[:10]}, not checked",
            )
        return self._without_findings(control, active)

    def _without_findings(self, control: Control, active: Sequence[Policy]) -> tuple[ControlStatus, str]:
        checking = [policy for policy in active if not policy.header.evidence]
        if checking:
            unset = {policy.id: self._unset(policy) for policy in checking}
            if all(unset.values()):
                asked = "; ".join(f"`{'`, `'.join(names)}` of {identity}" for identity, names in unset.items())
                return ControlStatus.NOT_APPLICABLE, f"not configured: set {asked}"
            return ControlStatus.NOT_APPLICABLE, "nothing here that it is about"
        idle = [one.id for one in control.policies if one.is_direct and one.id in self._idle]
        if idle:
            return ControlStatus.NOT_APPLICABLE, "not evaluated: its policies were not selected"
        known = {*self._active, *self._idle}
        mapped = [mapping for mapping in control.policies if mapping.id in known]
        if control.kind == "process" or mapped:
            guidance = f": {control.guidance}" if control.guidance else ""
            return ControlStatus.BY_HAND, f"no policy checks this{guidance}"
        return ControlStatus.NOT_COVERED, "no policy maps to it"

    def _unset(self, policy: Policy) -> tuple[str, ...]:
        values = {**policy.header.defaults, **self._parameters.get(policy.id, {})}
        return unset_switches(policy, self._bundle, values)


def _count(number: int, noun: str, plural: str = "") -> str:
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def _day(moment: datetime) -> str:
    return moment.date().isoformat()
