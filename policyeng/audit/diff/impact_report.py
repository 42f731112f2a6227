"""Reports of impacts as text, Markdown, CSV and JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from policyeng.audit.diff.impact import FlipCounts, Impact, Shifted
from policyeng.audit.diff.phrases import flip_words
from policyeng.audit.diff.tables import as_csv, as_json
from policyeng.report.escaping import markdown_code, markdown_text, visible
from policyeng.report.layout import BLANK, LABEL, STYLES, Line, heading, labelled, render_lines
from policyeng.report.markdown_tables import fold, table
from policyeng.report.phrases import count, format_name, shorten_id, to_the_second

_TITLES = ("newly failing", "newly passing", "newly undecided", "judged no more", "otherwise")
_NOBODY = "(no owner)"
#: How many flips the text names; the other forms have more.
_NAMED = 20


def text(impacts: Sequence[Impact], *, color: bool = False, width: int = 100) -> str:
    """Return the counts by policy and by owner, and the most severe flips."""
    return render_lines((line for impact in impacts for line in _lines(impact, max(width, 40))), color=color)


def _lines(impact: Impact, width: int) -> Iterator[Line]:
    yield from heading(visible(f"{impact.estate}, run {impact.run} of {to_the_second(impact.as_of)}"))
    for title, tallies in (("policy", impact.by_policy), ("owner", impact.by_owner)):
        if tallies:
            yield from _table(title, tallies)
            yield BLANK
    failing = [one for one in impact.listed if one.shift == "newly failing"]
    for one in sorted(failing, key=lambda one: -one.flip.finding.severity.rank)[:_NAMED]:
        yield from _render_shift(one)
    if len(failing) > _NAMED or impact.omitted:
        yield (("  and more, which --format csv and json list", "dim"),)
    if failing:
        yield BLANK
    for problem in impact.problems:
        yield from labelled(problem.level, visible(f"{problem.place}: {problem.message}"), width, indent=2)
    yield from labelled("was", visible(f"{format_name(impact.was)} ({impact.was.digest[:12]})"), width, indent=2)
    would_be = impact.would_be
    yield from labelled("would be", visible(f"{format_name(would_be)} ({would_be.digest[:12]})"), width, indent=2)
    yield from labelled("in all", in_all(impact), width, indent=2)
    yield BLANK


def _table(title: str, tallies: Sequence[FlipCounts]) -> Iterator[Line]:
    names = [_name(title, tally) for tally in tallies]
    width = max(len(title), *map(len, names))
    yield ((f"  {title:<{width}}  {'  '.join(_TITLES)}", "dim"),)
    for name, tally in zip(names, tallies, strict=True):
        cells = (f"{number or '-':>{len(one)}}" for one, number in zip(_TITLES, _numbers(tally), strict=True))
        yield ((f"  {name:<{width}}  {'  '.join(cells)}", ""),)


def _name(title: str, tally: FlipCounts) -> str:
    return visible(tally.name) or (_NOBODY if title == "owner" else "")


def _numbers(tally: FlipCounts) -> tuple[int, ...]:
    return tally.failing, tally.passing, tally.undecided, tally.unjudged, tally.otherwise


def _render_shift(one: Shifted) -> Iterator[Line]:
    finding = one.flip.finding
    words = f"  {shorten_id(finding.resource)}, {visible(one.part)}: {flip_words(one.flip)}: {visible(finding.title)}"
    severity = (f"  {finding.severity:<{LABEL}}", STYLES[finding.severity])
    yield severity, (visible(finding.policy), "bold"), (words, "")


def in_all(impact: Impact) -> str:
    """Return the counts of a run as a sentence."""
    words = [f"{number} {title}" for title, number in zip(_TITLES, _numbers(impact.total), strict=True) if number]
    return f"{', '.join(words) or 'nothing would change'}, in {count(impact.parts, 'part')}"


def markdown(impacts: Sequence[Impact]) -> str:
    """Return tables by policy and by owner, with folded flips."""
    return "\n".join(f"{part}\n" for impact in impacts for part in _markdown(impact))


def _markdown(impact: Impact) -> Iterator[str]:
    yield f"## {markdown_text(impact.estate)}, run {impact.run}: {in_all(impact)}\n"
    for title, tallies in (("policy", impact.by_policy), ("owner", impact.by_owner)):
        rows = ([markdown_text(_name(title, tally)), *map(str, _numbers(tally))] for tally in tallies)
        yield f"{table((title.capitalize(), *map(str.capitalize, _TITLES)), rows)}\n"
    if impact.listed:
        rows = ([one.shift, *map(markdown_code, _cells(one)[2:])] for one in impact.listed)
        more = f", and {impact.omitted} more" if impact.omitted else ""
        titles = ("Shift", "Severity", "Policy", "Owner", "Part", "Resource", "Flip")
        yield f"{fold(f'{len(impact.listed)} findings{more}', table(titles, rows))}\n"
    yield from (
        f"- **{one.level}**: {markdown_code(one.place)}: {markdown_text(one.message)}" for one in impact.problems
    )


def _cells(one: Shifted) -> list[str]:
    finding = one.flip.finding
    where = [one.owner or _NOBODY, one.part, finding.resource]
    return [one.shift, finding.title, str(finding.severity), finding.policy, *where, flip_words(one.flip)]


def csv(impacts: Sequence[Impact]) -> str:
    """Return a row for each listed flip."""
    rows = ([impact.estate, str(impact.run), *_cells(one)] for impact in impacts for one in impact.listed)
    titles = ("estate", "run", "shift", "title", "severity", "policy", "owner", "part", "resource", "flip")
    return as_csv(titles, rows)


FORMS: Mapping[str, Callable[[Sequence[Impact]], str]] = {
    "text": text,
    "json": lambda impacts: as_json("impacts", impacts),
    "csv": csv,
    "markdown": markdown,
}
