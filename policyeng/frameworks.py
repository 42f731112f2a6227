"""Frameworks: published standards, the policies that map to their controls, and what an evaluation shows about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Annotated

import orjson
from msgspec.structs import replace

from policyeng.bundle import Bundle, Policy
from policyeng.bundle.policy_selection import is_framework_file, shipped_frameworks
from policyeng.bundle.switches import unset_switches
from policyeng.errors import InputError, UsageError, suggest_nearest
from policyeng.facts.evidence import WHOLE_SNAPSHOT, count_evidence, mask_evidence
from policyeng.facts.ids import types_of
from policyeng.later import lazy_pattern
from policyeng.models import (
    Checked,
    ControlMapping,
    ControlResult,
    ControlScore,
    ControlStatus,
    Evaluation,
    Finding,
    FindingCounts,
    FrameworkResult,
    FrameworkSummary,
    JsonObject,
    Limited,
    Model,
    Outcome,
    Problem,
    Snapshot,
    lowered,
    to_bytes,
)
from policyeng.models.findings import ControlKind
from policyeng.parsing.json_places import lines_of
from policyeng.parsing.json_text import DEFAULT_MAX_BYTES, parse_json, shortened
from policyeng.sources.parsed import refuse
from policyeng.sources.validation import validated

_ID = lazy_pattern(r"[a-z0-9][a-z0-9.-]*")
_Text = Annotated[str, Limited(min_length=1)]


def _check_id(value: str) -> str:
    if not _ID.fullmatch(value):
        raise ValueError("an id has lower-case letters, digits, periods and hyphens, such as `mcsb-v1`")
    return value


def _check_date(value: str) -> str:
    if value:
        date.fromisoformat(value)
    return value


class Control(Model, frozen=True, kw_only=True):
    """One requirement of a framework.

    Attributes:
        title: a short description.
        domain: the part of the framework that it is in.
        kind: `process` for what no configuration shows.
        guidance: how a person would show it, where no policy is direct.
        policies: the policies that map to it.
    """

    id: _Text
    title: str
    domain: str = ""
    kind: ControlKind = "technical"
    guidance: str = ""
    policies: tuple[ControlMapping, ...] = ()


class Framework(Model, frozen=True, kw_only=True):
    """A published standard, or an organization's own, as controls.

    Attributes:
        source: where the standard is published.
        preview: whether its publisher calls it a preview.
        disclaimer: what the mappings do not show.
    """

    id: Annotated[str, Checked(_check_id)]
    title: _Text
    version: str
    date: Annotated[str, Checked(_check_date)] = ""
    source: str
    preview: bool = False
    disclaimer: str = ""
    controls: Annotated[tuple[Control, ...], Limited(min_length=1)]

    @property
    def by_domain(self) -> dict[str, list[Control]]:
        """The controls by domain, in the order of the document."""
        found: dict[str, list[Control]] = {}
        for control in self.controls:
            found.setdefault(control.domain, []).append(control)
        return found

    def control(self, identity: str) -> Control:
        """Return a control by its id, in any letter case.

        Raises:
            UsageError: there is none; names the nearest one.
        """
        for control in self.controls:
            if lowered(control.id) == lowered(identity):
                return control
        known = [control.id for control in self.controls]
        raise UsageError(f"`{self.id}` has no control `{identity}`{suggest_nearest(identity, known)}")


def frameworks_of(bundle: Bundle) -> list[Framework]:
    """Return the frameworks of a bundle, or the built-in ones if it has none, with the mappings of headers.

    Raises:
        UsageError: one is not well formed.
    """
    return [framework_of(bundle, name) for name in bundle.frameworks]


def framework_of(bundle: Bundle, name: str) -> Framework:
    """Return a framework by its name, or that of a file, with the mappings of headers.

    Args:
        bundle: the bundle with its policies.
        name: the name of a framework of the bundle, in any letter case, or the path of a JSON or YAML file.

    Raises:
        UsageError: there is no such framework or file, or it is not well formed; names the place and a remedy.
    """
    if known := next((one for one in bundle.frameworks if lowered(one) == lowered(name)), None):
        # A bundle can have some of the policies to which the built-in frameworks map.
        policies = None if known in shipped_frameworks() else _ids(bundle)
        return _with_headers(_parsed(bundle.frameworks[known], policies, lambda _: f"framework `{known}`"), bundle)
    if is_framework_file(name):
        return read_framework(Path(name), bundle)
    remedy = f"choose from {', '.join(bundle.frameworks)}, or name a JSON or YAML file"
    raise UsageError(f"no framework is called `{name}`{suggest_nearest(name, bundle.frameworks)}", remedy=remedy)


def read_framework(path: Path, bundle: Bundle) -> Framework:
    """Read a framework from a JSON or YAML file, with the mappings of headers.

    Raises:
        UsageError: the file cannot be read, is not well formed, or maps a policy that the bundle does not have; with
            the line and a remedy.
    """
    file = str(path)
    try:
        content = path.read_bytes()
        if path.suffix.lower() == ".json":
            document = parse_json(content, file, max_bytes=DEFAULT_MAX_BYTES)
            return _with_headers(
                _parsed(document, _ids(bundle), lambda at: f"{file}:{lines_of(content, [at])[0]}"), bundle
            )
        from policyeng.parsing.yaml_text import parse_yaml  # YAML is loaded only where there is some

        document, places = parse_yaml(content, file, max_bytes=DEFAULT_MAX_BYTES)
    except OSError as error:
        message = f"the framework cannot be read ({(error.strerror or '').lower()})"
        raise UsageError(message, place=(file,), remedy="name a readable file") from None
    except InputError as error:
        raise UsageError(error.message, place=error.place, remedy=error.remedy) from None
    return _with_headers(_parsed(document, _ids(bundle), lambda at: f"{file}:{places.get(at, (1, 1))[0]}"), bundle)


def tested_controls(frameworks: Iterable[Framework]) -> dict[str, dict[str, list[str]]]:
    """Return by policy id and framework the controls that the policy tests, such as `NS-2 (published)`."""
    found: dict[str, dict[str, list[str]]] = {}
    for framework in frameworks:
        for control in framework.controls:
            for mapping in control.policies:
                if mapping.is_direct:
                    listed = found.setdefault(mapping.id, {}).setdefault(framework.id, [])
                    listed.append(f"{control.id} ({mapping.basis})")
    return found


def _ids(bundle: Bundle) -> set[str]:
    return {policy.id for policy in (*bundle.policies, *bundle.idle)}


def _parsed(document: object, policies: Collection[str] | None, place_of: Callable[[str], str]) -> Framework:
    """Return a document as a framework.

    Args:
        document: any JSON value.
        policies: the ids to which it can map; None for any.
        place_of: how messages name the place of a JSON Pointer.

    Raises:
        UsageError: with the first fault.
    """
    framework, faults = validated(Framework, document, "")
    faults = faults if framework is None else tuple(_faults(framework, policies))
    for fault in faults[:1]:
        message = fault.message.replace("does not fit", "is not valid", 1)
        raise UsageError(message, place=(place_of(fault.place),), remedy=fault.remedy)
    assert framework is not None  # noqa: S101  # a document without faults is a framework
    return framework


def _faults(framework: Framework, policies: Collection[str] | None) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for number, control in enumerate(framework.controls):
        pointer = f"/controls/{number}"
        if lowered(control.id) in seen:
            message = f"two controls have the id `{shortened(control.id)}`"
            yield refuse(f"{pointer}/id", message, f"give each its own id; the first is `{seen[lowered(control.id)]}`")
        seen.setdefault(lowered(control.id), control.id)
        mapped = set[str]()
        for at, mapping in enumerate(control.policies):
            place = f"{pointer}/policies/{at}/id"
            if policies is not None and mapping.id not in policies:
                message = f"control `{control.id}` maps to `{shortened(mapping.id)}`, which is no policy"
                remedy = suggest_nearest(mapping.id, policies).removeprefix("; ") or "see `policyeng policies list`"
                yield refuse(place, message, remedy)
            if mapping.id in mapped:
                message = f"control `{control.id}` maps to `{shortened(mapping.id)}` twice"
                yield refuse(place, message, "remove one of them")
            mapped.add(mapping.id)


def _with_headers(framework: Framework, bundle: Bundle) -> Framework:
    """Return a framework with the mappings that headers of policies state.

    Raises:
        UsageError: a header names a control that the framework does not have, or one that maps to the policy already.
    """
    added: dict[str, list[ControlMapping]] = {}
    for policy in (*bundle.policies, *bundle.idle):
        for name, controls in policy.header.controls.items():
            for control in controls if lowered(name) == lowered(framework.id) else ():
                found = framework.control(control)
                if any(mapping.id == policy.id and mapping.is_direct for mapping in found.policies):
                    message = (
                        f"the header of `{policy.id}` maps it to `{framework.id}:{found.id}`, and so does the framework"
                    )
                    raise UsageError(message, place=(policy.file,), remedy="remove it from `controls` of the header")
                mapping = ControlMapping(id=policy.id, basis="own", relevance="direct", source=f"header of {policy.id}")
                added.setdefault(found.id, []).append(mapping)
    if not added:
        return framework
    return replace(
        framework,
        controls=tuple(
            replace(control, policies=(*control.policies, *added.get(control.id, ()))) for control in framework.controls
        ),
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
    """Return what an evaluation shows about the controls of a framework.

    Args:
        framework: with the mappings of headers.
        evaluation: of the snapshot with the bundle.
        bundle: its active policies were evaluated.
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
        """Return the active evidence for a control that covers the snapshot, and for policies on resources in it."""
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
        """Return the first status that applies, with its words."""
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
                required = "; ".join(f"`{'`, `'.join(names)}` of {identity}" for identity, names in unset.items())
                return ControlStatus.NOT_APPLICABLE, f"not configured: set {required}"
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


__all__ = [
    "DECIDED",
    "Control",
    "Framework",
    "evaluate_framework",
    "framework_of",
    "frameworks_of",
    "read_framework",
    "tested_controls",
]
