"""The detailed form of the findings of the text report: every reason with its path, values, source and fix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from policyeng.models import Finding, Outcome
from policyeng.report.escaping import visible
from policyeng.report.layout import (
    BLANK,
    LABEL,
    STYLES,
    Line,
    item,
    labelled,
    make_margin,
    place_text,
    place_title,
    wrap_paragraph,
)
from policyeng.report.locations import field_address, field_places, find_other_location, place
from policyeng.report.phrases import (
    by_policy,
    by_resource,
    count,
    denials,
    describe_found,
    describe_value,
    exemption_sentence,
    format_path,
    has_values,
    shorten_id,
    split_reason,
    unknowns,
)


def group_by_resource(findings: Sequence[Finding], width: int) -> Iterator[Line]:
    """Yield each resource with its findings, the most severe first."""
    for members in by_resource(findings):
        yield from _resource(members[0], width)
        for finding in members:
            yield BLANK
            yield from _policy(finding, width, indent=2)
            yield from _exemption(finding, width)
            yield from _reasons(finding, width)
            yield from _remedy(finding, width, indent=4)
        yield BLANK


def group_by_policy(findings: Sequence[Finding], width: int) -> Iterator[Line]:
    """Yield each policy, the most severe first, with its fix and resources, and equal reasons only once.

    A resource has its short name. The complete id follows where there is no source file, or where two resources share
    the name. Field locations are on the line of the resource, not of the reason, to keep equal reasons equal.
    """
    ids: dict[str, set[str]] = {}
    for finding in findings:
        ids.setdefault(shorten_id(finding.resource), set()).add(finding.resource)
    for members in by_policy(findings):
        representative = next((finding for finding in members if finding.exemption is None), members[0])
        yield from _policy(representative, width, indent=0)
        yield from labelled("on", count(len(members), "resource"), width, indent=0)
        yield from _remedy(members[0], width, indent=0)
        blocks: dict[tuple[Line, ...], list[Finding]] = {}
        for finding in members:
            reason_lines = (*_exemption(finding, width), *_reasons(finding, width, placed=False))
            blocks.setdefault(reason_lines, []).append(finding)
        for reason_lines, affected in blocks.items():
            yield BLANK
            for finding in affected:
                name = shorten_id(finding.resource)
                yield from _affected(finding, name, width, full_id=not finding.location.file or len(ids[name]) > 1)
            yield from reason_lines
        yield BLANK


def _resource(finding: Finding, width: int) -> Iterator[Line]:
    name, full_id = shorten_id(finding.resource), visible(finding.resource)
    yield from place_text(((name, "bold"),), visible(finding.resource_type), width, indent=0, style="dim")
    if full_id != name:
        yield ((full_id, "dim"),)
    if finding.location.file:
        yield ((place(finding.location), "dim"),)
    if finding.location.address:
        yield ((visible(finding.location.address), "dim"),)


def _affected(finding: Finding, name: str, width: int, *, full_id: bool) -> Iterator[Line]:
    first, *others = field_places(finding)
    yield from place_text((("  ", ""), (name, "bold")), first, width, indent=4, style="dim")
    yield from ((("    ", ""), (other, "dim")) for other in others)
    if full_id and visible(finding.resource) != name:
        yield (("    ", ""), (visible(finding.resource), "dim"))


def _policy(finding: Finding, width: int, *, indent: int) -> Iterator[Line]:
    style = "dim" if finding.exemption is not None else STYLES[finding.severity]
    head: Line = (*make_margin(indent), (f"{finding.severity:<{LABEL}}", style), (visible(finding.policy), "bold"))
    yield from place_title(head, visible(finding.title), width, indent=indent + 2)


def _exemption(finding: Finding, width: int) -> Iterator[Line]:
    if finding.exemption is not None:
        yield from wrap_paragraph(exemption_sentence(finding.exemption), width, indent=4, style="magenta")


def _remedy(finding: Finding, width: int, *, indent: int) -> Iterator[Line]:
    if finding.outcome is Outcome.FAIL:
        yield from labelled("why", visible(finding.why), width, indent=indent)
        yield from labelled("url", visible(finding.url), width, indent=indent)
        yield from labelled("source", visible(finding.source), width, indent=indent)
        yield from labelled("fix", visible(finding.remediation), width, indent=indent, style="green")


def _reasons(finding: Finding, width: int, *, placed: bool = True) -> Iterator[Line]:
    """Yield each reason with its path; `placed` adds the location of the field if it differs from the resource's."""
    for denial in denials(finding) if finding.outcome is Outcome.FAIL else ():
        yield from item(visible(denial.msg), width)
        yield from _path(finding, denial.path, width, placed=placed)
        if has_values(denial):
            actual, because = split_reason(denial)
            yield from labelled("found", describe_found(actual), width, indent=6, style="red")
            if denial.expected is not None:
                yield from labelled("expected", describe_value(denial.expected), width, indent=6, style="green")
            yield from labelled("because", visible(because), width, indent=6)
    lead = "unknown: " if finding.outcome is Outcome.FAIL else ""
    for unknown in unknowns(finding):
        yield from item(lead + visible(unknown.msg), width)
        yield from _path(finding, unknown.path, width, placed=placed)


def _path(finding: Finding, path: str, width: int, *, placed: bool) -> Iterator[Line]:
    at = find_other_location(finding, path) if placed else ""
    spans = (*make_margin(6), (f"{'path':<{LABEL}}", "dim"), (format_path(path), ""))
    if at:
        yield from place_text(spans, at, width, indent=6 + LABEL, style="dim")
    else:
        yield from labelled("path", format_path(path), width, indent=6)
    yield from labelled("in file", field_address(finding, path), width, indent=6)
