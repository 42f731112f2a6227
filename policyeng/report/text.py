"""The text report, for a terminal or a log."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TypeVar

from policyeng.later import lazy_pattern
from policyeng.models import Evaluation, Finding, Findings, Outcome, Severity
from policyeng.report.escaping import visible
from policyeng.report.frameworks import framework_lines
from policyeng.report.grouping import FindingGroup, group_findings
from policyeng.report.layout import (
    BLANK,
    LABEL,
    STYLES,
    Line,
    conclusion,
    finding_head,
    heading,
    item,
    labelled,
    ledger_section,
    make_margin,
    place_text,
    place_title,
    problem_lines,
    render_lines,
    wrap,
    wrap_paragraph,
)
from policyeng.report.locations import field_address, field_places, find_location, find_other_location, place
from policyeng.report.phrases import (
    by_policy,
    by_resource,
    count,
    denials,
    describe_denial,
    describe_exit_code,
    describe_found,
    describe_value,
    exempt,
    exemption_sentence,
    failed,
    format_name,
    format_path,
    has_values,
    problem_sentence,
    select_outcome,
    settings_text,
    shorten_id,
    split_reason,
    to_the_second,
    unknown_sentence,
    unknowns,
    worst_first,
)

_Entry = TypeVar("_Entry")

#: An ARM id within a message, and the first part of the subscription and the resource group of one.
_ARM_ID = lazy_pattern(r"/subscriptions/[^\s`,;]+")
_SCOPE = lazy_pattern(r"/subscriptions/([^/-]+)[^/]*/resourcegroups/([^/]+)/", re.IGNORECASE)

#: How many lines a group has, unless all are requested.
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
    head = finding_head(finding, style="dim" if finding.exemption is not None else "")
    yield from place_title((*make_margin(indent), *head), visible(finding.title), width, indent=indent + 2)


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


#: The forms of the report: one line for each policy and resource, every detail, the summary, and failures only.
FORMS = ("compact", "verbose", "summary", "quiet")
#: The lines of a screen. While the compact form fits, its fixes are complete.
_SCREEN = 40


def render(
    evaluation: Evaluation,
    *,
    color: bool = False,
    width: int = 100,
    group_by: str | None = None,
    profile: str | None = None,
    form: str = "compact",
    every: bool = False,
) -> str:
    """Return the failures, the errors, what is undecided, the problems, a summary, and last the result.

    Args:
        evaluation: the evaluation to report.
        color: adds ANSI colors and does not change the text.
        width: the number of columns, at least 40; ids, paths and commands are never broken, because people copy them.
        group_by: one of `GROUPS`; by default the compact form groups by policy and the verbose one by resource.
        profile: the name of the parameter profile of the evaluation.
        form: one of `FORMS`.
        every: the compact form lists every resource of a group.
    """
    width = max(width, 40)
    lines: dict[str, Callable[[], Iterable[Line]]] = {
        "compact": lambda: _compact(evaluation, width, group_by or "policy", profile, every=every),
        "verbose": lambda: _verbose(evaluation, width, group_by or "resource", profile),
        "summary": lambda: _summary(evaluation, width, profile),
        "quiet": lambda: _quiet(evaluation),
    }
    return render_lines(lines[form](), color=color)


def _compact(evaluation: Evaluation, width: int, group_by: str, profile: str | None, *, every: bool) -> Sequence[Line]:
    others = evaluation.others
    rest = [line for section in _SECTIONS for line in section(evaluation, width)]
    rest += _brief_summary(evaluation, width, profile)
    for whole_fixes in (True, False) if len(others) <= _SCREEN else (False,):
        shown = CompactFindings(others, width, every=every, whole_fixes=whole_fixes)
        lines = [*_compact_findings(evaluation, shown, group_by), *rest]
        if len(lines) <= _SCREEN:
            break
    return lines


def _compact_findings(evaluation: Evaluation, shown: CompactFindings, group_by: str) -> Iterator[Line]:
    failures, exempted = failed(evaluation), exempt(evaluation)
    if shown.file:
        yield ((f"{visible(shown.file)}", "dim"),)
    if failures:
        yield from shown.policies(failures) if group_by == "policy" else shown.groups(failures, group_by)
        yield BLANK
    sections = (
        ("Exempt", exempted, shown.exempt),
        ("Errors", select_outcome(evaluation, Outcome.ERROR), shown.errors),
        ("Unknown", select_outcome(evaluation, Outcome.UNKNOWN), shown.missing_inputs),
    )
    for title, findings, lines in sections:
        if findings:
            yield ((f"{title} ({count(len(findings), 'finding')})", "bold"),)
            yield from lines(findings)
            yield BLANK


def _quiet(evaluation: Evaluation) -> Iterator[Line]:
    """Yield the failures without an exemption, the errors of policies and the problems that are errors."""
    yield from plain_lines([*failed(evaluation), *select_outcome(evaluation, Outcome.ERROR)])
    for problem in evaluation.problems:
        if problem.level == "error":
            yield ((problem_sentence(problem), "bold red"),)


def _verbose(evaluation: Evaluation, width: int, group_by: str, profile: str | None) -> Iterator[Line]:
    sections = (
        ("Failures", [f for f in evaluation.others if f.outcome is Outcome.FAIL]),
        ("Errors", select_outcome(evaluation, Outcome.ERROR)),
        ("Unknown", select_outcome(evaluation, Outcome.UNKNOWN)),
    )
    for title, findings in sections:
        if findings:
            yield from heading(_counted(title, findings))
            yield from _grouped(findings, width, group_by)
    for section in _SECTIONS:
        yield from section(evaluation, width)
    yield from heading("Summary")
    yield from _summary(evaluation, width, profile)


def _grouped(findings: Sequence[Finding], width: int, group_by: str) -> Iterator[Line]:
    if group_by == "resource":
        yield from group_by_resource(findings, width)
    elif group_by == "policy":
        yield from group_by_policy(findings, width)
    else:
        for group in group_findings(findings, group_by):
            yield from heading(_counted(group.title, group.findings))
            yield from group_by_policy(group.findings, width)


def _counted(title: str, findings: Sequence[Finding]) -> str:
    exempted = sum(finding.exemption is not None for finding in findings)
    accepted = f", {exempted} exempt" if exempted else ""
    subjects = count(len({finding.resource for finding in findings}), "resource")
    return f"{title} ({len(findings)} on {subjects}{accepted})"


def _problems(evaluation: Evaluation, width: int) -> Iterator[Line]:
    if evaluation.problems:
        yield ((f"Problems ({len(evaluation.problems)})", "bold"),)
        for problem in sorted(evaluation.problems, key=lambda problem: problem.level != "error"):
            yield from problem_lines(problem, width)
        yield BLANK


def _ledger(evaluation: Evaluation, width: int) -> Iterator[Line]:
    return ledger_section(evaluation.ledger, width)


#: What the report has between the findings and the summary: functions of an evaluation and a width.
_SECTIONS: tuple[Callable[[Evaluation, int], Iterator[Line]], ...] = (_problems, _ledger, framework_lines)


def _brief_summary(evaluation: Evaluation, width: int, profile: str | None) -> Iterator[Line]:
    if evaluation.findings:
        yield from _table(evaluation, every=False)
    findings = Findings.of(evaluation.findings)
    with_profile = f" (profile {profile})" if profile else ""
    subject = f"{_describe_subject(findings)} {format_name(evaluation.bundle)}{with_profile}"
    words = f"{subject}, as of {to_the_second(evaluation.as_of)}"
    yield from wrap_paragraph(visible(words), width, indent=0, style="dim")
    if configured := settings_text(evaluation.settings):
        lines = wrap(configured, width - LABEL)
        text = lines[0] if len(lines) == 1 else f"{wrap(configured, width - LABEL - 2)[0]} …"
        yield from labelled("settings", text, max(width, LABEL + len(text)), indent=0)
    yield from conclusion(describe_exit_code(evaluation), evaluation.exit_code, width)


def _summary(evaluation: Evaluation, width: int, profile: str | None) -> Iterator[Line]:
    if evaluation.findings:
        yield from _table(evaluation, every=True)
        yield BLANK
        yield from _render_worst(evaluation, width)
        yield from labelled("compliant", _compliance(evaluation), width, indent=2)
    yield from labelled("evaluated", visible(_provenance(evaluation, profile)), width, indent=2)
    if configured := settings_text(evaluation.settings):
        yield from labelled("settings", configured, width, indent=2)
    yield BLANK
    yield from conclusion(describe_exit_code(evaluation), evaluation.exit_code, width)


def _table(evaluation: Evaluation, *, every: bool) -> Iterator[Line]:
    """Yield the counts by outcome and severity; rows of zeros only if `every`."""
    rows = {
        "fail": select_outcome(evaluation, Outcome.FAIL),
        "  exempt": exempt(evaluation),
        "unknown": select_outcome(evaluation, Outcome.UNKNOWN),
        "error": select_outcome(evaluation, Outcome.ERROR),
        "pass": select_outcome(evaluation, Outcome.PASS),
    }
    severities = list(reversed(Severity))
    titles = "".join(f"{severity:>{len(severity) + 2}}" for severity in severities)
    yield ((f"{'':{LABEL + 2}}{titles}  total", "dim"),)
    for title, findings in rows.items():
        if not every and not findings:
            continue
        counts = Counter(finding.severity for finding in findings)
        spans = [
            (f"{_cell(counts[s], len(s) + 2)}", STYLES[s] if title == "fail" and counts[s] else "") for s in severities
        ]
        yield (f"  {title:<{LABEL}}", ""), *spans, (_cell(len(findings), 7), "bold")


def _cell(number: int, width: int) -> str:
    return f"{number or '-':>{width}}"


def _render_worst(evaluation: Evaluation, width: int) -> Iterator[Line]:
    """Yield the three worst policies, by severity and number of failures without an exemption."""
    ranked = sorted(by_policy(failed(evaluation)), key=lambda members: (-members[0].severity.rank, -len(members)))
    for number, (finding, *others) in enumerate(ranked[:3]):
        words = f"{len(others) + 1} x {finding.policy} ({finding.severity}) {finding.title}"
        yield from labelled("" if number else "worst", visible(words), width, indent=2)


def _compliance(evaluation: Evaluation) -> str:
    summary = evaluation.summary
    strict = f"{summary.strict_compliance:.2f} % strict (only passes count)"
    return f"{strict}, {summary.azure_compliance:.2f} % as in Azure Policy (exempt and unknown count too)"


def _provenance(evaluation: Evaluation, profile: str | None) -> str:
    bundle, snapshot, engine = evaluation.bundle, evaluation.snapshot, evaluation.engine
    subject = _describe_subject(Findings.of(evaluation.findings))
    parameters = f", profile {profile}" if profile else ""
    scope = f" of {snapshot.scope}" if snapshot.scope else ""
    taken = f" taken {to_the_second(snapshot.taken_at)}" if snapshot.taken_at else ""
    source_snapshot = f", snapshot{scope}{taken}" if scope or taken else ""
    return (
        f"{subject} {format_name(bundle)}{parameters}{source_snapshot}, "
        f"as of {to_the_second(evaluation.as_of)}, engine {format_name(engine)}"
    )


def _describe_subject(findings: Findings) -> str:
    resources, policies = count(len(findings.resources), "resource"), count(len(findings.policies), "policy")
    return f"{resources} with {policies} of" if findings else "no resources with"
