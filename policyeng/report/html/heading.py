"""The top of the HTML report in words: its name, result, scope, inputs, times and versions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from policyeng import __version__
from policyeng.later import lazy_pattern
from policyeng.models import Evaluation, Findings, Outcome, Severity
from policyeng.models.findings import Passed
from policyeng.report.context import ReportContext
from policyeng.report.phrases import count, failed, format_name, select_outcome, to_the_second

#: How many scopes or inputs are named; the others are counted.
_NAMED = 5
_SCOPE = lazy_pattern(r"/subscriptions/([^/]+)(?:/resourcegroups/([^/]+))?(/.+)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Fact:
    """A line at the top: its label, and values, each on a line of its own."""

    label: str
    values: Sequence[str]


def format_time(moment: datetime) -> str:
    """Return a time in UTC as `2026-06-01 23:59:59 UTC`."""
    return to_the_second(moment).replace("T", " ").replace("Z", " UTC")


def name_report(evaluation: Evaluation, about: ReportContext) -> str:
    """Return the name of the estate, or of the only input or resource group; empty if there are several."""
    if about.trend:
        return about.trend.estate
    files = _inputs(evaluation, about)
    if len(files) == 1:
        return files[0].replace("\\", "/").rstrip("/").rpartition("/")[2]
    scopes = _scopes(evaluation)
    match = _SCOPE.fullmatch(scopes[0]) if len(scopes) == 1 else None
    return (match[2] or match[1]) if match else ""


def list_facts(evaluation: Evaluation, about: ReportContext, profile: str | None) -> Iterator[Fact]:
    """Yield what was evaluated, when, and with what."""
    if scopes := [describe_scope(scope) for scope in _scopes(evaluation)]:
        yield Fact("Scope", _shorten(scopes, "scope"))
    if files := _inputs(evaluation, about):
        yield Fact("Input" if len(files) == 1 else "Inputs", _shorten(files, "input"))
    if evaluation.findings:
        found = Findings.of(evaluation.findings)
        checked = f"{count(len(found.resources), 'resource')} with {count(len(found.policies), 'policy')}"
        yield Fact("Evaluated", [f"{checked}, as of {format_time(evaluation.as_of)}"])
    else:
        yield Fact("Evaluated", [f"as of {format_time(evaluation.as_of)}"])
    if evaluation.snapshot.taken_at:
        yield Fact("Resources read", [format_time(evaluation.snapshot.taken_at)])
    with_profile = f", profile {profile}" if profile else ""
    yield Fact("Policies", [f"{format_name(evaluation.bundle)}{with_profile}"])
    yield Fact("Program", [f"policyeng {__version__}"])


def describe_scope(scope: str) -> str:
    """Return a scope in words: `resource group rg-ml in subscription 1111...`; any other text unchanged."""
    match = _SCOPE.fullmatch(scope)
    if match is None or match[3]:
        return scope
    subscription = f"subscription {match[1]}"
    return f"resource group {match[2]} in {subscription}" if match[2] else subscription


def describe_result(evaluation: Evaluation) -> tuple[str, str]:
    """Return the result of a run as a word and a sentence that needs no knowledge of options and exit codes."""
    summary, limit = evaluation.summary, evaluation.fail_on
    failures = summary.fail - summary.exempt
    # A report that lists only some findings lists the most severe.
    counted = sum(finding.severity.rank >= limit.rank for finding in failed(evaluation))
    others = [
        _say(failures - counted, "failure", "is less severe", "are less severe") if counted else "",
        _say(summary.exempt, "failure", "is exempt", "are exempt"),
        _say(summary.unknown, "finding", "is undecided", "are undecided"),
    ]
    if evaluation.exit_code == 0:
        known = _say(counted, "failure", "is in the baseline", "are in the baseline")
        below = f"{count(failures, 'failure')} below severity {limit}" if failures and not counted else ""
        return "Passed", _join([known or below or "no failures", *others])
    if evaluation.exit_code == 1:
        at_least = _severity(limit)
        failing = _say(counted, "failure", f"has {at_least}", f"have {at_least}") if failures else ""
        if evaluation.strict_unknown and summary.unknown:
            others[-1] += ", which counts as failing"
        unread = sum(problem.kind == "unread" for problem in evaluation.problems) if evaluation.strict_unknown else 0
        missing = _say(
            unread, "input", "was not read, which counts as failing", "were not read, which counts as failing"
        )
        return "Failed", _join([failing, *others, missing])
    return "Undecided", _join([_undecided(evaluation), _say(failures, "failure", "was found", "were found")])


def _undecided(evaluation: Evaluation) -> str:
    errors = len(select_outcome(evaluation, Outcome.ERROR))
    problems = sum(problem.level == "error" for problem in evaluation.problems)
    words = [count(number, noun) for number, noun in ((errors, "policy error"), (problems, "problem")) if number]
    reason = " and ".join(words)
    if not evaluation.findings:
        return f"no resources were evaluated{f' ({reason})' if reason else ''}"
    return f"{reason} kept the evaluation from completing" if reason else "the evaluation did not complete"


def _severity(limit: Severity) -> str:
    if limit is Severity.INFO:
        return "a severity that fails the check"
    return f"severity {limit}" if limit is Severity.CRITICAL else f"severity {limit} or higher"


def _say(number: int, noun: str, one: str, many: str) -> str:
    if not number:
        return ""
    return f"{count(number, noun)} {one if number == 1 else many}"


def _join(parts: Sequence[str]) -> str:
    return "; ".join(filter(None, parts)) + "."


def _scopes(evaluation: Evaluation) -> list[str]:
    return [scope for scope in evaluation.snapshot.scope.split(", ") if scope]


def _inputs(evaluation: Evaluation, about: ReportContext) -> list[str]:
    if about.inputs:
        return list(about.inputs)
    entries = Findings.of(evaluation.findings).entries
    places = ((entry.subject if isinstance(entry, Passed) else entry).location for entry in entries)
    return sorted({place.file for place in places if place.file})


def _shorten(names: Sequence[str], noun: str) -> Sequence[str]:
    left = len(names) - _NAMED
    return names if left <= 1 else [*names[:_NAMED], f"and {count(left, f'more {noun}')}"]
