"""Render comparisons of two evaluations as text, Markdown and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from policyeng.audit.diff.inputs import Cause, CauseKind, ComparedEvaluation, Comparison, Flip, PathChange
from policyeng.models import Finding, JsonObject, Outcome, Problem
from policyeng.report.escaping import compact, fold, markdown_code, markdown_text, table, visible
from policyeng.report.json import dumped, findings_in_utc, published, snapshot_in_utc
from policyeng.report.layout import (
    BLANK,
    Line,
    conclusion,
    finding_head,
    heading,
    item,
    labelled,
    place_title,
    problems_section,
    text_form,
)
from policyeng.report.locations import reasons
from policyeng.report.markdown import policy_cell
from policyeng.report.phrases import count, format_name, in_utc, shorten_id, subjects_title, to_the_second

#: The lists of flips with their titles, in the order in which they are shown.
LISTS = {"new": "New", "changed": "Changed", "fixed": "Fixed"}
#: How many places of one cause are written out; the JSON form has them all.
_NAMED = 4
#: A value that is written out is no longer than this.
_LONGEST = 120
_BECAME = {
    "came": "came",
    "went": "went",
    "changed": "changed",
    "began": "began",
    "lapsed": "lapsed",
    "ended": "was taken back",
}
#: How many digits of a digest a report shows.
_DIGITS = 12


def cause_sentence(cause: Cause) -> str:
    """Return a cause as a sentence."""
    became = _BECAME[cause.change]
    return visible(f"{_subject(cause)} {became}{_how(cause)}")


def causes_sentences(causes: Iterable[Iterable[Cause]]) -> list[str]:
    """Return a sentence for each alternative set of causes."""
    return [" and ".join(map(cause_sentence, together)) for together in causes]


def alternatives_cell(sentences: Iterable[str]) -> str:
    """Return alternative causes as Markdown."""
    return "<br>or ".join(map(markdown_text, sentences))


def _subject(cause: Cause) -> str:
    if cause.kind is CauseKind.POLICY:
        return "the policy"
    if cause.kind is CauseKind.LIBRARY:
        return "what the policy shares with others"
    if cause.kind is CauseKind.PARAMETERS:
        return "the parameters of the policy"
    if cause.kind in (CauseKind.ENGINE, CauseKind.CLOCK):
        return f"the {cause.kind}"
    name = shorten_id(cause.subject) if cause.kind is CauseKind.RESOURCE else cause.subject
    return f"the {cause.kind} {name}"


def _how(cause: Cause) -> str:
    if cause.change in ("began", "lapsed", "ended") or cause.kind is CauseKind.EXEMPTION:
        ends = cause.before if cause.change in ("lapsed", "ended") else cause.after
        word = "it ended" if cause.change == "lapsed" else "until"
        return f" ({word} {ends})" if ends else ""
    if cause.kind in (CauseKind.POLICY, CauseKind.LIBRARY) and cause.before and cause.after:
        shared = f", data at {', '.join(change.path for change in cause.paths[:_NAMED])}" if cause.paths else ""
        return f" from {cause.before[:_DIGITS]} to {cause.after[:_DIGITS]}{shared}"
    if cause.before and cause.after:
        return f" from {cause.before} to {cause.after}"
    if cause.change != "changed" or not cause.paths:
        return ""
    left = len(cause.paths) - _NAMED
    more = f" and {count(left, 'more place')}" if left > 0 else ""
    return f" at {'; at '.join(map(path_sentence, cause.paths[:_NAMED]))}{more}"


def path_sentence(change: PathChange) -> str:
    """Return ``/path, which was 1 and is 2``, or that it was added or removed."""
    was, became = (_shorten(value) for value in (change.before, change.after))
    path = change.path or "the whole of it"
    if change.change == "came":
        return f"{path}, which is {became} and was not there"
    if change.change == "went":
        return f"{path}, which was {was} and is not there"
    return f"{path}, which was {was} and is {became}"


def _shorten(value: object) -> str:
    text = compact(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def flip_words(flip: Flip) -> str:
    """Return `pass to fail`, with an exemption if any, and whether the finding is reopened."""
    before, after = _outcome(flip.before, exempt=flip.exempt_before), _outcome(flip.after, exempt=flip.exempt_after)
    return f"{before} to {after}{', reopened' if flip.reopened else ''}"


def _outcome(outcome: Outcome | None, *, exempt: bool) -> str:
    if outcome is None:
        return "not evaluated"
    return f"{outcome} (exempt)" if exempt else str(outcome)


def _title(title: str, flips: Iterable[Flip]) -> str:
    return subjects_title(title, (flip.finding for flip in flips))


def conclude(comparison: Comparison) -> str:
    """Return the exit code, and the numbers of new, changed, fixed and persisting findings."""
    numbers = {name: len(getattr(comparison, name)) for name in (*LISTS, "persisting")}
    words = ", ".join(f"{number} {name}" for name, number in numbers.items() if number)
    lead = {0: "nothing new fails", 1: "something new fails"}.get(comparison.exit_code, "could not decide")
    return f"exit {comparison.exit_code}: {lead}: {words or 'no finding on either side'}"


def render_json(comparison: Comparison) -> str:
    """Return the comparison with times in UTC, escaped unprintable characters and exact values."""
    flips = {name: tuple(map(_flip, getattr(comparison, name))) for name in ("new", "fixed", "changed")}
    sides = {name: _json_side(getattr(comparison, name)) for name in ("before", "after")}
    return dumped(
        comparison.model_copy(update={**flips, **sides, "persisting": findings_in_utc(comparison.persisting)})
    )


def _flip(flip: Flip) -> Flip:
    (finding,) = findings_in_utc([flip.finding])
    return flip.model_copy(update={"finding": finding})


def _json_side(side: ComparedEvaluation) -> ComparedEvaluation:
    return side.model_copy(update={"as_of": in_utc(side.as_of), "snapshot": snapshot_in_utc(side.snapshot)})


def diff_schema() -> JsonObject:
    """Return the JSON Schema (2020-12) of a comparison, as published in `docs/diff.schema.json`."""
    return published(Comparison, "urn:policyeng:schema:diff:1", "policyeng comparison, version 1")


_COLUMNS = ("Severity", "Policy", "Resource", "Flip", "Because")
_NUMBERS = ("", "Fail", "Exempt", "Unknown", "Error", "Pass", "Strictly", "As Azure", "Evaluated")


def render_markdown(comparison: Comparison) -> str:
    """Return a table for each list of flips, folded persisting findings, and both sides.

    Text from snapshots is in `<code>` or escaped, without formatting, links or mentions.
    """
    parts = [f"## policyeng: {markdown_text(conclude(comparison))}"]
    for name, title in LISTS.items():
        flips: Sequence[Flip] = getattr(comparison, name)
        if flips:
            parts.append(f"### {_title(title, flips)}")
            parts.append(table(_COLUMNS, map(_row, flips)))
    if comparison.persisting:
        body = table(("Severity", "Policy", "Resource", "Outcome"), map(_markdown_persisting, comparison.persisting))
        parts.append(fold(f"Persisting ({len(comparison.persisting)})", body))
    if comparison.problems:
        parts.append("\n".join(["### Problems", "", *map(problem_item, comparison.problems)]))
    sides = {"before": comparison.before, "after": comparison.after}
    parts.append(table(_NUMBERS, (_markdown_side(name, side) for name, side in sides.items())))
    return "\n\n".join(parts) + "\n"


def _row(flip: Flip) -> tuple[str, ...]:
    finding = flip.finding
    reason = (
        "<br>".join(map(markdown_text, reasons(finding, finding.location))) if flip.after is finding.outcome else ""
    )
    words = f"{flip_words(flip)}<br>{reason}" if reason else flip_words(flip)
    why = alternatives_cell(causes_sentences(flip.causes)) or "not known"
    return str(finding.severity), policy_cell(finding), markdown_code(shorten_id(finding.resource)), words, why


def _markdown_persisting(finding: Finding) -> tuple[str, ...]:
    outcome = f"{finding.outcome} (exempt)" if finding.exemption else str(finding.outcome)
    return str(finding.severity), markdown_code(finding.policy), markdown_code(shorten_id(finding.resource)), outcome


def problem_item(problem: Problem) -> str:
    """Return a problem as an item of a Markdown list."""
    place = f"{markdown_code(problem.place)}: " if problem.place else ""
    return f"- **{problem.level}**: {place}{markdown_text(problem.message)}"


def _markdown_side(name: str, side: ComparedEvaluation) -> tuple[str, ...]:
    summary = side.summary
    numbers = (summary.fail, summary.exempt, summary.unknown, summary.error, summary.pass_)
    evaluated = f"with {format_name(side.bundle)}, as of {to_the_second(side.as_of)}, engine {format_name(side.engine)}"
    shares = (f"{share:.2f} %" for share in (summary.strict_compliance, summary.azure_compliance))
    return name, *map(str, numbers), *shares, markdown_text(evaluated)


#: How many persisting findings are named.
_NAMED_IN_TEXT = 10


def _lines(comparison: Comparison, width: int) -> Iterator[Line]:
    """Yield new, changed and fixed findings with their causes, persisting ones, a summary, and the exit code."""
    for name, title in LISTS.items():
        flips: Sequence[Flip] = getattr(comparison, name)
        if flips:
            yield from heading(_title(title, flips))
            for flip in flips:
                yield from flip_lines(flip, width)
    if comparison.persisting:
        yield from _text_persisting(comparison.persisting)
    yield from problems_section(comparison.problems, width)
    yield from heading("Compared")
    yield from labelled("before", _text_side(comparison.before), width, indent=2)
    yield from labelled("after", _text_side(comparison.after), width, indent=2)
    yield BLANK
    yield from conclusion(conclude(comparison), comparison.exit_code, width)


#: Returns a comparison as text.
render_text = text_form(_lines)


def flip_lines(flip: Flip, width: int) -> Iterator[Line]:
    """Yield one flip with its reasons and causes, and how to fix it."""
    finding = flip.finding
    yield from flip_head(flip, shorten_id(finding.resource), width)
    yield from because_lines(causes_sentences(flip.causes), width, indent=2)
    if flip.after is finding.outcome and not flip.exempt_after:
        yield from labelled("fix", visible(finding.remediation), width, indent=2, style="green")
    yield BLANK


def flip_head(flip: Flip, where: str, width: int) -> Iterator[Line]:
    """Yield the policy and the resource of one flip, whose short name is `where`, with its reasons."""
    finding = flip.finding
    yield from place_title(finding_head(finding), visible(finding.title), width, indent=2)
    yield from labelled("on", where, width, indent=2)
    if where != visible(finding.resource):
        yield from labelled("", visible(finding.resource), width, indent=2, style="dim")
    yield from labelled("flip", flip_words(flip), width, indent=2)
    if flip.after is finding.outcome:
        for reason in reasons(finding, finding.location):
            yield from item(reason, width)


def because_lines(sentences: Iterable[str], width: int, *, indent: int) -> Iterator[Line]:
    """Yield alternative causes."""
    for number, sentence in enumerate(sentences):
        yield from labelled("or because" if number else "because", sentence, width, indent=indent, style="magenta")


def _text_persisting(findings: Sequence[Finding]) -> Iterator[Line]:
    yield from heading(subjects_title("Persisting", findings))
    worst = sorted(findings, key=lambda finding: (finding.exemption is not None, -finding.severity.rank))
    for finding in worst[:_NAMED_IN_TEXT]:
        accepted = ", exempt" if finding.exemption else ""
        words = f"  {shorten_id(finding.resource)}: {finding.outcome}{accepted}: {visible(finding.title)}"
        yield *finding_head(finding, lead="  "), (words, "")
    if len(worst) > _NAMED_IN_TEXT:
        yield ((f"  and {len(worst) - _NAMED_IN_TEXT} more, which the JSON form lists", "dim"),)
    yield BLANK


def _text_side(side: ComparedEvaluation) -> str:
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
