"""The findings of the text report, under one heading for each resource or for each policy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from policyeng.models import Finding, Outcome
from policyeng.report.escaping import compact, visible
from policyeng.report.layout import BLANK, LABEL, STYLES, Line, beside, entitled, item, labelled, margin, paragraph
from policyeng.report.locations import elsewhere, field_places, place
from policyeng.report.phrases import (
    by_policy,
    by_resource,
    count,
    denials,
    exemption_sentence,
    has_values,
    parted,
    short_name,
    shown_path,
    unknowns,
)


def under_resources(findings: Sequence[Finding], width: int) -> Iterator[Line]:
    """Give each resource with what its policies say, in the order of the evaluation."""
    for members in by_resource(findings):
        yield from _resource(members[0], width)
        for finding in members:
            yield BLANK
            yield from _policy(finding, width, indent=2)
            yield from _exemption(finding, width)
            yield from _reasons(finding, width)
            yield from _remedy(finding, width, indent=4)
        yield BLANK


def under_policies(findings: Sequence[Finding], width: int) -> Iterator[Line]:
    """Give each policy, the worst first, with how to mend it once and the resources below; same reasons stand once.

    A resource is named as shortly as its place in a file allows: the whole id follows where there is no file, or where
    two resources share the name. Beside it stand the places of the fields, so that reasons are the same everywhere.
    """
    ids: dict[str, set[str]] = {}
    for finding in findings:
        ids.setdefault(short_name(finding.resource), set()).add(finding.resource)
    for members in by_policy(findings):
        counting = next((finding for finding in members if finding.exemption is None), members[0])
        yield from _policy(counting, width, indent=0)
        yield from labelled("on", count(len(members), "resource"), width, indent=0)
        yield from _remedy(members[0], width, indent=0)
        blocks: dict[tuple[Line, ...], list[Finding]] = {}
        for finding in members:
            said = (*_exemption(finding, width), *_reasons(finding, width, placed=False))
            blocks.setdefault(said, []).append(finding)
        for said, alike in blocks.items():
            yield BLANK
            for finding in alike:
                name = short_name(finding.resource)
                yield from _named(finding, name, width, whole=not finding.location.file or len(ids[name]) > 1)
            yield from said
        yield BLANK


def _resource(finding: Finding, width: int) -> Iterator[Line]:
    name, whole = short_name(finding.resource), visible(finding.resource)
    yield from beside(((name, "bold"),), visible(finding.resource_type), width, indent=0, style="dim")
    if whole != name:
        yield ((whole, "dim"),)
    if finding.location.file:
        yield ((place(finding.location), "dim"),)


def _named(finding: Finding, name: str, width: int, *, whole: bool) -> Iterator[Line]:
    first, *others = field_places(finding)
    yield from beside((("  ", ""), (name, "bold")), first, width, indent=4, style="dim")
    yield from ((("    ", ""), (other, "dim")) for other in others)
    if whole and visible(finding.resource) != name:
        yield (("    ", ""), (visible(finding.resource), "dim"))


def _policy(finding: Finding, width: int, *, indent: int) -> Iterator[Line]:
    style = "dim" if finding.exemption is not None else STYLES[finding.severity]
    head: Line = (*margin(indent), (f"{finding.severity:<{LABEL}}", style), (visible(finding.policy), "bold"))
    yield from entitled(head, visible(finding.title), width, indent=indent + 2)


def _exemption(finding: Finding, width: int) -> Iterator[Line]:
    if finding.exemption is not None:
        yield from paragraph(exemption_sentence(finding.exemption), width, indent=4, style="magenta")


def _remedy(finding: Finding, width: int, *, indent: int) -> Iterator[Line]:
    if finding.outcome is Outcome.FAIL:
        yield from labelled("why", visible(finding.source), width, indent=indent)
        yield from labelled("mend", visible(finding.remediation), width, indent=indent, style="green")


def _reasons(finding: Finding, width: int, *, placed: bool = True) -> Iterator[Line]:
    """Each reason with its path and, if `placed`, the place of the field where it is not the resource's."""
    for denial in denials(finding) if finding.outcome is Outcome.FAIL else ():
        yield from item(visible(denial.msg), width)
        yield from _path(finding, denial.path, width, placed=placed)
        if has_values(denial):
            actual, because = parted(denial)
            yield from labelled("actual", compact(actual), width, indent=6, style="red")
            yield from labelled("expected", compact(denial.expected), width, indent=6, style="green")
            yield from labelled("because", visible(because), width, indent=6)
    lead = "not decided: " if finding.outcome is Outcome.FAIL else ""
    for unknown in unknowns(finding):
        yield from item(lead + visible(unknown.msg), width)
        yield from _path(finding, unknown.path, width, placed=placed)


def _path(finding: Finding, path: str, width: int, *, placed: bool) -> Iterator[Line]:
    at = elsewhere(finding, path) if placed else ""
    spans = (*margin(6), (f"{'path':<{LABEL}}", "dim"), (shown_path(path), ""))
    if at:
        yield from beside(spans, at, width, indent=6 + LABEL, style="dim")
    else:
        yield from labelled("path", shown_path(path), width, indent=6)
