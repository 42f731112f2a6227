"""The text of a comparison: for a person at a terminal or in a log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from policyeng.audit.diff.phrases import LISTS, causes_sentences, conclude, flip_words, title_of
from policyeng.audit.diff.records import ComparedEvaluation, Comparison, Flip
from policyeng.models import Finding
from policyeng.report.escaping import visible
from policyeng.report.layout import (
    BLANK,
    LABEL,
    STYLES,
    Line,
    heading,
    item,
    labelled,
    place_title,
    render_lines,
    wrap_paragraph,
)
from policyeng.report.locations import reasons
from policyeng.report.phrases import count, format_name, shorten_id, to_the_second

_EXITS = {0: "bold green", 1: "bold red"}
#: How many persisting findings are named.
_NAMED = 10


def render(comparison: Comparison, *, color: bool = False, width: int = 100) -> str:
    """Return new, changed and fixed findings with their causes, persisting ones, a summary, and the exit code.

    `color` adds ANSI colors. `width` is the number of columns to wrap at, at least 40.
    """
    return render_lines(_lines(comparison, max(width, 40)), color=color)


def _lines(comparison: Comparison, width: int) -> Iterator[Line]:
    for name, title in LISTS.items():
        flips: Sequence[Flip] = getattr(comparison, name)
        if flips:
            yield from heading(title_of(flips, title))
            for flip in flips:
                yield from flip_lines(flip, width)
    if comparison.persisting:
        yield from _render_persisting(comparison.persisting)
    if comparison.problems:
        yield from heading(f"Problems ({len(comparison.problems)})")
        for problem in comparison.problems:
            message = f"{problem.place}: {problem.message}" if problem.place else problem.message
            style = "bold red" if problem.level == "error" else "yellow"
            yield from labelled(problem.level, visible(message), width, indent=2, label_style=style)
        yield BLANK
    yield from heading("Compared")
    yield from labelled("before", _render_side(comparison.before), width, indent=2)
    yield from labelled("after", _render_side(comparison.after), width, indent=2)
    yield BLANK
    yield from wrap_paragraph(
        conclude(comparison), width, indent=0, style=_EXITS.get(comparison.exit_code, "bold yellow")
    )


def flip_lines(flip: Flip, width: int) -> Iterator[Line]:
    """Yield one flip with its reasons and causes, and how to fix it."""
    finding = flip.finding
    head: Line = ((f"{finding.severity:<{LABEL}}", STYLES[finding.severity]), (visible(finding.policy), "bold"))
    yield from place_title(head, visible(finding.title), width, indent=2)
    name = shorten_id(finding.resource)
    yield from labelled("on", visible(finding.resource) if name == finding.resource else name, width, indent=2)
    if name != visible(finding.resource):
        yield from labelled("", visible(finding.resource), width, indent=2, style="dim")
    again = ", reopened" if flip.reopened else ""
    yield from labelled("flip", f"{flip_words(flip)}{again}", width, indent=2)
    if flip.after is finding.outcome:
        for reason in reasons(finding, finding.location):
            yield from item(reason, width)
    for number, sentence in enumerate(causes_sentences(flip)):
        yield from labelled("or because" if number else "because", sentence, width, indent=2, style="magenta")
    if flip.after is finding.outcome and not flip.exempt_after:
        yield from labelled("mend", visible(finding.remediation), width, indent=2, style="green")
    yield BLANK


def _render_persisting(findings: Sequence[Finding]) -> Iterator[Line]:
    yield from heading(f"Persisting ({len(findings)} on {count(len({one.resource for one in findings}), 'resource')})")
    worst = sorted(findings, key=lambda finding: (finding.exemption is not None, -finding.severity.rank))
    for finding in worst[:_NAMED]:
        accepted = ", exempt" if finding.exemption else ""
        words = f"  {shorten_id(finding.resource)}: {finding.outcome}{accepted}: {visible(finding.title)}"
        severity = (f"  {finding.severity:<{LABEL}}", STYLES[finding.severity])
        yield severity, (visible(finding.policy), "bold"), (words, "")
    if len(worst) > _NAMED:
        yield ((f"  and {len(worst) - _NAMED} more, which the JSON form lists", "dim"),)
    yield BLANK


def _render_side(side: ComparedEvaluation) -> str:
    summary, snapshot = side.summary, side.snapshot
    exempt = f", {summary.exempt} of them exempt" if summary.exempt else ""
    numbers = (
        f"{summary.fail} fail{exempt}, {summary.unknown} unknown, {summary.error} error, {summary.pass_} pass; "
        f"{summary.strict_compliance:.2f} % strictly, {summary.azure_compliance:.2f} % as Azure counts"
    )
    taken = f" taken {to_the_second(snapshot.taken_at)}" if snapshot.taken_at else f" {snapshot.digest[:12]}"
    return visible(
        f"{numbers}; the snapshot{taken}, with {format_name(side.bundle)}, as of {to_the_second(side.as_of)}, "
        f"engine {format_name(side.engine)}"
    )
