"""Reports of `policyeng test` as JUnit XML, and the parts that all reports of `test` and `verify` share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from xml.etree.ElementTree import Element, SubElement

from policyeng.bundle import Bundle
from policyeng.models import JsonObject
from policyeng.report.escaping import visible
from policyeng.report.junit import add_case, junit_text, set_counts
from policyeng.testing.failing_expressions import FailingExpression
from policyeng.testing.rego_tests import UnitTest
from policyeng.testing.runner import CaseRun


def text_of_lines(lines: Iterable[str]) -> str:
    """Join lines into a text in which control characters are escaped; tabs stay, because quoted sources have them."""
    return "\n".join(visible(line, keep="\t") for line in lines)


def bundle_object(bundle: Bundle) -> JsonObject:
    """Return the name, revision and digest of a bundle for JSON."""
    return {"name": bundle.name, "revision": bundle.revision, "digest": bundle.digest}


def lines_of_expression(expression: FailingExpression | None) -> list[str]:
    """Return the lines that show where a test fails, and with which values."""
    if expression is None:
        return []
    values = (f"  {text}: {value}" for text, value in expression.values.items())
    return [f"{expression.file}:{expression.line}: {expression.text}", *values]


def _results(test: UnitTest) -> Iterator[tuple[str, str, str]]:
    """Yield the name, the outcome and the reason of each case of a test, or of the test itself."""
    for case in test.cases:
        yield f"{test.name}[{case.name}]", case.outcome, "\n".join(lines_of_expression(case.expression))
    if not test.cases:
        yield test.name, test.outcome, "\n".join(filter(None, [test.reason, *lines_of_expression(test.expression)]))


_ELEMENTS = {"failed": "failure", "error": "error", "skipped": "skipped"}


def render(runs: Iterable[CaseRun], tests: Iterable[UnitTest] = ()) -> str:
    """Return the runs, sorted by policy, and the unit tests, sorted by package, as one document."""
    root = Element("testsuites", name="policyeng test")
    for policy, cases in groupby(runs, key=lambda run: run.policy):
        suite = SubElement(root, "testsuite", name=policy)
        for run in cases:
            result, place = ("failure", {"file": run.file, "line": str(run.line)}) if run.reason else ("", {})
            add_case(suite, policy, f"{run.expected}: {run.name}", result, run.reason, **place)
        set_counts(suite, "failures")
    for package, members in groupby(tests, key=lambda test: test.package):
        suite = SubElement(root, "testsuite", name=package)
        for test in members:
            place = {"file": test.file, "line": str(test.line)}
            for name, outcome, reason in _results(test):
                add_case(suite, package, name, _ELEMENTS.get(outcome, ""), reason, **place)
        set_counts(suite, "failures", "errors", "skipped")
    return junit_text(root)
