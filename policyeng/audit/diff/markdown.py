"""A comparison as Markdown, for a pull-request comment or `$GITHUB_STEP_SUMMARY`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from policyeng.audit.diff.phrases import LISTS, causes_sentences, conclude, flip_words, title_of
from policyeng.audit.diff.records import ComparedEvaluation, Comparison, Flip
from policyeng.models import Finding
from policyeng.report.escaping import markdown_code, markdown_text
from policyeng.report.locations import reasons
from policyeng.report.markdown_tables import fold, table
from policyeng.report.phrases import format_name, shorten_id, to_the_second

_COLUMNS = ("Severity", "Policy", "Resource", "Flip", "Because")
_NUMBERS = ("", "Fail", "Exempt", "Unknown", "Error", "Pass", "Strictly", "As Azure", "Judged")


def render(comparison: Comparison) -> str:
    """Return a table for each list of flips, folded persisting findings, and both sides.

    Text from snapshots is in `<code>` or escaped, without formatting, links or mentions.
    """
    parts = [f"## policyeng: {markdown_text(conclude(comparison))}"]
    for name, title in LISTS.items():
        flips: Sequence[Flip] = getattr(comparison, name)
        if flips:
            parts.append(f"### {title_of(flips, title)}")
            parts.append(table(_COLUMNS, map(_row, flips)))
    if comparison.persisting:
        body = table(("Severity", "Policy", "Resource", "Outcome"), map(_render_persisting, comparison.persisting))
        parts.append(fold(f"Persisting ({len(comparison.persisting)})", body))
    if comparison.problems:
        parts.append("\n".join(["### Problems", "", *_problems(comparison)]))
    parts.append(table(_NUMBERS, _render_sides(comparison)))
    return "\n\n".join(parts) + "\n"


def _row(flip: Flip) -> tuple[str, ...]:
    finding = flip.finding
    said = "<br>".join(map(markdown_text, reasons(finding, finding.location))) if flip.after is finding.outcome else ""
    why = "<br>or ".join(map(markdown_text, causes_sentences(flip))) or "not known"
    again = ", reopened" if flip.reopened else ""
    words = f"{flip_words(flip)}{again}"
    return (
        str(finding.severity),
        f"{markdown_code(finding.policy)}<br>{markdown_text(finding.title)}",
        markdown_code(shorten_id(finding.resource)),
        f"{words}<br>{said}" if said else words,
        why,
    )


def _render_persisting(finding: Finding) -> tuple[str, ...]:
    outcome = f"{finding.outcome} (exempt)" if finding.exemption else str(finding.outcome)
    return str(finding.severity), markdown_code(finding.policy), markdown_code(shorten_id(finding.resource)), outcome


def _problems(comparison: Comparison) -> Iterator[str]:
    for problem in comparison.problems:
        place = f"{markdown_code(problem.place)}: " if problem.place else ""
        yield f"- **{problem.level}**: {place}{markdown_text(problem.message)}"


def _render_sides(comparison: Comparison) -> Iterator[tuple[str, ...]]:
    yield _render_side("before", comparison.before)
    yield _render_side("after", comparison.after)


def _render_side(name: str, side: ComparedEvaluation) -> tuple[str, ...]:
    summary = side.summary
    numbers = (summary.fail, summary.exempt, summary.unknown, summary.error, summary.pass_)
    judged = f"with {format_name(side.bundle)}, as of {to_the_second(side.as_of)}, engine {format_name(side.engine)}"
    shares = (f"{share:.2f} %" for share in (summary.strict_compliance, summary.azure_compliance))
    return name, *map(str, numbers), *shares, markdown_text(judged)
