"""The page of a policy as Markdown. Text of the policy is escaped: it cannot format, link or mention."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from policyeng.bundle.header import PARAMETER
from policyeng.parsing.yaml_writer import block
from policyeng.policy_docs.page import (
    ABSENCE,
    UNRECORDED,
    PolicyPage,
    case_groups,
    control_lines,
    describe_narrowing,
    describe_strictness,
    describe_type,
    exemption_words,
    other_words,
    patch_words,
    pointer_words,
    shared_case,
    type_words,
)
from policyeng.report.escaping import code, compact, fold, markdown_text, prose, table
from policyeng.report.phrases import count

#: More lines of cases than this fold away.
_MOST_LINES = 40
_URL = re.compile(r"https?://[\w./~%&=?#+:@-]+")


def render(page: PolicyPage) -> str:
    """Return the page; it ends with a newline."""
    header = page.policy.header
    parts = [f"# {markdown_text(header.id)}: {prose(header.title)}", _facts(page)]
    parts += _section("Why", _why(page))
    parts += _section("Evaluated resources", _render_types(page))
    parts += _section("Reads", _read(page))
    parts += _section("Parameters", _parameters(page))
    parts += _section("Fix", _render_remediation(page))
    parts += _section("Exemptions", [exemption_words(page.policy)])
    parts += _section("Run only this policy", _commands(page))
    parts += _section("Cases", _cases(page))  # last, since they are many
    return "\n\n".join(parts) + "\n"


def fenced(text: str, language: str) -> str:
    """Return a block of code, fenced by more backticks than it has itself."""
    ticks = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, ticks + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _section(title: str, paragraphs: Iterator[str] | list[str]) -> Iterator[str]:
    """Yield a heading and its content; nothing without content."""
    below = list(paragraphs)
    yield from [f"## {title}", *below] if below else ()


def _facts(page: PolicyPage) -> str:
    policy, header = page.policy, page.policy.header
    file = code(policy.file)
    cells = {
        "Severity": header.severity.value,
        "Language": page.language,
        "Area": code(policy.area) if policy.area else "",
        "Since": markdown_text(header.since),
        "File": f"[{file}]({page.link})" if page.link else file,
    }
    named = {title: cell for title, cell in cells.items() if cell}
    return table([*named], [[*named.values()]])


def _why(page: PolicyPage) -> Iterator[str]:
    header = page.policy.header
    yield from (prose(" ".join(part.split())) for part in re.split(r"\n\s*\n", header.description) if part.strip())
    lines = [f"Source: {prose(header.source)}"] if header.source else []
    lines += [f"{markdown_text(name)}: {prose(source.title)}" for name, source in page.cited.items()]
    lines += [f"Controls: {markdown_text(line)}" for line in control_lines(page)]
    lines += [f"See {_link(related.ref, related.description)}" for related in header.related_resources]
    if lines:
        yield "\n".join(f"- {line}" for line in lines)


def _link(ref: str, description: str) -> str:
    if not _URL.fullmatch(ref):
        return f"{prose(description)}: {code(ref)}" if description else code(ref)
    return f"[{prose(description)}]({ref})" if description else f"<{ref}>"


def _render_types(page: PolicyPage) -> Iterator[str]:
    yield "\n".join(f"- {describe_type(target, code)}" for target in page.policy.header.judges)
    yield from map(prose, describe_narrowing(page.policy, "`{}`".format))


def _read(page: PolicyPage) -> Iterator[str]:
    absences = page.absences
    if absences:
        rows = [(pointer_words(at, code), ABSENCE[found] if found else "") for at, found in absences.items()]
        yield table(("Field", "If it is missing, the resource"), rows)
    if not page.observed.is_whole:
        yield UNRECORDED
    if page.observed.others:
        yield "Its cases also read these fields of other resources:"
        others = [
            (other_words(kind, code), ", ".join(pointer_words(pointer, code) for pointer in pointers))
            for kind, pointers in page.observed.others.items()
        ]
        yield table(("Resource", "Fields"), others)
    yield from _contracts(page)


def _contracts(page: PolicyPage) -> Iterator[str]:
    """Yield the promises of the header, one line each."""
    header = page.policy.header
    fields = {place: way for place, way in header.monotone_in.items() if not place.startswith(PARAMETER)}
    named = {place.removeprefix(PARAMETER): way for place, way in header.monotone_in.items() if place not in fields}
    lines = (
        ("A stricter value adds no denial", [describe_strictness(place, way, code) for place, way in fields.items()]),
        (
            "A stricter parameter removes no denial",
            [describe_strictness(name, way, code) for name, way in named.items()],
        ),
        ("The value of these fields changes nothing", [pointer_words(place, code) for place in header.insensitive_to]),
    )
    yield from (f"{promise}: {'; '.join(places)}." for promise, places in lines if places)


def _parameters(page: PolicyPage) -> Iterator[str]:
    header = page.policy.header
    if not header.parameters:
        return
    rows = [
        (
            code(name),
            markdown_text(type_words(schema)),
            _values(page, name),
            prose(str(schema.get("description", ""))),
        )
        for name, schema in header.parameters.items()
    ]
    yield table(("Name", "Type", "Default", "Meaning"), rows)
    place = f'[parameters."{header.id}"]'
    yield f"Set them in `policyeng.toml`, below {code(place)}."


def _values(page: PolicyPage, name: str) -> str:
    default = code(compact(page.policy.header.parameters[name]["default"]))
    value = page.changed(name)
    return default if value is None else f"{default}; here {code(compact(value))}"


def _cases(page: PolicyPage) -> Iterator[str]:
    if page.cases is None:
        return
    absent = sum(found is not None for found in page.absences.values())
    implied = f", and {count(absent, 'test')} of missing fields, in the table above" if absent else ""
    yield f"{count(page.number_of_cases, 'case')}{implied}. Each edits the compliant baselines and states the outcome."
    if shared := shared_case(page.cases):
        yield "All of them start with:"
        yield fenced(block(shared), "yaml")
    for group in case_groups(page.cases):
        text = block(group.cases)
        shown = fenced(text, "yaml")
        if text.count("\n") < _MOST_LINES:
            yield f"### {group.title}"
            yield shown
        else:
            yield fold(f"<b>{group.title}</b>: {count(len(group.cases), 'case')}", shown)


def _render_remediation(page: PolicyPage) -> Iterator[str]:
    remediation = page.policy.header.remediation
    if remediation is None:
        return
    yield prose(" ".join(remediation.text.split()))
    for patch in remediation.patches:
        yield f"As a JSON Patch {patch_words(page.policy, patch, code)}:"
        steps = ",\n".join(f"  {json.dumps(step, ensure_ascii=False)}" for step in patch.patch)
        yield fenced(f"[\n{steps}\n]", "json")


def _commands(page: PolicyPage) -> Iterator[str]:
    yield fenced("\n".join(page.commands()), "sh")
