"""The text report: for a person at a terminal or in a log."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from policyeng.models import Evaluation, Finding, Location, Outcome, Problem, Severity
from policyeng.report.escapes import compact, visible
from policyeng.report.wording import (
    count,
    denials,
    exempt,
    exemption_sentence,
    failed,
    has_values,
    having,
    place,
    short_name,
    to_the_second,
    unknowns,
    verdict,
)

#: A line as spans of (text, style); a style is a rich one, used only in colour.
Line = tuple[tuple[str, str], ...]

_BLANK: Line = ()
_LABEL = 10
_STYLES = {
    Severity.CRITICAL: "bold red",
    Severity.HIGH: "red",
    Severity.MEDIUM: "yellow",
    Severity.LOW: "cyan",
    Severity.INFO: "blue",
}
_EXITS = {0: "bold green", 1: "bold red"}


def render(evaluation: Evaluation, *, color: bool = False, width: int = 100) -> str:
    """Give the failures by resource, what could not be decided, the problems and a summary; the exit comes last.

    With `color`, ANSI colours are added and the text stays the same. `width` is the columns to wrap at, at least 40;
    words are never broken, so that ids and paths can be copied.
    """
    paint = _painter() if color else _plain
    lines = _lines(evaluation, max(width, 40))
    return "".join(f"{paint(line)}\n" for line in lines)


def _lines(evaluation: Evaluation, width: int) -> Iterator[Line]:
    sections = (
        ("Failures", [f for f in evaluation.findings if f.outcome is Outcome.FAIL]),
        ("Unknown", having(evaluation, Outcome.UNKNOWN)),
        ("Errors", having(evaluation, Outcome.ERROR)),
    )
    for title, findings in sections:
        if findings:
            yield from _section(title, findings, width)
    if evaluation.problems:
        yield from _heading(f"Problems ({len(evaluation.problems)})")
        for problem in evaluation.problems:
            yield from _problem(problem, width)
        yield _BLANK
    yield from _summary(evaluation, width)


def _heading(title: str) -> Iterator[Line]:
    yield ((title, "bold"),)
    yield (("=" * len(title), "bold"),)


def _section(title: str, findings: Sequence[Finding], width: int) -> Iterator[Line]:
    blocks: dict[tuple[str, str, Location], list[Finding]] = {}
    for finding in findings:
        blocks.setdefault((finding.resource, finding.resource_type, finding.location), []).append(finding)
    exempted = sum(finding.exemption is not None for finding in findings)
    accepted = f", {exempted} exempt" if exempted else ""
    subjects = count(len({finding.resource for finding in findings}), "resource")
    yield from _heading(f"{title} ({len(findings)} on {subjects}{accepted})")
    for (resource, resource_type, location), members in blocks.items():
        yield from _resource(resource, resource_type, location, width)
        for finding in members:
            yield _BLANK
            yield from _finding(finding, width)
        yield _BLANK


def _resource(resource: str, resource_type: str, location: Location, width: int) -> Iterator[Line]:
    name, kind, whole = short_name(resource), visible(resource_type), visible(resource)
    if len(name) + 2 + len(kind) <= width:
        yield ((name, "bold"), ("  ", ""), (kind, "dim"))
    else:
        yield ((name, "bold"),)
        yield ((kind, "dim"),)
    if whole != name:
        yield ((whole, "dim"),)
    if location.file:
        yield ((place(location), "dim"),)


def _finding(finding: Finding, width: int) -> Iterator[Line]:
    style = "dim" if finding.exemption is not None else _STYLES[finding.severity]
    policy, title = visible(finding.policy), visible(finding.title)
    head: Line = (("  ", ""), (f"{finding.severity:<{_LABEL}}", style), (policy, "bold"))
    if title and sum(len(text) for text, _ in head) + 2 + len(title) <= width:
        yield (*head, ("  ", ""), (title, ""))
    else:
        yield head
        yield from _paragraph(title, width, indent=4)
    if finding.exemption is not None:
        yield from _paragraph(exemption_sentence(finding.exemption), width, indent=4, style="magenta")
    yield from _reasons(finding, width)
    if finding.outcome is Outcome.FAIL:
        yield from _field("why", visible(finding.source), width, indent=4)
        yield from _field("mend", visible(finding.remediation), width, indent=4, style="green")


def _reasons(finding: Finding, width: int) -> Iterator[Line]:
    for denial in denials(finding) if finding.outcome is Outcome.FAIL else ():
        yield from _item(visible(denial.msg), width)
        yield from _field("path", visible(denial.path), width, indent=6)
        if has_values(denial):
            yield from _field("actual", compact(denial.actual), width, indent=6, style="red")
            yield from _field("expected", compact(denial.expected), width, indent=6, style="green")
    lead = "not decided: " if finding.outcome is Outcome.FAIL else ""
    for unknown in unknowns(finding):
        yield from _item(lead + visible(unknown.msg), width)
        yield from _field("path", visible(unknown.path), width, indent=6)


def _problem(problem: Problem, width: int) -> Iterator[Line]:
    message = f"{problem.place}: {problem.message}" if problem.place else problem.message
    style = "bold red" if problem.level == "error" else "yellow"
    yield from _field(problem.level, visible(message), width, indent=2, label_style=style)


def _summary(evaluation: Evaluation, width: int) -> Iterator[Line]:
    yield from _heading("Summary")
    if evaluation.findings:
        yield from _table(evaluation)
        yield _BLANK
        yield from _worst(evaluation, width)
        yield from _field("compliant", _compliance(evaluation), width, indent=2)
    yield from _field("judged", visible(_judged(evaluation)), width, indent=2)
    yield _BLANK
    yield from _paragraph(verdict(evaluation), width, indent=0, style=_EXITS.get(evaluation.exit_code, "bold yellow"))


def _table(evaluation: Evaluation) -> Iterator[Line]:
    rows = {
        "fail": having(evaluation, Outcome.FAIL),
        "  exempt": exempt(evaluation),
        "unknown": having(evaluation, Outcome.UNKNOWN),
        "error": having(evaluation, Outcome.ERROR),
        "pass": having(evaluation, Outcome.PASS),
    }
    severities = list(reversed(Severity))
    titles = "".join(f"{severity:>{len(severity) + 2}}" for severity in severities)
    yield ((f"{'':{_LABEL + 2}}{titles}  total", "dim"),)
    for title, findings in rows.items():
        counts = Counter(finding.severity for finding in findings)
        spans = [
            (f"{_cell(counts[s], len(s) + 2)}", _STYLES[s] if title == "fail" and counts[s] else "") for s in severities
        ]
        yield (f"  {title:<{_LABEL}}", ""), *spans, (_cell(len(findings), 7), "bold")


def _cell(number: int, width: int) -> str:
    return f"{number or '-':>{width}}"


def _worst(evaluation: Evaluation, width: int) -> Iterator[Line]:
    """The three policies that fail most, worst first; exempt failures do not count."""
    by_policy: dict[str, list[Finding]] = {}
    for finding in failed(evaluation):
        by_policy.setdefault(finding.policy, []).append(finding)
    ranked = sorted(by_policy.values(), key=lambda fs: (-len(fs), -fs[0].severity.rank, fs[0].policy))
    for number, (finding, *others) in enumerate(ranked[:3]):
        words = f"{len(others) + 1} x {finding.policy} ({finding.severity}) {finding.title}"
        yield from _field("" if number else "worst", visible(words), width, indent=2)


def _compliance(evaluation: Evaluation) -> str:
    summary = evaluation.summary
    strict = f"{summary.strict_compliance:.2f} % strictly (only passes count)"
    return f"{strict}, {summary.azure_compliance:.2f} % as Azure Policy counts (exempt and unknown count too)"


def _judged(evaluation: Evaluation) -> str:
    bundle, snapshot, engine = evaluation.bundle, evaluation.snapshot, evaluation.engine
    resources = count(len({finding.resource for finding in evaluation.findings}), "resource")
    number = len({finding.policy for finding in evaluation.findings})
    policies = "1 policy" if number == 1 else f"{number} policies"
    subject = f"{resources}, with {policies}" if number else "nothing, with no policy"
    scope = f" of {snapshot.scope}" if snapshot.scope else ""
    taken = f", taken {to_the_second(snapshot.taken_at)}" if snapshot.taken_at else ""
    return (
        f"{subject} of {bundle.name} {bundle.revision}, in the snapshot{scope}{taken}, "
        f"as of {to_the_second(evaluation.as_of)}, engine {engine.name} {engine.version}"
    )


def _paragraph(text: str, width: int, *, indent: int, style: str = "") -> Iterator[Line]:
    for part in _wrapped(text, width - indent):
        yield ((" " * indent, ""), (part, style))


def _item(text: str, width: int) -> Iterator[Line]:
    for number, part in enumerate(_wrapped(text, width - 6)):
        yield (("      " if number else "    - ", ""), (part, ""))


def _field(
    label: str, text: str, width: int, *, indent: int, style: str = "", label_style: str = "dim"
) -> Iterator[Line]:
    margin = " " * indent
    for number, part in enumerate(_wrapped(text, width - indent - _LABEL) if text else ()):
        yield (margin, ""), (f"{label if number == 0 else '':<{_LABEL}}", label_style), (part, style)


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _plain(line: Line) -> str:
    return "".join(text for text, _ in line)


def _painter() -> Callable[[Line], str]:
    from rich.color import ColorSystem
    from rich.style import Style

    def paint(line: Line) -> str:
        return "".join(
            Style.parse(style).render(text, color_system=ColorSystem.STANDARD) if style else text
            for text, style in line
        )

    return paint
