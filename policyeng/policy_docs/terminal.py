"""The page of a policy for a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from policyeng.bundle.header import Verdict
from policyeng.models import JsonObject
from policyeng.parsing.yaml_writer import flow
from policyeng.policy_docs.page import (
    ABSENCE,
    UNRECORDED,
    PolicyPage,
    case_groups,
    control_lines,
    describe_narrowing,
    describe_type,
    exemption_words,
    other_words,
    patch_words,
    pointer_words,
    shared_case,
    type_words,
)
from policyeng.report.escaping import compact, visible
from policyeng.report.layout import BLANK, STYLES, Line, labelled, text_form, wrap, wrap_paragraph

#: Longer lines of text are hard to read.
_WIDEST = 100
_VERDICTS: Mapping[Verdict, str] = {"pass": "green", "fail": "red", "unknown": "yellow", "not_judged": "dim"}
#: Parts of ids that are alike in most of them.
_USUAL = re.compile(
    r"(?<=/subscriptions/)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<=/)providers/[\w.]+(?=/)", re.I
)


def _lines(page: PolicyPage, room: int) -> Iterator[Line]:
    """Yield the page. Text is wrapped at 100 columns where there are more; changes of cases take the whole width."""
    width = min(room, _WIDEST)
    yield from _head(page, width)
    sections = (
        ("Why", _why(page, width)),
        ("Evaluates", _render_types(page, width)),
        ("Reads", _read(page, width)),
        ("Reads of other resources", _others(page, width)),
        ("Parameters", _parameters(page, width)),
        ("Fix", _render_remediation(page, width)),
        ("Exemptions", wrap_paragraph(exemption_words(page.policy), width, indent=2)),
        ("Run only this policy", _commands(page)),
        (f"Cases ({page.number_of_cases})", _cases(page, room)),  # last, since they are many
    )
    for title, lines in sections:
        below = list(lines)
        if below:
            yield BLANK
            yield ((title, "bold"),)
            yield from below


#: Returns a page as text.
render = text_form(_lines)


def _head(page: PolicyPage, width: int) -> Iterator[Line]:
    policy, header = page.policy, page.policy.header
    lines = wrap(visible(f"{header.id}  {header.title}"), width)
    for text in (*lines, "=" * max(map(len, lines))):
        yield ((text, "bold"),)
    yield (header.severity.value, STYLES[header.severity]), (f" · {page.language}", "")
    yield from labelled("file", visible(policy.file), width, indent=0)
    yield from labelled("area", visible(policy.area), width, indent=0)
    yield from labelled("since", visible(header.since), width, indent=0)


def _why(page: PolicyPage, width: int) -> Iterator[Line]:
    header = page.policy.header
    for part in re.split(r"\n\s*\n", header.description):
        yield from wrap_paragraph(_line(part), width, indent=2)
    yield from labelled("source", _line(header.source), width, indent=2)
    for name, source in page.cited.items():
        yield from labelled("", _line(f"{name}: {source.title}"), width, indent=2)
    for line in control_lines(page):
        yield from labelled("controls", visible(line), width, indent=2)
    for related in header.related_resources:
        yield from labelled("see", _line(f"{related.description} {related.ref}"), width, indent=2)


def _render_types(page: PolicyPage, width: int) -> Iterator[Line]:
    for target in page.policy.header.judges:
        yield from _indent(visible(describe_type(target, str)), width)
    for words in describe_narrowing(page.policy, "`{}`".format):
        yield from wrap_paragraph(visible(words), width, indent=2)


def _read(page: PolicyPage, width: int) -> Iterator[Line]:
    absences = page.absences
    fields = {pointer: visible(pointer_words(pointer, str)) for pointer in absences}
    words = {pointer: f"absent: {ABSENCE[found]}" if found else "" for pointer, found in absences.items()}
    room = width - 4 - max(map(len, words.values()), default=0)
    column = max((len(field) for field in fields.values() if len(field) <= room), default=0)
    for pointer, field in fields.items():
        found = absences[pointer]
        entry = (words[pointer], _VERDICTS[found] if found else "")
        if len(field) <= column:
            yield (f"  {field:<{column}}  ", ""), entry
        else:
            yield ((f"  {field}", ""),)
            yield ("    ", ""), entry


def _others(page: PolicyPage, width: int) -> Iterator[Line]:
    if not page.observed.is_whole:
        yield from _indent(UNRECORDED, width)
    for kind, pointers in page.observed.others.items():
        yield from _indent(visible(other_words(kind, str)), width)
        if pointers:
            yield from labelled("fields", ", ".join(pointer_words(one, str) for one in pointers), width, indent=4)


def _parameters(page: PolicyPage, width: int) -> Iterator[Line]:
    for name, schema in page.policy.header.parameters.items():
        yield ("  ", ""), (visible(name), "bold")
        yield from labelled("type", visible(type_words(schema)), width, indent=4)
        yield from labelled("default", compact(schema["default"]), width, indent=4)
        if (value := page.changed(name)) is not None:
            yield from labelled("here", compact(value), width, indent=4, style="bold")
        yield from labelled("meaning", _line(str(schema.get("description", ""))), width, indent=4)


def _cases(page: PolicyPage, width: int) -> Iterator[Line]:
    if page.cases is None:
        return
    if shared := shared_case(page.cases):
        yield (("  All start with", ""),)
        yield from _change(shared, width)
    for group in case_groups(page.cases):
        yield ("  ", ""), (f"{group.title} ({len(group.cases)})", _VERDICTS[group.verdict])
        for name, change in group.cases.items():
            yield from wrap_paragraph(visible(name), width, indent=4)
            yield from _change(change, width)


def _render_remediation(page: PolicyPage, width: int) -> Iterator[Line]:
    remediation = page.policy.header.remediation
    if remediation is None:
        return
    yield from wrap_paragraph(_line(remediation.text), width, indent=2, style="green")
    for patch in remediation.patches:
        yield from labelled("patch", compact(list(patch.patch)), width, indent=2)
        yield from wrap_paragraph(patch_words(page.policy, patch, "`{}`".format), width, indent=4)


def _commands(page: PolicyPage) -> Iterator[Line]:
    for command in page.commands():
        yield ((f"  {visible(command)}", ""),)


def _change(change: JsonObject, width: int) -> Iterator[Line]:
    """Yield the edits of a case: on one line, or one for each key.

    The pages in Markdown have all of what is cut short.
    """
    room, whole = width - 6, _render_summary(change)
    lines = [whole] if 0 < len(whole) <= room else [_render_summary({name: value}) for name, value in change.items()]
    for text in lines:
        shown = text if len(text) <= room else f"{text[: room - 2]} …"
        yield ((f"      {shown}", "dim"),)


def _render_summary(change: JsonObject) -> str:
    return _USUAL.sub("…", visible(flow(change)[1:-1]))


def _indent(text: str, width: int) -> Iterator[Line]:
    """Text of which all lines but the first are indented twice."""
    for number, part in enumerate(wrap(text, width - 4)):
        yield ((f"{'    ' if number else '  '}{part}", ""),)


def _line(text: str) -> str:
    return visible(" ".join(text.split()))
