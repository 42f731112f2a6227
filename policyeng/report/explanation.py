"""Render explanations as text, JSON and HTML."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import groupby
from typing import TypeGuard

from policyeng.models import JsonObject, Outcome
from policyeng.models.explanation import ExplanationNode, FindingExplanation
from policyeng.report.escaping import compact, visible
from policyeng.report.layout import wrap
from policyeng.report.phrases import shorten_id, unknown_sentence

#: Evaluations of one expression in a row that text and HTML show, such as the turns of a loop.
MOST_TURNS = 3
#: Characters of a value, which is an object or list, that a line of text shows.
_LONGEST_VALUE = 90
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem }
html { color-scheme: light dark }
code { font: 13px/1.5 ui-monospace, monospace; overflow-wrap: anywhere }
details { margin-left: 1.2rem }
summary { cursor: pointer }
dl { margin: .1rem 0 .3rem 2.6rem; display: grid; grid-template-columns: auto 1fr; gap: 0 1rem }
dd { margin: 0 }
.leaf { margin-left: 2.2rem }
.true, .value { color: light-dark(#17692f, #7fd69a) }
.false, .undefined { color: light-dark(#5b5f66, #a9afb8) }
.unknown { color: light-dark(#8a5200, #f0b96b) }
b { display: inline-block; min-width: 5.5rem; font-weight: 600 }
small { opacity: .75 }
"""


def render_text(explanations: Sequence[FindingExplanation], width: int = 100, *, verbose: bool = False) -> str:
    """Return explanations as text.

    Objects and lists that are longer than a line are cut, single texts and numbers are not.

    Args:
        explanations: of findings.
        width: of a line, in columns.
        verbose: also show what rules of other files evaluated, such as those of libraries.
    """
    return "\n\n".join("\n".join(_finding_lines(each, width, verbose=verbose)) for each in explanations) + "\n"


def render_json(explanations: Sequence[FindingExplanation]) -> str:
    """Return explanations as JSON: a list of findings, each with the tree of its evaluation."""
    document = [
        {
            "policy": explanation.finding.policy,
            "title": explanation.finding.title,
            "resource": explanation.finding.resource,
            "outcome": str(explanation.finding.outcome),
            "complete": explanation.is_whole,
            "unknowns": [{"msg": entry.msg, "path": entry.path} for entry in explanation.finding.unknowns],
            "evaluation": nodes_as_json(explanation.nodes),
        }
        for explanation in explanations
    ]
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def nodes_as_json(nodes: Iterable[ExplanationNode]) -> list[JsonObject]:
    """Return nodes as JSON objects without their empty members."""
    objects = []
    for node in nodes:
        members = {
            "kind": node.kind,
            "outcome": node.outcome,
            "text": node.text,
            "file": node.file,
            "line": node.line,
            "values": dict(node.values),
            "missing": node.missing,
            "unknown": [{"msg": unknown.msg, "path": unknown.path} for unknown in node.unknown],
            "solutions": node.solutions,
            "parts": nodes_as_json(node.parts),
        }
        objects.append({name: value for name, value in members.items() if value not in ("", 0, [], {})})
    return objects


def node_lines(
    nodes: Sequence[ExplanationNode], width: int, *, verbose: bool, indent: int = 0, file: str = ""
) -> Iterator[str]:
    """Yield the lines of nodes.

    Args:
        nodes: of one level.
        width: of a line, in columns.
        verbose: as for `render_text`.
        indent: of the level, in columns.
        file: the one that the line before is in, which is not repeated.
    """
    margin = " " * indent
    for turns in _group_turns(nodes):
        for node in turns[:MOST_TURNS]:
            place = f"{node.file if node.file != file else ''}:{node.line}" if node.line else ""
            yield from _wrap(f"{margin}{node.outcome:<10}{_title(node)}", place, width, indent + 10)
            for name, value in _list_values(node):
                yield f"{margin}{'':<12}{name} = {_shorten(value)}"
            if node.missing:
                yield f"{margin}{'':<12}{visible(node.missing)} has no value"
            for unknown in node.unknown if not any(part.unknown for part in node.parts) else ():
                yield from _wrap(f"{margin}{'':<12}not known: {unknown_sentence(unknown)}", "", width, indent + 14)
            if verbose or file in ("", node.file):
                yield from node_lines(node.parts, width, verbose=verbose, indent=indent + 2, file=node.file)
        if len(turns) > MOST_TURNS:
            yield f"{margin}{'':<10}... and {len(turns) - MOST_TURNS} more evaluations of this expression"


def render_html(explanations: Sequence[FindingExplanation]) -> str:
    """Return explanations as a page of its own, in which the parts of each rule can be folded."""
    sections = "".join(map(_finding_html, explanations))
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Explanation</title><style>{_STYLE}</style>'
    return f'{head}<meta name="viewport" content="width=device-width"><h1>Explanation</h1>{sections}</html>\n'


def _finding_html(explanation: FindingExplanation) -> str:
    finding = explanation.finding
    policy, title, resource = (escape(visible(text)) for text in (finding.policy, finding.title, finding.resource))
    return (
        f"<h2>{policy} <span class={_css(finding.outcome)}>{finding.outcome}</span></h2>"
        f"<p>{title}<br><code>{resource}</code></p>"
        f"{_decisive_html(explanation)}{''.join(map(_node_html, explanation.nodes))}"
    )


