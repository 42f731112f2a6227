"""The compact form of the findings of the text report: one line for each policy and resource, and each fix once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TypeVar

from policyeng.later import lazy_pattern
from policyeng.models import Finding, Outcome
from policyeng.report.escaping import visible
from policyeng.report.grouping import FindingGroup, group_findings
from policyeng.report.layout import LABEL, STYLES, Line, make_margin, wrap
from policyeng.report.locations import field_address, find_location, place
from policyeng.report.phrases import (
    by_policy,
    count,
    denials,
    describe_denial,
    exemption_sentence,
    shorten_id,
    unknown_sentence,
    unknowns,
    worst_first,
)

_Entry = TypeVar("_Entry")

#: An ARM id within a message, and the first part of the subscription and the resource group of one.
_ARM_ID = lazy_pattern(r"/subscriptions/[^\s`,;]+")
_SCOPE = lazy_pattern(r"/subscriptions/([^/-]+)[^/]*/resourcegroups/([^/]+)/", re.IGNORECASE)

#: How many lines a group has, unless all are asked for.
SHOWN = 20
#: The fewest columns that a reason keeps when a line is too long.
_LEAST = 20
#: How many words messages about one missing input begin with in common.
_ALIKE = 4
#: The widest column of names.
_NAMES = 40


class CompactFindings:
    """The findings of one evaluation in lines of at most `width` columns, as far as names allow.

    Args:
        findings: the findings that do not pass.
        width: the number of columns.
        every: whether groups have more than `SHOWN` lines.
        whole_fixes: whether fixes are complete; otherwise each has one line.
    """

    def __init__(self, findings: Sequence[Finding], width: int, *, every: bool, whole_fixes: bool) -> None:
        self._width, self._whole_fixes = width, whole_fixes
        self._limit = len(findings) if every else SHOWN
        files = {finding.location.file for finding in findings}
        #: The only file of the findings; lines then name the line in it alone.
        self.file = files.pop() if len(files) == 1 else ""
        ids: dict[str, set[str]] = {}
        for finding in findings:
            ids.setdefault(_subject(finding), set()).add(finding.resource.lower())
        self._ambiguous = {name for name, resources in ids.items() if len(resources) > 1}

    def policies(self, findings: Sequence[Finding]) -> Iterator[Line]:
        """Yield each policy with its resources and its fix, the most severe first."""
        for members in by_policy(findings):
            yield from self._policy_heading(members)
            yield from self._rows(members)
            yield from self._fix(members[0])

    def groups(self, findings: Sequence[Finding], by: str) -> Iterator[Line]:
        """Yield each group with its findings, the worst first, and then the fixes of the policies."""
        for group in group_findings(findings, by):
            yield from self._group(group)
        yield ((("Fixes", "bold")),)
        for members in by_policy(findings):
            name = f"{visible(members[0].policy):<{LABEL + 2}}"
            yield from self._fix(members[0], label=name if len(name) < self._width // 2 else "fix")

    def errors(self, findings: Sequence[Finding]) -> Iterator[Line]:
        """Yield each finding with the whole error of its policy."""
        for finding in self._shown(worst_first(findings)):
            at = next(self._places(finding), "")
            where = f"{visible(finding.policy)} {self._name(finding)}{f'  {at}' if at else ''}"
            yield from self._paragraph(f"{where}  {'; '.join(map(unknown_sentence, unknowns(finding)))}")
        yield from self._more(findings)

    def exempt(self, findings: Sequence[Finding]) -> Iterator[Line]:
        """Yield each exempt failure with its exemption."""
        for finding in self._shown(worst_first(findings)):
            reason = exemption_sentence(finding.exemption) if finding.exemption else ""
            yield from self._row(f"{visible(finding.policy)} {self._name(finding)}", reason, finding)
        yield from self._more(findings)

    def missing_inputs(self, findings: Sequence[Finding]) -> Iterator[Line]:
        """Yield each missing input with the number of policies and resources that it leaves undecided."""
        causes: dict[tuple[str, int, str], dict[str, list[Finding]]] = {}
        for finding in worst_first(findings):
            for message in dict.fromkeys(visible(unknown.msg) for unknown in unknowns(finding)):
                # Messages of one policy that differ in a word or two, such as the name of a region, are one cause.
                words = message.split()
                alike = causes.setdefault((finding.policy, len(words), " ".join(words[:_ALIKE])), {})
                alike.setdefault(message, []).append(finding)
        merged: dict[str, list[Finding]] = {}
        for alike in causes.values():
            merged.setdefault(_merge_messages(list(alike)), []).extend(chain.from_iterable(alike.values()))
        ranked = sorted(merged.items(), key=lambda entry: (-entry[1][0].severity.rank, -len(entry[1]), entry[0]))
        for message, members in self._shown(ranked):
            cause, _, remedy = _shorten_ids(message).partition("; ")
            policies = {finding.policy for finding in members}
            what = visible(members[0].policy) if len(policies) == 1 else count(len(policies), "policy")
            resources = {finding.resource: self._name(finding) for finding in members}
            where = next(iter(resources.values())) if len(resources) == 1 else count(len(resources), "resource")
            advice = f"; {remedy}" if remedy else ""
            yield from self._paragraph(f"{cause}: {what} undecided on {where}{advice}")
        yield from self._more(ranked)

    def _policy_heading(self, members: Sequence[Finding]) -> Iterator[Line]:
        first = next((finding for finding in members if finding.exemption is None), members[0])
        number = f" ({len(members)})" if len(members) > 1 else ""
        head = f"{first.severity:<{LABEL - 1}}{visible(first.policy)}  "
        title = wrap(visible(first.title) + number, max(self._width - len(head), _LEAST)) or [""]
        yield (
            (f"{first.severity:<{LABEL - 1}}", STYLES[first.severity]),
            (f"{visible(first.policy)}  ", "bold"),
            (title[0], ""),
        )
        yield from ((*make_margin(len(head)), (part, "")) for part in title[1:])

    def _group(self, group: FindingGroup) -> Iterator[Line]:
        yield ((f"{group.title} ({len(group.findings)})", "bold"),)
        for finding in self._shown(group.findings):
            yield from self._row(
                f"{visible(finding.policy)} {self._name(finding)}", _reason(finding), finding, severity=True
            )
        yield from self._more(group.findings)

    def _rows(self, members: Sequence[Finding]) -> Iterator[Line]:
        shown = self._shown(members)
        names = [self._name(finding) for finding in shown]
        width = min(max(map(len, names), default=0), _NAMES)
        for name, finding in zip(names, shown, strict=True):
            yield from self._row(f"{name:<{width}}", _reason(finding), finding)
        yield from self._more(members)

    def _row(self, name: str, reason: str, finding: Finding, *, severity: bool = False) -> Iterator[Line]:
        """Yield the line of a finding: the name, the reason, and the place as far as the width allows."""
        head: Line = ((f"  {finding.severity:<{LABEL - 1}}", STYLES[finding.severity]),) if severity else (("  ", ""),)
        used = sum(len(text) for text, _ in head) + len(name) + 2
        room = self._width - used
        fitting = [one for one in self._places(finding) if room - len(one) - 2 >= min(len(reason), _LEAST)]
        shown = next((one for one in fitting if room - len(one) - 2 >= len(reason)), fitting[-1] if fitting else "")
        left = max(room - (len(shown) + 2 if shown else 0), _LEAST)
        reason = reason if len(reason) <= left else f"{reason[: left - 1].rstrip(' ,')}…"
        tail: Line = (("  ", ""), (shown, "dim")) if shown else ()
        yield (*head, (f"{name}  ", "bold" if severity else ""), (reason, ""), *tail)

    def _name(self, finding: Finding) -> str:
        """Return the name of a resource, with its subscription and resource group if another one has the same name."""
        name = _subject(finding)
        scope = _SCOPE.match(finding.resource) if name in self._ambiguous else None
        return f"{visible(scope[1])}/{visible(scope[2])}/{name}" if scope else name

    def _places(self, finding: Finding) -> Iterator[str]:
        """Yield the place of a finding in ever shorter forms."""
        at = find_location(finding)
        if at.file:
            line = f":{at.line}:{at.column}"
            if at.file != self.file:
                yield f"{visible(at.file)}{line}"
                yield f"{visible(at.file.rpartition('/')[2])}{line}"
            else:
                yield line

    def _fix(self, finding: Finding, label: str = "  fix") -> Iterator[Line]:
        if finding.outcome is not Outcome.FAIL or not finding.remediation:
            return
        text, label = visible(finding.remediation), f"{label} " if len(label) >= LABEL else f"{label:<6}"
        room = max(self._width - len(label), _LEAST)
        lines = wrap(text, room)
        if not self._whole_fixes and len(lines) > 1:
            lines = [f"{(wrap(text, room - 2) or [text])[0].rstrip(' ,;')} …"]
        for number, part in enumerate(lines):
            yield ((label if number == 0 else " " * len(label), "dim"), (part, "green"))

    def _paragraph(self, text: str) -> Iterator[Line]:
        for number, part in enumerate(wrap(text, self._width - 4)):
            yield (("    " if number else "  ", ""), (part, ""))

    def _shown(self, findings: Sequence[_Entry]) -> Sequence[_Entry]:
        return findings[: self._limit]

    def _more(self, findings: Sequence[object]) -> Iterator[Line]:
        if len(findings) > self._limit:
            yield ((f"  and {len(findings) - self._limit} more (--all)", "dim"),)


def _shorten_ids(message: str) -> str:
    """Return a message with the short names of the resources whose ids it contains."""
    return _ARM_ID.sub(lambda match: shorten_id(match[0]), message)


def _merge_messages(messages: Sequence[str]) -> str:
    """Return messages of equally many words as one, with an ellipsis for words that differ."""
    columns = zip(*(message.split() for message in messages), strict=True)
    return " ".join(words[0] if len(set(words)) == 1 else "…" for words in columns)


def plain_lines(findings: Sequence[Finding]) -> Iterator[Line]:
    """Yield each finding on one line of any length: place, severity, policy, resource and reason."""
    for finding in worst_first(findings):
        at = place(find_location(finding))
        yield (
            (f"{at}: " if at else "", ""),
            (finding.severity, STYLES[finding.severity]),
            (f" {visible(finding.policy)} {_subject(finding)}: {_reason(finding)}", ""),
        )


def _subject(finding: Finding) -> str:
    """Return the name of a resource: as its format calls it unless that is an expression, else its names in its id."""
    address = finding.location.address
    return shorten_id(finding.resource) if not address or address.startswith("[") else visible(address)


def _reason(finding: Finding) -> str:
    if finding.outcome is not Outcome.FAIL:
        return "; ".join(map(unknown_sentence, unknowns(finding)))
    first, *others = denials(finding)
    more = f" (and {count(len(others), 'more reason')})" if others else ""
    return describe_denial(first, field_address(finding, first.path), short=True) + more
