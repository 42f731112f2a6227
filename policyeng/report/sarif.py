"""The SARIF 2.1.0 report for GitHub code scanning: one result per denial.

Source: docs.github.com, "SARIF support for code scanning". GitHub shows every result as an alert and ignores
suppressions. Exempt failures are therefore omitted by default, and everything that is not a failure (unknown and error
findings, problems of the run) is a notification of the invocation.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from urllib.parse import quote

from pydantic_core import to_json

from policyeng import __version__
from policyeng.models import Denial, Evaluation, Finding, Findings, JsonObject, Outcome, Place, Severity, Unknown
from policyeng.models.findings import as_warning
from policyeng.report.escaping import markdown_code, markdown_text, prose, visible
from policyeng.report.locations import find_other_location, place_of, problem_place
from policyeng.report.phrases import (
    denial_sentence,
    denials,
    describe_exit_code,
    exemption_sentence,
    level,
    problem_sentence,
    rfc3339,
    shorten_id,
    unknown_sentence,
    unknowns,
    worst_first,
)

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
# GitHub's ranges: above 9.0 critical, from 7.0 high, from 4.0 medium, from 0.1 low.
_SECURITY_SEVERITY = {
    Severity.CRITICAL: "10.0",
    Severity.HIGH: "8.9",
    Severity.MEDIUM: "6.9",
    Severity.LOW: "3.9",
    Severity.INFO: "1.0",
}
_DESCRIPTION_LIMIT = 1024
#: GitHub refuses rules with more tags.
_MOST_TAGS = 20
#: The labels of package metadata with the page about the tool, the best first.
_PAGES = ("homepage", "documentation", "source", "repository")
_DRIVE = re.compile(r"[A-Za-z]:/")


def render(evaluation: Evaluation, *, include_exempt: bool = False, profile: str | None = None) -> str:
    """Return a SARIF log of one run; `include_exempt` adds the exempt failures, marked as suppressed.

    `profile` is the name of the parameter profile of the evaluation.
    """
    run = _run(evaluation, include_exempt)
    if profile:
        run["properties"]["profile"] = profile
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return visible(to_json(log, indent=2, inf_nan_mode="strings", fallback=str).decode(), keep="\n") + "\n"


def _run(evaluation: Evaluation, include_exempt: bool) -> JsonObject:
    rules = Findings.of(evaluation.findings).policies
    index = {policy: number for number, policy in enumerate(sorted(rules))}
    subject = _subject(evaluation.snapshot.scope)
    return {
        "tool": {
            "driver": {
                "name": "policyeng",
                "version": __version__,
                **_information(),
                "rules": [_rule(rules[policy]) for policy in index],
            }
        },
        "automationDetails": {"id": f"policyeng/{subject}/"},
        "invocations": [_invocation(evaluation, index, subject)],
        "columnKind": "unicodeCodePoints",
        "results": list(_alerts(evaluation, index, subject, include_exempt)),
        "properties": {
            "bundle": evaluation.bundle.model_dump(mode="json", by_alias=True),
            "snapshot": evaluation.snapshot.model_dump(mode="json", by_alias=True),
            "engine": evaluation.engine.model_dump(mode="json", by_alias=True),
            "asOf": rfc3339(evaluation.as_of),
            "settings": evaluation.settings.model_dump(mode="json", by_alias=True),
        },
    }


@cache
def _information() -> JsonObject:
    """Return the page about policyeng that the metadata of the package names, if it names one."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        stated = metadata("policyeng").get_all("Project-URL") or []
    except PackageNotFoundError:
        return {}
    pages = {label.strip().lower(): url.strip() for label, _, url in (entry.partition(",") for entry in stated)}
    return next(({"informationUri": pages[label]} for label in _PAGES if label in pages), {})


def _subject(scope: str) -> str:
    """Return the scope as a relative URI: the category of an upload, and the location where there is no file."""
    segments = [segment for segment in scope.casefold().split("/") if segment not in ("", ".", "..")]
    return quote("/".join(segments)) or "snapshot"


def _rule(finding: Finding) -> JsonObject:
    title = visible(finding.title) or finding.policy
    description = visible(finding.why) or title
    url = finding.url if _is_link(finding.url) else ""
    source = f"Source: {visible(finding.source)}" if finding.source else ""
    fix = f"Fix: {visible(finding.remediation)}" if finding.remediation else ""
    text = [part for part in (title, visible(finding.why), fix, url and f"More: {url}", source) if part]
    markdown = [prose(part, markdown_code) for part in text if not part.startswith("More: ")]
    link = [f"[{markdown_text(url)}](<{url}>)"] if url else []
    return {
        "id": finding.policy,
        "shortDescription": {"text": _described(title)},
        "fullDescription": {"text": _described(description)},
        "help": {"text": _literal("\n".join(text)), "markdown": "\n\n".join([*markdown, *link])},
        **({"helpUri": url} if url else {}),
        "defaultConfiguration": {"level": level(finding.severity)},
        "properties": {
            "security-severity": _SECURITY_SEVERITY[finding.severity],
            "precision": "very-high",
            "tags": _tags(finding),
        },
    }


def _tags(finding: Finding) -> list[str]:
    """Return the tags of a rule, among them its area and its controls, as far as GitHub takes them."""
    own = [finding.area, *finding.controls]
    tags = dict.fromkeys(filter(None, ["security", "compliance", "azure-machine-learning", *map(visible, own)]))
    return list(tags)[:_MOST_TAGS]


def _is_link(url: str) -> bool:
    """Check whether a URL can be in a report as it is: HTTPS, printable ASCII, without what ends a link."""
    return url.startswith("https://") and url.isascii() and url.isprintable() and not set(url) & set(' <>"\\`')


