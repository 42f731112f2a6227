"""The JUnit XML report: a suite per area, and a test case per finding with a name that is stable between runs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from policyeng.models import Evaluation, Finding, Outcome, Problem
from policyeng.report.escaping import visible
from policyeng.report.locations import find_location, place, reasons
from policyeng.report.phrases import (
    denials,
    exemption_sentence,
    expiry,
    rfc3339,
    settings_text,
    unknown_sentence,
    unknowns,
)

_PROBLEMS = "policyeng.problems"
#: The elements of results, by the attribute that counts them.
_RESULTS = {"failures": "failure", "errors": "error", "skipped": "skipped"}
_NUMBER = re.compile(r"(?:[-_.]|(?<!\d))\d++$")


def render(evaluation: Evaluation, *, profile: str | None = None) -> str:
    """Return the suites, each with the digests, the time, the engine and the profile as properties.

    Exempt failures and unknown findings are skipped with the reason; error findings are errors. A problem of the run is
    a test case in `policyeng.problems`: an error, or skipped if it is a warning; so is a relevant entry of the ledger.
    A test case has the `file` and `line` of the first field in its finding.
    """
    properties = _properties(evaluation) | ({"profile": profile} if profile else {})
    root = Element("testsuites", name="policyeng")
    for area, findings in _areas(evaluation.findings).items():
        suite = _render_suite(root, area, properties)
        for finding in findings:
            _case(suite, finding)
    if evaluation.remarks:
        suite = _render_suite(root, _PROBLEMS, properties)
        for name, problem in _numbered_problems(evaluation.remarks):
            if problem.level == "error":
                add_case(suite, _PROBLEMS, name, "error problem", problem.message)
            else:
                add_case(suite, _PROBLEMS, name, "skipped", f"warning: {problem.message}")
    for element in (*root, root):
        set_counts(element, *_RESULTS)
    return f"{junit_text(root)}\n"


def junit_text(root: Element) -> str:
    """Return JUnit XML without a final newline; characters that XML cannot contain are escaped."""
    for element in root.iter():
        for name, value in element.items():
            element.set(name, visible(value))
        element.text = visible(element.text, keep="\n\t") if element.text else None
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}'


def add_case(
    suite: Element, group: str, name: str, result: str = "", message: str = "", text: str = "", **attributes: str
) -> Element:
    """Add a test case to a suite, and return it.

    `result` is `failure`, `error` or `skipped`, optionally followed by its type; it is empty for a test that passes.
    """
    case = SubElement(suite, "testcase", {"classname": group, "name": name, **attributes})
    tag, _, kind = result.partition(" ")
    if tag:
        named = {"type": kind} if kind else {}
        SubElement(case, tag, {**named, "message": message}).text = text
    return case


def set_counts(element: Element, *names: str) -> None:
    """Set the number of test cases in a suite, and those of `failures`, `errors` or `skipped`."""
    element.set("tests", str(sum(1 for _ in element.iter("testcase"))))
    for name in names:
        element.set(name, str(sum(1 for _ in element.iter(_RESULTS[name]))))


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
    suite = SubElement(root, "testsuite", name=name)
    listed = SubElement(suite, "properties")
    for key, value in properties.items():
        SubElement(listed, "property", name=key, value=value)
    return suite


def _case(suite: Element, finding: Finding) -> None:
    at, mark = find_location(finding), finding.exemption
    undecided = "; ".join(map(unknown_sentence, unknowns(finding)))
    result, message = {
        Outcome.PASS: ("", ""),
        Outcome.FAIL: (f"failure {finding.severity}", "; ".join(visible(denial.msg) for denial in denials(finding))),
        Outcome.UNKNOWN: ("skipped", f"unknown: {undecided}"),
        Outcome.ERROR: ("error error", undecided),
    }[finding.outcome]
    if mark is not None:
        result, message = "skipped", f"exempt: {mark.reason} {expiry(mark)}"
    place = {"file": at.file, "line": str(at.line)} if at.file else {}
    add_case(suite, finding.policy, finding.resource, result, message, _body(finding), **place)


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
