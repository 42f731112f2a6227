"""The JUnit XML report: a suite per area, and a test case per finding with a name that is stable between runs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from policyeng.models import Evaluation, Finding, Outcome, Problem
from policyeng.report.context import settings_text
from policyeng.report.escaping import visible
from policyeng.report.locations import find_location, place, reasons
from policyeng.report.phrases import denials, exemption_sentence, expiry, rfc3339, unknown_sentence, unknowns

_PROBLEMS = "policyeng.problems"
_NUMBER = re.compile(r"(?:[-_.]|(?<!\d))\d++$")


def render(evaluation: Evaluation, *, profile: str | None = None) -> str:
    """Return the suites, each with the digests, the time, the engine and the profile as properties.

    Exempt failures and unknown findings are skipped with the reason; error findings are errors. A problem of the run is
    a test case in `policyeng.problems`: an error, or skipped if it is a warning. A test case has the `file` and `line`
    of the first field in its finding.
    """
    properties = _properties(evaluation) | ({"profile": profile} if profile else {})
    root = Element("testsuites", name="policyeng")
    for area, findings in _areas(evaluation.findings).items():
        suite = _render_suite(root, area, properties)
        for finding in findings:
            _case(suite, finding)
    if evaluation.problems:
        suite = _render_suite(root, _PROBLEMS, properties)
        for name, problem in _numbered_problems(evaluation.problems):
            _problem_case(suite, name, problem)
    for element in (*root, root):
        _count(element)
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _areas(findings: Sequence[Finding]) -> dict[str, list[Finding]]:
    areas: dict[str, list[Finding]] = {}
    for finding in findings:
        areas.setdefault(_NUMBER.sub("", finding.policy) or finding.policy, []).append(finding)
    return areas


def _properties(evaluation: Evaluation) -> dict[str, str]:
    taken_at, settings = evaluation.snapshot.taken_at, settings_text(evaluation.settings)
    return {
        "bundle": f"{evaluation.bundle.name} {evaluation.bundle.revision}",
        "bundleDigest": evaluation.bundle.digest,
        "snapshotScope": evaluation.snapshot.scope,
        "snapshotTakenAt": rfc3339(taken_at) if taken_at else "",
        "snapshotDigest": evaluation.snapshot.digest,
        "asOf": rfc3339(evaluation.as_of),
        "engine": f"{evaluation.engine.name} {evaluation.engine.version}",
        "exitCode": str(evaluation.exit_code),
    } | ({"settings": settings} if settings else {})


def _render_suite(root: Element, name: str, properties: dict[str, str]) -> Element:
    suite = SubElement(root, "testsuite", name=visible(name))
    listed = SubElement(suite, "properties")
    for key, value in properties.items():
        SubElement(listed, "property", name=key, value=visible(value))
    return suite


def _case(suite: Element, finding: Finding) -> None:
    case = SubElement(suite, "testcase", classname=visible(finding.policy), name=visible(finding.resource))
    at = find_location(finding)
    if at.file:
        case.attrib |= {"file": visible(at.file), "line": str(at.line)}
    unknown_text = "; ".join(unknown_sentence(unknown) for unknown in unknowns(finding))
    if finding.exemption is not None:
        mark = finding.exemption
        message = visible(f"exempt: {mark.reason} {expiry(mark)}")
        SubElement(case, "skipped", message=message).text = _body(finding)
    elif finding.outcome is Outcome.FAIL:
        message = "; ".join(visible(denial.msg) for denial in denials(finding))
        SubElement(case, "failure", type=finding.severity, message=message).text = _body(finding)
    elif finding.outcome is Outcome.UNKNOWN:
        SubElement(case, "skipped", message=f"unknown: {unknown_text}").text = _body(finding)
    elif finding.outcome is Outcome.ERROR:
        SubElement(case, "error", type="error", message=unknown_text).text = _body(finding)


def _body(finding: Finding) -> str:
    return "\n".join(filter(None, _body_lines(finding)))


def _body_lines(finding: Finding) -> Iterator[str]:
    yield visible(f"{finding.title} ({finding.severity})")
    yield from reasons(finding, finding.location)
    yield exemption_sentence(finding.exemption) if finding.exemption else ""
    yield visible(f"source: {finding.source}") if finding.source else ""
    yield visible(f"fix: {finding.remediation}") if finding.remediation and finding.outcome is Outcome.FAIL else ""
    yield f"location: {place(finding.location)}" if finding.location.file else ""


def _numbered_problems(problems: Sequence[Problem]) -> Iterator[tuple[str, Problem]]:
    """Yield each problem with a unique name: its place, and a number from the second problem at that place."""
    seen: Counter[str] = Counter()
    for problem in problems:
        name = problem.place or "run"
        seen[name] += 1
        yield (name if seen[name] == 1 else f"{name} ({seen[name]})"), problem


def _problem_case(suite: Element, name: str, problem: Problem) -> None:
    case = SubElement(suite, "testcase", classname=_PROBLEMS, name=visible(name))
    if problem.level == "error":
        SubElement(case, "error", type="problem", message=visible(problem.message))
    else:
        SubElement(case, "skipped", message=visible(f"warning: {problem.message}"))


def _count(element: Element) -> None:
    element.set("tests", str(sum(1 for _ in element.iter("testcase"))))
    for plural, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(plural, str(sum(1 for _ in element.iter(tag))))