def _described(text: str) -> str:
    """Shorten to the limit of GitHub, ending with an ellipsis; the help text is complete."""
    literal = _literal(text)
    return literal if len(literal) <= _DESCRIPTION_LIMIT else f"{literal[: _DESCRIPTION_LIMIT - 1]}…"


def _literal(text: str) -> str:
    """Escape placeholders and links in a plain text message (SARIF 2.1.0, 3.11.5 and 3.11.6)."""
    return text.replace("{", "{{").replace("}", "}}").replace("](", "]\\u0028")


def _alerts(
    evaluation: Evaluation, index: Mapping[str, int], subject: str, include_exempt: bool
) -> Iterator[JsonObject]:
    seen: Counter[str] = Counter()
    for finding in worst_first(evaluation.others):
        if finding.outcome is not Outcome.FAIL or (finding.exemption is not None and not include_exempt):
            continue
        for denial in denials(finding):
            fingerprint = _fingerprint(finding, denial)
            seen[fingerprint] += 1
            alert = _alert(finding, denial, subject) | {
                "ruleIndex": index[finding.policy],
                "partialFingerprints": {"primaryLocationLineHash": f"{fingerprint}:{seen[fingerprint]}"},
            }
            # The standard requires suppressions on all results of a run or on none (3.27.23).
            yield alert | ({"suppressions": _suppressions(finding)} if include_exempt else {})


def _alert(finding: Finding, denial: Denial, subject: str) -> JsonObject:
    return {
        "ruleId": finding.policy,
        "level": level(finding.severity),
        "message": {"text": _literal(f"{denial_sentence(denial)} ({shorten_id(finding.resource)})")},
        "locations": [_location(finding, denial.path, subject)],
        **_related(finding, denial.path, subject),
        "properties": {
            "severity": finding.severity,
            "resource": finding.resource,
            "resourceType": finding.resource_type,
            **({"owner": finding.owner} if finding.owner else {}),
            **({"address": address} if (address := _address(finding, denial.path)) else {}),
            **denial.model_dump(by_alias=True),
        },
    }


def _address(finding: Finding, path: str) -> str:
    return place_of(finding, path).address or finding.location.address


def _location(finding: Finding, path: str, subject: str) -> JsonObject:
    scope = path.removesuffix(":") if path.startswith("/") and path.endswith(":") else ""
    name = scope or (f"{finding.resource}#{path}" if path else finding.resource)
    return {
        "physicalLocation": _physical(place_of(finding, path), subject),
        "logicalLocations": [
            {
                "name": shorten_id(scope or finding.resource),
                "fullyQualifiedName": visible(name),
                "kind": "property" if path and not scope else "resource",
            }
        ],
    }


def _related(finding: Finding, path: str, subject: str) -> JsonObject:
    """Return the location of the resource if that of the field differs."""
    if not find_other_location(finding, path):
        return {}
    physical = _physical(finding.location, subject)
    return {"relatedLocations": [{"id": 1, "physicalLocation": physical, "message": {"text": "the resource"}}]}


def _physical(at: Place, subject: str) -> JsonObject:
    region = {"startLine": at.line, "startColumn": at.column, "endLine": at.line, "endColumn": at.column + 1}
    return {"artifactLocation": {"uri": _uri(at, subject)}, "region": region}


def _uri(at: Place, subject: str) -> str:
    file = at.file.replace("\\", "/").removeprefix("./")
    if not file:
        return subject
    if _DRIVE.match(file):
        return f"file:///{quote(file, safe='/:')}"
    return f"file://{quote(file)}" if file.startswith("/") else quote(file)


def _fingerprint(finding: Finding, denial: Denial) -> str:
    """Identify an alert between runs: by policy, ARM id without case and JSON path, never by line or text."""
    key = json.dumps([finding.policy, finding.resource.casefold(), denial.path])
    return hashlib.sha256(key.encode()).hexdigest()


def _suppressions(finding: Finding) -> list[JsonObject]:
    if finding.exemption is None:
        return []
    justification = f"{exemption_sentence(finding.exemption)} ({visible(finding.exemption.id)})"
    return [{"kind": "external", "status": "accepted", "justification": justification}]


def _invocation(evaluation: Evaluation, index: Mapping[str, int], subject: str) -> JsonObject:
    notifications = [
        _notification(finding, unknown, index, subject)
        for finding in evaluation.others
        for unknown in unknowns(finding)
    ]
    unread = [(as_warning(entry), "warning" if entry.relevant else "note") for entry in evaluation.ledger]
    for problem, reported in (*((problem, problem.level) for problem in evaluation.problems), *unread):
        text = problem_sentence(problem)
        notification: JsonObject = {"level": reported, "message": {"text": _literal(text) or "problem"}}
        if (at := problem_place(problem)).file:
            notification["locations"] = [{"physicalLocation": _physical(at, subject)}]
        notifications.append(notification)
    return {
        "executionSuccessful": evaluation.exit_code in (0, 1),
        "exitCode": evaluation.exit_code,
        "exitCodeDescription": describe_exit_code(evaluation),
        "toolExecutionNotifications": notifications,
    }


def _notification(finding: Finding, unknown: Unknown, index: Mapping[str, int], subject: str) -> JsonObject:
    outcome = "error" if finding.outcome is Outcome.ERROR else "unknown"
    text = f"{outcome}: {unknown_sentence(unknown)} ({shorten_id(finding.resource)})"
    return {
        "level": "error" if finding.outcome is Outcome.ERROR else "warning",
        "message": {"text": _literal(text)},
        "associatedRule": {"id": finding.policy, "index": index[finding.policy]},
        "locations": [_location(finding, unknown.path, subject)],
        "properties": {"outcome": finding.outcome, "resource": finding.resource, "path": unknown.path},
    }
