"""Case runs and Rego unit tests as JUnit XML: a suite per policy and package, a test case per case and test."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable
from itertools import groupby

from policyeng.testing.rego_tests import UnitTest
from policyeng.testing.report_parts import junit_text
from policyeng.testing.runner import CaseRun

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
