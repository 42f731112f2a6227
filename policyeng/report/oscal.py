"""The OSCAL report: assessment results in version 1.1.2 of NIST's Open Security Controls Assessment Language.

Each framework has a result. Its findings are about an objective of ours for each control, which is what policies
check of the control; that it is satisfied does not mean that the control is. Without frameworks there are only
observations. Identifiers follow from the content, so the same evaluation gives the same bytes.

Source: pages.nist.gov/OSCAL, "Assessment Results Model v1.1.2 JSON Format Reference".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from uuid import NAMESPACE_URL, uuid5

import orjson

from policyeng import __version__
from policyeng.models import ControlResult, ControlStatus, Evaluation, Finding, FrameworkResult, JsonObject, Outcome
from policyeng.report.escaping import visible
from policyeng.report.frameworks import direct_policies, outcome_of
from policyeng.report.phrases import exemption_sentence, rfc3339, settings_text

VERSION = "1.1.2"
_NAMESPACE = "urn:policyeng:oscal"
#: The statuses that are findings: those of controls about which policies found something.
_STATES: Mapping[ControlStatus, tuple[str, str]] = {
    ControlStatus.PASSING: ("satisfied", "pass"),
    ControlStatus.FAILING: ("not-satisfied", "fail"),
    ControlStatus.ERROR: ("not-satisfied", "other"),
    ControlStatus.UNDECIDED: ("not-satisfied", "other"),
    ControlStatus.ACCEPTED: ("not-satisfied", "other"),
}


def render(evaluation: Evaluation) -> str:
    """Return the assessment results as JSON."""
    seed = "\n".join((evaluation.bundle.digest, evaluation.snapshot.digest, rfc3339(evaluation.as_of)))
    results = [_result(evaluation, one, f"{seed}\n{one.id}") for one in evaluation.frameworks]
    settings = settings_text(evaluation.settings)
    document = {
        "assessment-results": {
            "uuid": _uuid(seed),
            "metadata": {
                "title": "policyeng assessment results",
                "last-modified": rfc3339(evaluation.as_of),
                "version": _line(evaluation.bundle.digest[:12]),
                "oscal-version": VERSION,
                **({"props": [_prop("settings", _line(settings))]} if settings else {}),
            },
            "import-ap": {"href": "#", "remarks": "The policies of the bundle are the plan."},
            "results": results or [_result(evaluation, None, seed)],
        }
    }
    return visible(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode(), keep="\n") + "\n"


def _result(evaluation: Evaluation, framework: FrameworkResult | None, seed: str) -> JsonObject:
    controls = framework.controls if framework else ()
    policies = {policy for control in controls for policy in direct_policies(control)}
    by_policy: dict[str, list[Finding]] = {}
    for finding in evaluation.findings:
        if framework is None or finding.policy in policies:
            by_policy.setdefault(finding.policy, []).append(finding)
    listed = {one.resource for found in by_policy.values() for one in found if one.outcome is not Outcome.PASS}
    observations = [_observation(evaluation, policy, found, seed) for policy, found in sorted(by_policy.items())]
    evidence = {entry.id: entry for control in controls for entry in control.evidence}
    observations += [
        {
            "uuid": _uuid(f"{seed}\nevidence\n{identity}"),
            "title": _line(f"Evidence {identity}"),
            "description": _line(f"{entry.statement} Given by {entry.given_by}, not checked."),
            "methods": ["EXAMINE"],
            "collected": rfc3339(entry.given_at),
            "expires": rfc3339(entry.expires_at),
        }
        for identity, entry in sorted(evidence.items())
    ]
    selection: JsonObject = {"include-all": {}}
    if framework:
        selection = {"include-controls": [{"control-id": token_of(control.id)} for control in controls]}
    title = f"{framework.title}, version {framework.version}" if framework else "All policies"
    result: JsonObject = {
        "uuid": _uuid(f"{seed}\nresult"),
        "title": _line(title),
        "description": _line(
            f"Evaluation of {evaluation.snapshot.scope or 'a snapshot'} with policyeng {__version__}."
        ),
        "start": rfc3339(evaluation.as_of),
        "end": rfc3339(evaluation.as_of),
        "reviewed-controls": {"control-selections": [selection]},
    }
    if listed:
        items = [{"uuid": _subject(one), "description": _line(one)} for one in sorted(listed)]
        result["local-definitions"] = {"inventory-items": items}
    if observations:
        result["observations"] = observations
    if findings := list(_findings(controls, by_policy, seed)):
        result["findings"] = findings
    if framework and framework.disclaimer:
        result["remarks"] = _line(framework.disclaimer)
    return result


def _observation(evaluation: Evaluation, policy: str, findings: Iterable[Finding], seed: str) -> JsonObject:
    found = list(findings)
    counts = {name: sum(outcome_of(one) == name for one in found) for name in (*Outcome, "exempt")}
    observation: JsonObject = {
        "uuid": _uuid(f"{seed}\n{policy}"),
        "title": _line(policy),
        "description": _line(found[0].title or policy),
        "props": [_prop(f"findings-{name}", str(number)) for name, number in counts.items() if number],
        "methods": ["TEST-AUTOMATED"],
        "types": ["finding"],
        "collected": rfc3339(evaluation.as_of),
    }
    subjects = [
        {
            "subject-uuid": _subject(one.resource),
            "type": "inventory-item",
            "title": _line(one.resource),
            "props": [_prop("outcome", outcome_of(one)), _prop("severity", str(one.severity))],
            **({"remarks": _line(exemption_sentence(one.exemption))} if one.exemption else {}),
        }
        for one in found
        if one.outcome is not Outcome.PASS
    ]
    return {**observation, "subjects": subjects} if subjects else observation


def _findings(
    controls: Iterable[ControlResult], by_policy: Mapping[str, list[Finding]], seed: str
) -> Iterator[JsonObject]:
    for control in controls:
        if control.status not in _STATES:
            continue
        state, reason = _STATES[control.status]
        related = [_uuid(f"{seed}\n{policy}") for policy in direct_policies(control) if policy in by_policy]
        yield {
            "uuid": _uuid(f"{seed}\ncontrol\n{control.id}"),
            "title": _line(f"{control.id} {control.title}"),
            "description": _line(control.words),
            "props": [_prop("status", str(control.status))],
            "target": {
                "type": "objective-id",
                "target-id": f"{token_of(control.id)}_checked-by-policies",
                "description": "What policies check of the control; the control asks for more.",
                "status": {"state": state, "reason": reason},
            },
            "related-observations": [{"observation-uuid": one} for one in related],
        }


def token_of(control: str) -> str:
    """Return a control id as a token of OSCAL, as its catalogues write them: `AC-2(1)` is `ac-2.1`."""
    token = re.sub(r"[^a-z0-9.-]+", ".", control.lower()).strip(".")
    return token if token[:1].isalpha() else f"_{token}"


def _prop(name: str, value: str) -> JsonObject:
    return {"name": name, "ns": _NAMESPACE, "value": value}


def _subject(resource: str) -> str:
    return _uuid(f"resource\n{resource.lower()}")


def _uuid(name: str) -> str:
    return str(uuid5(NAMESPACE_URL, f"{_NAMESPACE}\n{name}"))


def _line(text: str) -> str:
    """Return a text on one line without blanks at its ends, as OSCAL wants them; a hyphen for an empty one."""
    return " ".join(visible(text).split()) or "-"
