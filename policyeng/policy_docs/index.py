"""The index of the pages, and the directory that contains them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from policyeng.models import Severity
from policyeng.policy_docs import markdown
from policyeng.policy_docs.page import PolicyPage
from policyeng.report.escaping import code, markdown_text, prose, table
from policyeng.report.phrases import count

#: The first line of every page of a directory: a file that begins otherwise is not ours.
MARK = "<!-- Written by `policyeng policies list --format markdown --output`: edits are lost. -->"
_INDEX = "README.md"


def directory(pages: Sequence[PolicyPage], name: str, revision: str) -> dict[str, str]:
    """Return the files of a directory: the index as `README.md`, and a page for each policy, under its id."""
    names = _names(pages)
    files = {_INDEX: index(pages, name, revision, names)}
    files |= {names[page.policy.id]: markdown.render(page) for page in pages}
    return {file: f"{MARK}\n\n{text}" for file, text in files.items()}


def index(pages: Sequence[PolicyPage], name: str, revision: str, names: Mapping[str, str] | None = None) -> str:
    """Return the policies by area, their number, and the origin of the page.

    Args:
        pages: of all policies.
        name: of the bundle.
        revision: of the bundle; empty for none.
        names: the file of a policy's page, by id; without it nothing is linked.
    """
    areas = {
        area: list(members) for area, members in groupby(sorted(pages, key=_place), key=lambda page: page.policy.area)
    }
    parts = [f"# Policies of {markdown_text(f'{name} {revision}'.rstrip())}", _counts(pages)]
    if len(areas) > 1:
        parts.append(_overview(areas))
    for area, members in areas.items():
        parts += [f"## {markdown_text(area)}"] if area else []
        parts.append(table(("Id", "Title", "Severity", "Language", "Source"), _rows(members, names or {})))
    parts += _legend(pages)
    parts.append(
        "The index and the pages are generated from the headers and cases of the policies by "
        "`policyeng policies list --format markdown --output DIR`. To change a page, change the policy."
    )
    return "\n\n".join(parts) + "\n"


def _place(page: PolicyPage) -> tuple[str, str]:
    return page.policy.area, page.policy.id


def _rows(pages: Iterable[PolicyPage], names: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    for page in pages:
        header = page.policy.header
        identity = markdown_text(header.id)
        linked = f"[{identity}]({names[header.id]})" if header.id in names else identity
        yield linked, prose(header.title), header.severity.value, page.language, prose(header.source)


def _legend(pages: Iterable[PolicyPage]) -> Iterator[str]:
    """Yield the meaning of the names in the column of sources, if the bundle states it."""
    cited = {name: source for page in pages for name, source in page.cited.items()}
    if cited:
        yield "Sources:"
        rows = [
            (markdown_text(name), prose(title), code(place) if place else "")
            for name, (title, place) in sorted(cited.items())
        ]
        yield table(("Source", "Title", "Where"), rows)


def _counts(pages: Sequence[PolicyPage]) -> str:
    cases = sum(page.number_of_cases for page in pages)
    whole = count(len(pages), "policy") + (f" with {count(cases, 'case')}" if cases else "")
    by_language = {name: [page for page in pages if page.policy.language == name] for name in ("rego", "python")}
    twins = sum(page.policy.python is not None for page in by_language["rego"])
    words = [f"{len(written)} in {name.capitalize()}" for name, written in by_language.items() if written]
    if twins:
        words[0] += f" ({twins} with a Python twin)"
    return ": ".join(filter(None, (whole, ", ".join(words)))) + "."


def _overview(areas: Mapping[str, Sequence[PolicyPage]]) -> str:
    """Return the number of policies by severity, for each area."""
    levels = list(reversed(Severity))
    rows = {
        f"[{area}](#{area})" if re.fullmatch(r"[a-z0-9_]+", area) else markdown_text(area): members
        for area, members in areas.items()
    }
    rows["all"] = [page for members in areas.values() for page in members]
    counted = {title: Counter(page.policy.header.severity for page in members) for title, members in rows.items()}
    return table(
        ("Area", *levels, "all"),
        [(title, *(str(of[level] or "") for level in levels), str(of.total())) for title, of in counted.items()],
    )


def _names(pages: Iterable[PolicyPage]) -> dict[str, str]:
    """Return a unique file name for every id, without characters that files or links may not contain."""
    names: dict[str, str] = {}
    taken = {_INDEX.lower()}
    for page in pages:
        stem = re.sub(r"[^A-Za-z0-9._-]+", "-", page.policy.id).lstrip(".-") or "policy"
        name, number = f"{stem}.md", 1
        while name.lower() in taken:
            number += 1
            name = f"{stem}-{number}.md"
        taken.add(name.lower())
        names[page.policy.id] = name
    return names
