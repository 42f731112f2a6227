"""Case runs as JUnit XML: a suite per policy, a test case per case."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable
from itertools import groupby

from policyeng.verify.case_runs import CaseRun
from policyeng.verify.report_parts import junit_text


def render(runs: Iterable[CaseRun]) -> str:
    """The runs, which stand in the order of their policies, as one JUnit document."""
    root = ET.Element("testsuites", name="policyeng test")
    for policy, group in groupby(runs, key=lambda run: run.policy):
        cases = list(group)
        failures = sum(bool(run.reason) for run in cases)
        suite = ET.SubElement(root, "testsuite", name=policy, tests=str(len(cases)), failures=str(failures))
        for run in cases:
            case = ET.SubElement(suite, "testcase", classname=policy, name=f"{run.expected}: {run.name}")
            if run.reason:
                ET.SubElement(case, "failure", message=run.reason)
    return junit_text(root)
