"""Phrases shared by several reports: reasons, exemptions, counts and the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Literal

from policyeng.models import (
    AppliedSettings,
    BundleRef,
    Denial,
    EngineRef,
    Evaluation,
    ExemptionMark,
    Finding,
    LedgerEntry,
    Outcome,
    Problem,
    SettingChange,
    Severity,
    Unknown,
    relevant_entries,
)
from policyeng.report.escaping import compact, visible

Level = Literal["error", "warning", "note"]

_NO_REASON = "no reason given"
#: The order of outcomes of one severity.
_OUTCOMES = {Outcome.FAIL: 0, Outcome.ERROR: 1, Outcome.UNKNOWN: 2, Outcome.PASS: 3}
#: Keys of values that are numbers of something.
_UNITS = frozenset({"days", "hours", "minutes", "seconds", "nodes"})
#: Names of fields that do not show what they are the field of.
_COMMON = frozenset({"id", "name", "type"})
#: Floating-point numbers below are exact where they are whole.
_EXACT = 2**53


def level(severity: Severity) -> Level:
    """Map a severity to the three levels of code hosts: high and above, medium and low, info."""
    if severity.rank >= Severity.HIGH.rank:
        return "error"
    return "warning" if severity.rank >= Severity.LOW.rank else "note"


def in_utc(moment: datetime) -> datetime:
    """Convert a time to UTC; one at the limit of the calendar that UTC cannot express stays unchanged."""
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return moment


def rfc3339(moment: datetime) -> str:
    """Return a time as RFC 3339 text in UTC with `Z`."""
    return in_utc(moment).isoformat().replace("+00:00", "Z")


def to_the_second(moment: datetime) -> str:
    """Return a time as RFC 3339 text in UTC without fractions of a second."""
    return rfc3339(moment.replace(microsecond=0))


def count(number: int, noun: str) -> str:
    """Return a number with its noun: `1 failure`, `2 failures`, `2 policies`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun[:-1]}ies" if noun.endswith(("cy", "ty")) else f"{number} {noun}s"


def format_name(reference: BundleRef | EngineRef) -> str:
    """Return the name of a bundle with its revision, or of an engine with its version."""
    number = reference.revision if isinstance(reference, BundleRef) else reference.version
    return f"{reference.name} {number}".rstrip()


def shorten_id(resource: str) -> str:
    """Return the names in an ARM id after its last provider (`ws/cluster`), or any other id unchanged."""
    _, provider, rest = resource.rpartition("/providers/")
    names = rest.split("/")[2::2]
    return visible("/".join(names) if provider and all(names) and names else resource)


def denials(finding: Finding) -> Sequence[Denial]:
    """Return the reasons of a failed finding; at least one."""
    return finding.denials or (Denial(msg=_NO_REASON),)


def unknowns(finding: Finding) -> Sequence[Unknown]:
    """Return the reasons of an unknown or error finding, or the undecided parts of a failed one."""
    if finding.unknowns or finding.outcome in (Outcome.PASS, Outcome.FAIL):
        return finding.unknowns
    return (Unknown(msg=_NO_REASON),)


def has_values(denial: Denial) -> bool:
    """Check whether a denial has an actual or an expected value."""
    return denial.actual is not None or denial.expected is not None


def split_reason(denial: Denial) -> tuple[object, str]:
    """Return the actual value of a denial without `because`, and `because`: why the policy applies to the resource.

    Policies for regulated work or for a stage set `because` in `actual`; otherwise it is empty.
    """
    actual = denial.actual
    because = actual.get("because") if isinstance(actual, dict) else None
    if not isinstance(because, str) or not isinstance(actual, dict):
        return actual, ""
    return {key: value for key, value in actual.items() if key != "because"}, because


