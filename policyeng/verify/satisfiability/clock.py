"""Which policies may look at the clock, and the moments at which what they say can change."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from policyeng.bundle import Bundle, Policy
from policyeng.models import JsonObject, lowered

#: Package and text of every Rego module, without lines of comments.
_Modules: TypeAlias = list[tuple[str, str]]
_PACKAGE = re.compile(r"^[ \t]*package[ \t]+([\w.]+)", re.MULTILINE)
#: What is no code in Rego: texts and comments.
_NO_CODE = re.compile(r'"(?:[^"\\\n]|\\.)*+"?|`[^`]*+`?|#[^\n]*')
_COMMENT = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
_REFERENCE = re.compile(r"\bdata\b((?:\.\w+)*)")
#: The clock, or a part of the input that may be it: `input` alone, or with a key that is worked out.
_CLOCK = re.compile(r"as_of|now_ns|\binput\b(?!\.(?:resource|workspace|snapshot|parameters)\b)")
#: In Python the clock, and what reaches an attribute by a name that is worked out, or all of them.
_CLOCKS = frozenset(
    {"as_of", "datetime", "date", "time", "getattr", "vars", "eval", "exec", "fields", "asdict", "astuple"}
)
#: Modules that know no clock. `policyeng.facts.reservations` takes it from what it is handed.
_WITHOUT_CLOCK = re.compile(
    r"(?:__future__|collections|dataclasses|enum|functools|ipaddress|itertools|json|math|re|string|typing)(?:\..*)?"
    r"|policyeng(?:\.facts(?!\.reservations).*|\.models.*)?"
)
_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})?)?")
_NUMBER = re.compile(r"(?<![\w.\-])\d{1,4}(?![\w.\-])")
_MOST_DAYS = 4000


def timeless(bundle: Bundle) -> frozenset[str]:
    """The ids of the policies whose code, with all that it imports, surely does not look at the clock."""
    modules = _modules(bundle)
    return frozenset(policy.id for policy in bundle.policies if _is_timeless(policy, bundle, modules))


def _is_timeless(policy: Policy, bundle: Bundle, modules: _Modules) -> bool:
    if policy.rules:
        return not any(_CLOCK.search(_NO_CODE.sub(" ", text)) for text in _rego_texts(policy, modules))
    texts = _own_texts(policy, bundle, modules)
    return bool(texts) and not any(map(_may_look, texts))


def _may_look(source: str) -> bool:
    """Whether Python may look at the clock: it names it, reaches for names that are worked out, or imports others."""
    for node in ast.walk(ast.parse(source)):
        imported = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        imported += [node.module or "."] if isinstance(node, ast.ImportFrom) else []
        if not all(map(_WITHOUT_CLOCK.fullmatch, imported)):
            return True
        said = (
            {getattr(node, name, None) for name in ("attr", "id", "arg", "name", "value")} if _is_plain(node) else set()
        )
        if _CLOCKS & said or any(isinstance(word, str) and ("as_of" in word or word.startswith("__")) for word in said):
            return True
    return False


def _is_plain(node: ast.AST) -> bool:
    """Whether all that a piece of code says is hashable: names and constants."""
    return isinstance(node, ast.Name | ast.arg | ast.keyword | ast.alias | ast.Constant | ast.Attribute)


def moments(
    bundle: Bundle, parameters: Iterable[JsonObject], documents: Iterable[object], types: Collection[str]
) -> list[datetime]:
    """The moments at which what policies say may change, in order.

    They are the dates in the bundle's data, in the code of the policies that look at the clock and in `documents`,
    and those by so many days earlier or later as a parameter or a number of these policies says.

    Args:
        bundle: the policies in force.
        parameters: by position of the policy, what it judges with.
        documents: estates and what is stated beside them.
        types: what is in the estates, in lower case as `judges` names it; other policies say nothing.
    """
    known, modules = timeless(bundle), _modules(bundle)
    clocked = [
        (policy, given)
        for policy, given in zip(bundle.policies, parameters, strict=True)
        if policy.id not in known and any(lowered(judged.type) in types for judged in policy.header.judges)
    ]
    texts = [text for policy, _ in clocked for text in _own_texts(policy, bundle, modules)]
    dates = {date for document in (bundle.data.get("facts", {}), list(documents), texts) for date in _dates(document)}
    days = {0, *(number for policy, _ in clocked for number in _numbers(policy, bundle, modules))}
    days |= {number for _, given in clocked for number in _whole(given)}
    near = sorted(number for number in days if number <= _MOST_DAYS)
    return sorted({moved for date in dates for number in near for moved in _moved(date, number)})


def _modules(bundle: Bundle) -> _Modules:
    found = [(_COMMENT.sub("", source)) for _, source in bundle.modules]
    return [(package, text) for text in found for package in _PACKAGE.findall(text)]


def _own_texts(policy: Policy, bundle: Bundle, modules: _Modules) -> list[str]:
    """The text of a policy; empty where it is not to be had."""
    if policy.rules:
        return [text for package, text in modules if package == policy.package]
    if policy.python is not None and policy.python.text:  # of an archive, too
        return [policy.python.text.decode(errors="replace")]
    files = [root / policy.file for root in bundle.roots]
    return [file.read_text(encoding="utf-8") for file in files if file.is_file()]


def _rego_texts(policy: Policy, modules: _Modules) -> list[str]:
    """The modules of a policy and all that they refer to below `data`, which may be what lies above or below."""
    waiting, seen = [policy.package], dict[str, str]()
    while waiting:
        reference = waiting.pop()
        for package, text in modules:
            near = f"{package}.".startswith(f"{reference}.") or f"{reference}.".startswith(f"{package}.")
            if text not in seen and (near or not reference):  # `data` alone may be anything
                seen[text] = package
                waiting += [found.removeprefix(".") for found in _REFERENCE.findall(_NO_CODE.sub(" ", text))]
    return list(seen)


def _numbers(policy: Policy, bundle: Bundle, modules: _Modules) -> Iterator[int]:
    """The whole numbers in the code of a policy."""
    for text in _own_texts(policy, bundle, modules):
        if policy.rules:
            yield from map(int, _NUMBER.findall(_NO_CODE.sub(" ", text)))
        else:
            constants = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
            yield from (value for value in constants if isinstance(value, int) and not isinstance(value, bool))


def _dates(document: object) -> Iterator[datetime]:
    """Every date and time that stands in the texts of a document; one without a zone is in UTC."""
    if isinstance(document, Mapping):
        for key, value in document.items():
            if key != "sources":  # when a page was read changes nothing
                yield from _dates(value)
    elif isinstance(document, list | tuple):
        for value in document:
            yield from _dates(value)
    elif isinstance(document, str):
        for text in _DATE.findall(document):
            try:
                date = datetime.fromisoformat(text)
            except ValueError:  # a 30th of February is no moment
                continue
            yield date.astimezone(UTC) if date.tzinfo else date.replace(tzinfo=UTC)


def _whole(document: object) -> Iterator[int]:
    if isinstance(document, Mapping):
        for value in document.values():
            yield from _whole(value)
    elif isinstance(document, list):
        for value in document:
            yield from _whole(value)
    elif isinstance(document, int) and not isinstance(document, bool) and document >= 0:
        yield document


def _moved(date: datetime, days: int) -> Iterator[datetime]:
    for sign in (-1, 1):
        try:
            yield date + sign * timedelta(days=days)
        except OverflowError:  # before the year 1 or after 9999
            continue
