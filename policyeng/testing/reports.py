"""Reports of `policyeng test` as JUnit XML, and the parts that all reports of `test` and `verify` share."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable
from itertools import groupby

from policyeng.bundle import Bundle
from policyeng.models import JsonObject
from policyeng.report.escaping import visible
from policyeng.testing.rego_tests import UnitTest
from policyeng.testing.runner import CaseRun


def text_of_lines(lines: Iterable[str]) -> str:
    """Join lines into a text in which control characters are escaped; tabs stay, because quoted sources have them."""
    return "\n".join(visible(line, keep="\t") for line in lines)


def bundle_object(bundle: Bundle) -> JsonObject:
    """Return the name, revision and digest of a bundle for JSON."""
    return {"name": bundle.name, "revision": bundle.revision, "digest": bundle.digest}


def junit_text(root: ET.Element) -> str:
    """Return JUnit XML without a final newline; characters that XML cannot contain are escaped."""
    for element in root.iter():
        for name, value in element.items():
            element.set(name, visible(value))
        element.text = visible(element.text, keep="\n\t") if element.text else None
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}'


_ELEMENTS = {"failed": "failure", "error": "error", "skipped": "skipped"}


def render(runs: Iterable[CaseRun], tests: Iterable[UnitTest] = ()) -> str:
    """Return the runs, sorted by policy, and the unit tests, sorted by package, as one document."""
    root = ET.Element("testsuites", name="policyeng test")
    for policy, group in groupby(runs, key=lambda run: run.policy):
        cases = list(group)
        failures = sum(bool(run.reason) for run in cases)
        suite = ET.SubElement(root, "testsuite", name=policy, tests=str(len(cases)), failures=str(failures))
        for run in cases:
            case = ET.SubElement(suite, "testcase", classname=policy, name=f"{run.expected}: {run.name}")
            if run.reason:
                case.attrib |= {"file": run.file, "line": str(run.line)}
                ET.SubElement(case, "failure", message=run.reason)
    for package, package_tests in groupby(tests, key=lambda test: test.package):
        members = list(package_tests)
        counts = {
            name: str(sum(test.outcome == outcome for test in members))
            for name, outcome in (("failures", "failed"), ("errors", "error"), ("skipped", "skipped"))
        }
        suite = ET.SubElement(root, "testsuite", {"name": package, "tests": str(len(members)), **counts})
        for test in members:
            case = ET.SubElement(
                suite, "testcase", classname=package, name=test.name, file=test.file, line=str(test.line)
            )
            if test.outcome in _ELEMENTS:
                ET.SubElement(case, _ELEMENTS[test.outcome], message=test.reason)
    return junit_text(root)