def denial_sentence(denial: Denial, field: str = "") -> str:
    """Return a denial on one line: ``message: /path is actual, expected value, because reason``.

    `field` is the name of the field in the format of the input; it comes before the path.
    """
    if not has_values(denial):
        return unknown_sentence(Unknown(msg=denial.msg, path=denial.path))
    path = format_path(denial.path)
    subject = f"{visible(field)} ({path}) is" if field else f"{path} is" if path else "found"
    actual, because = split_reason(denial)
    expected = f", expected {describe_value(denial.expected)}" if denial.expected is not None else ""
    reason = f", because {visible(because)}" if because else ""
    return f"{visible(denial.msg)}: {subject} {describe_found(actual)}{expected}{reason}"


def describe_value(value: object) -> str:
    """Return a value of a denial as prose: `not set` for null, `at most 0` for `{"at most": 0}`, lists with commas."""
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return visible(value) if value.strip() else "empty"
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return str(int(value))
    if value == {}:
        return "none"
    if isinstance(value, dict):
        members = sorted(value.items(), key=lambda member: isinstance(member[1], list | tuple | dict))
        return ", ".join(_describe_member(str(key), inner) for key, inner in members)
    if isinstance(value, list | tuple) and not any(isinstance(inner, list | tuple | dict) for inner in value):
        return ", ".join(map(describe_value, value)) or "none"
    return compact(value)


def describe_found(actual: object) -> str:
    """Return the actual value of a denial as prose; the name of an only member is left out unless it is not set."""
    if isinstance(actual, dict) and len(actual) == 1:
        (inner,) = actual.values()
        return describe_value(actual if inner is None else inner)
    return describe_value(actual)


def _describe_member(key: str, value: object) -> str:
    if key in _UNITS and isinstance(value, int | float):
        return count(value, key[:-1]) if isinstance(value, int) else f"{describe_value(value)} {key}"
    shown = f"({describe_value(value)})" if isinstance(value, dict) and value else describe_value(value)
    return f"{visible(key)} {shown}"


def describe_denial(denial: Denial, field: str = "", *, short: bool = False) -> str:
    """Return a denial as prose: `found Standard_E8s_v3, expected an isolated size`.

    Args:
        denial: the denial; one without values gives its message.
        field: the name of the field in the format of the input; by default the last part of the path, and only where
            the field is not set.
        short: resources have their short names, and why the policy applies is left out.
    """
    if not has_values(denial):
        return visible(denial.msg)
    actual, because = split_reason(denial)
    name = visible(field) or _name_field(denial.path)
    if isinstance(actual, dict) and len(actual) == 1:
        (key, inner), *_ = actual.items()
        actual = inner
        name = name if field else visible(str(key))
    label = f"{visible(field)}: " if field else ""
    if denial.expected is None:
        label = f"{visible(denial.msg)}: {label}"
    if short and isinstance(actual, str):
        actual = shorten_id(actual)
    found = f"{name} not set".lstrip() if actual is None else f"{label}found {describe_value(actual)}"
    expected = f", expected {describe_value(denial.expected)}" if denial.expected is not None else ""
    reason = f", because {visible(because)}" if because and not short else ""
    return f"{found}{expected}{reason}"


def _name_field(path: str) -> str:
    """Return the last part of a path, with the part before it if it is a word that many objects have."""
    *above, last = path.rstrip(":").split("/")
    parts = [*above[-1:], last] if last in _COMMON and any(above) else [last]
    return visible(".".join(part.replace("~1", "/").replace("~0", "~") for part in parts))


def format_path(path: str) -> str:
    """Return a path for display; for a complete scope, its id."""
    return visible(path.removesuffix(":"))


def unknown_sentence(unknown: Unknown) -> str:
    """Return the reason of an unknown on one line: ``message: /path``."""
    return visible(unknown.msg) + (f": {format_path(unknown.path)}" if unknown.path else "")


def problem_sentence(problem: Problem) -> str:
    """Return a problem on one line: ``place: message``."""
    return visible(f"{problem.place}: {problem.message}" if problem.place else problem.message)