def _finding_lines(explanation: FindingExplanation, width: int, *, verbose: bool) -> Iterator[str]:
    finding = explanation.finding
    yield f"{visible(finding.policy)}  {finding.outcome}  {visible(finding.resource)}"
    yield f"  {visible(finding.title)}"
    yield ""
    yield from node_lines(explanation.nodes, width, verbose=verbose)
    if not explanation.is_whole:
        yield "... the evaluation is too long to show all of it"
    if not explanation.nodes and finding.outcome is Outcome.ERROR:
        yield from (f"The policy was not evaluated: {visible(reason.msg)}" for reason in finding.unknowns)
    elif not explanation.nodes:
        yield "The policy was not evaluated, because it is not known whether it applies to the resource."
    yield from _list_decisive(explanation, width)


def _list_decisive(explanation: FindingExplanation, width: int) -> Iterator[str]:
    """Yield lines that state what would decide an unknown finding."""
    if explanation.finding.outcome is Outcome.UNKNOWN and explanation.finding.unknowns:
        yield ""
        yield "These values decide the finding:"
        for unknown in explanation.finding.unknowns:
            yield from _wrap(f"  - {unknown_sentence(unknown)}", "", width, 4)


def _group_turns(nodes: Sequence[ExplanationNode]) -> Iterator[list[ExplanationNode]]:
    for _, turns in groupby(nodes, key=lambda node: (node.kind, node.text, node.file, node.line)):
        yield list(turns)


def _title(node: ExplanationNode) -> str:
    text = visible(node.text)
    if node.kind != "rule":
        return f"{text} ({node.solutions} times)" if node.solutions > 1 else text
    arguments = [_shorten(value) for name, value in node.values.items() if name != "result"]
    return f"{text}({', '.join(arguments)})" if arguments else text


def _list_values(node: ExplanationNode) -> Iterator[tuple[str, object]]:
    for name, value in node.values.items():
        # The value of a condition is its outcome, and a loop shows its values in what follows.
        if node.kind == "expression" and (name == node.text or node.solutions > 1):
            continue
        if node.kind == "rule" and name != "result":
            continue
        if node.kind == "expression" and _is_resource(value):
            continue  # calls name it, and its members that count are values of their own
        yield visible(name), value


def _shorten(value: object) -> str:
    """Return a value on a line: of a resource only its name, of another long object or list only the beginning."""
    if _is_resource(value):
        return f'{{"id": "{shorten_id(value["id"])}", ...}}'
    text = compact(value)
    is_long = isinstance(value, dict | list) and len(text) > _LONGEST_VALUE
    return f"{text[: _LONGEST_VALUE - 4]} ..." if is_long else text


def _is_resource(value: object) -> TypeGuard[JsonObject]:
    return isinstance(value, dict) and isinstance(value.get("id"), str) and len(value) > 1


def _wrap(text: str, place: str, width: int, indent: int) -> Iterator[str]:
    """Yield the lines of a text, with a place at the end if there is room, or on a line of its own."""
    first, *others = [text] if len(text) <= width else wrap(text, width)
    lines = [first, *(" " * indent + line.strip() for line in others)]
    if place and len(lines[-1]) + 2 + len(place) <= width:
        lines[-1] = f"{lines[-1]}{place:>{width - len(lines[-1])}}"
    elif place:
        lines.append(f"{place:>{width}}")
    yield from lines


def _css(outcome: Outcome) -> str:
    return "true" if outcome is Outcome.PASS else "unknown" if outcome is Outcome.UNKNOWN else "false"


def _decisive_html(explanation: FindingExplanation) -> str:
    if explanation.finding.outcome is not Outcome.UNKNOWN:
        return ""
    entries = "".join(f"<li>{escape(unknown_sentence(unknown))}" for unknown in explanation.finding.unknowns)
    return f"<p>These values decide the finding:</p><ul>{entries}</ul>"


def _node_html(node: ExplanationNode) -> str:
    place = f" <small>{escape(visible(node.file))}:{node.line}</small>" if node.line else ""
    head = f"<b class={escape(node.outcome)}>{escape(node.outcome)}</b><code>{escape(_title(node))}</code>{place}"
    rows = [(name, _shorten(value)) for name, value in _list_values(node)]
    rows += [(visible(node.missing), "has no value")] if node.missing else []
    rows += [("not known", unknown_sentence(unknown)) for unknown in node.unknown]
    cells = "".join(f"<dt><code>{escape(name)}</code><dd><code>{escape(text)}</code>" for name, text in rows)
    values = f"<dl>{cells}</dl>" if cells else ""
    if not node.parts:
        return f"<div class=leaf>{head}</div>{values}"
    turns = [turn for group in _group_turns(node.parts) for turn in group[:MOST_TURNS]]
    is_open = " open" if node.kind == "rule" else ""
    return f"<details{is_open}><summary>{head}</summary>{values}{''.join(map(_node_html, turns))}</details>"