def ledger_entry_sentence(entry: LedgerEntry) -> str:
    """Return an entry of the ledger on one line: ``place: reason``."""
    return visible(f"{entry.place}: {entry.reason}" if entry.place else entry.reason)


def ledger_sentence(ledger: Sequence[LedgerEntry]) -> str:
    """Return how much was not read, on one line, with the first relevant entry; empty if everything was read."""
    if not ledger:
        return ""
    relevant, were = relevant_entries(ledger), "was" if len(ledger) == 1 else "were"
    shown = f": {ledger_entry_sentence(relevant[0])}" if relevant else ""
    could = f"{len(relevant) or 'none'} could hold or change Machine Learning resources"
    return f"{count(len(ledger), 'part')} of the inputs {were} not read; {could}{shown}"


def subjects_title(title: str, findings: Iterable[Finding]) -> str:
    """Return the title of a list of findings with its counts: `Denied (3 on 2 resources)`."""
    resources = [finding.resource for finding in findings]
    return f"{title} ({len(resources)} on {count(len(set(resources)), 'resource')})"


def expiry(mark: ExemptionMark) -> str:
    """Return the expiry date of an exemption in UTC (`until DATE`), or `without expiry`."""
    return f"until {in_utc(mark.expires_at).date().isoformat()}" if mark.expires_at else "without expiry"


def exemption_sentence(mark: ExemptionMark) -> str:
    """Return ``exempt until DATE by OWNER: reason``, or for an `exception` rule ``exempt by rule RULE: reason``."""
    if mark.category == "exception":
        return visible(f"exempt by rule {mark.id}: {mark.reason}")
    return visible(f"exempt {expiry(mark)} by {mark.owner}: {mark.reason}")


def by_resource(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Group findings by resource: those with the most severe finding first, then those with the most findings."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for finding in worst_first(findings):
        at = finding.location
        groups.setdefault((finding.resource, finding.resource_type, at.file, at.line, at.column), []).append(finding)
    return sorted(groups.values(), key=lambda members: (-worst_rank(members), -len(members)))


def worst_rank(findings: Iterable[Finding]) -> int:
    """Return the rank of the most severe finding without an exemption; -1 if there is none."""
    return max((finding.severity.rank for finding in findings if finding.exemption is None), default=-1)


def by_policy(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Group findings by policy: the most severe first, then those with the most findings."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        key = (finding.policy, finding.title, finding.severity, finding.remediation, finding.source)
        groups.setdefault(key, []).append(finding)
    return sorted(groups.values(), key=lambda members: (-members[0].severity.rank, -len(members)))


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings by severity and then by the number of findings of their policy, exempt ones last."""
    findings = list(findings)
    counts = Counter(finding.policy for finding in findings if finding.exemption is None)
    return sorted(
        findings,
        key=lambda finding: (
            finding.exemption is not None,
            -finding.severity.rank,
            _OUTCOMES[finding.outcome],
            -counts[finding.policy],
            finding.policy,
        ),
    )


def failed(evaluation: Evaluation) -> list[Finding]:
    """Return the failures without an exemption."""
    return [f for f in evaluation.others if f.outcome is Outcome.FAIL and f.exemption is None]


def exempt(evaluation: Evaluation) -> list[Finding]:
    """Return the failures with an exemption."""
    return [f for f in evaluation.others if f.outcome is Outcome.FAIL and f.exemption is not None]


def select_outcome(evaluation: Evaluation, outcome: Outcome) -> list[Finding]:
    """Return the findings with an outcome."""
    findings = evaluation.findings if outcome is Outcome.PASS else evaluation.others
    return [finding for finding in findings if finding.outcome is outcome]


def describe_counts(evaluation: Evaluation) -> str:
    """Return the counts of findings that do not pass (`2 failures, 1 exempt, 1 unknown, 1 error, 1 problem`)."""
    # The summary counts all findings; a report on many parts may list only some of them.
    summary, problems = evaluation.summary, len(evaluation.problems)
    failures, exempted, unknown, error = summary.fail - summary.exempt, summary.exempt, summary.unknown, summary.error
    parts = (
        count(failures, "failure") if failures else "",
        f"{exempted} exempt" if exempted else "",
        f"{unknown} unknown" if unknown else "",
        count(error, "error") if error else "",
        count(problems, "problem") if problems else "",
    )
    words = ", ".join(filter(None, parts))
    if words or evaluation.findings:
        return words or f"all {count(summary.pass_, 'finding')} pass"
    return "no resources evaluated"


def describe_exit_code(evaluation: Evaluation) -> str:
    """Return the result of a run with its reason: `FAILED: 1 failure (>= low), 4 unknown`."""
    summary = evaluation.summary
    # The summary counts all findings. A report that lists only some of them lists the most severe.
    failures, limit = summary.fail - summary.exempt, evaluation.fail_on
    counted = sum(finding.severity.rank >= limit.rank for finding in failed(evaluation))
    unknown = f"{summary.unknown} unknown" if summary.unknown else ""
    exempted = f"{summary.exempt} exempt" if summary.exempt else ""
    if evaluation.exit_code == 0:
        known = f"{count(counted, 'failure')} in the baseline" if counted else ""
        below = f"{count(failures - counted, 'failure')} below --fail-on {limit}" if failures > counted else ""
        parts = [known or below or "no failures", below if known else "", exempted, unknown]
        return f"PASSED: {', '.join(filter(None, parts))}"
    if evaluation.exit_code == 1:
        failing = f"{count(counted, 'failure')} (>= {limit})" if counted else ""
        below = f"{failures - counted} below" if failures > counted else ""
        strict = " (--strict-unknown)" if evaluation.strict_unknown else ""
        unread = len(relevant_entries(evaluation.ledger)) if strict else 0
        if not failing and below:
            below = f"{count(failures, 'failure')} below {limit}"
        parts = [failing, below, exempted, unknown and unknown + strict]
        parts += [f"{count(unread, 'unread part')} of the inputs{strict}"] if unread else []
        return f"FAILED: {', '.join(filter(None, parts))}"
    also = f"; also {count(failures, 'failure')}" if failures else ""
    return f"UNDECIDED: {', '.join(_undecided(evaluation))}{also}"


def _undecided(evaluation: Evaluation) -> list[str]:
    errors = len(select_outcome(evaluation, Outcome.ERROR))
    problems = sum(problem.level == "error" for problem in evaluation.problems)
    words = [count(number, noun) for number, noun in ((errors, "policy error"), (problems, "problem")) if number]
    if not evaluation.findings:
        words.append("no resources evaluated")
    return words or ["the run did not complete"]


#: The longest value shown, in characters; the JSON report has the complete value.
_LONGEST_SETTING = 100


def settings_text(settings: AppliedSettings) -> str:
    """Return the configuration file and the environment variables with their settings, on one line; empty without any.

    Flags are omitted: they are visible on the command line.
    """
    return visible("; ".join(_sources(settings)))


def _sources(settings: AppliedSettings) -> Iterator[str]:
    if settings.file:
        changes = [change for change in settings.changes if not change.origin.startswith(("environment ", "flag "))]
        yield f"{settings.file} ({', '.join(map(_change, changes)) or 'changes nothing'})"
    for variable in settings.environment:
        changes = [change for change in settings.changes if change.origin == f"environment {variable}"]
        yield f"{variable} ({', '.join(map(_change, changes))})"


def _change(change: SettingChange) -> str:
    value = change.value
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        text = " ".join(value)
    else:
        text = value if isinstance(value, str) else compact(value)
    return f"{change.setting} {text if len(text) <= _LONGEST_SETTING else text[:_LONGEST_SETTING] + '…'}"
