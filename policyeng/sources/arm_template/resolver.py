"""Evaluation of the expressions and copy loops in a JSON value, and separation of known and unknown parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from policyeng.models import JsonObject, lowered
from policyeng.parsing.json_pointer import escaped
from policyeng.parsing.json_text import shortened
from policyeng.sources.arm_template.evaluator import evaluated
from policyeng.sources.arm_template.expressions import is_expression
from policyeng.sources.arm_template.scope import TemplateScope
from policyeng.sources.arm_template.unresolved import MAX_VALUE_DEPTH, TooMuchError, text_of
from policyeng.sources.parsed import kind_of
from policyeng.sources.template_parameters import Unresolved

#: The maximum number of copies in one loop in ARM.
MAX_COPIES = 800


@dataclass(eq=False, slots=True)
class Resolver:
    """An evaluator of the values of one resource, variable or parameter.

    Attributes:
        scope: the scope of its expressions.
        base: the JSON Pointer of its resource in the document.
        fields: by pointer into the resource, the pointer in the document of a value that a copy loop created.
    """

    scope: TemplateScope
    base: str = ""
    fields: dict[str, str] = field(default_factory=dict)

    def value(self, written: object, there: str = "", here: str = "") -> object:
        """Evaluate the expressions in a JSON value; unknown parts are unresolved, with their expressions.

        Args:
            written: the value in the document.
            there: its JSON Pointer in the document.
            here: its JSON Pointer in the result.
        """
        work = self.scope.work
        level = work.level
        try:
            return self._value(written, there or self.base, here, 0)
        except TooMuchError as error:
            work.level = level
            return Unresolved(str(error), "{too much}")

    def _value(self, written: object, there: str, here: str, depth: int) -> object:
        self.scope.work.charge(1)
        if depth > MAX_VALUE_DEPTH:
            raise TooMuchError(f"a value is deeper than {MAX_VALUE_DEPTH} levels")
        if isinstance(written, str):
            return self._text(written)
        if isinstance(written, list):
            return [
                self._value(entry, f"{there}/{index}", f"{here}/{index}", depth + 1)
                for index, entry in enumerate(written)
            ]
        if isinstance(written, dict):
            return self._object(written, there, here, depth)
        return written

    def _text(self, written: str) -> object:
        value = evaluated(written, self.scope)
        return _add_expression(value, written) if is_expression(written) else value

    def _object(self, written: JsonObject, there: str, here: str, depth: int) -> object:
        result: JsonObject = {}
        for key, inner in written.items():
            place = f"{there}/{escaped(key)}"
            if key == "copy" and is_copies(inner):
                for index, loop in enumerate(inner):
                    name = str(loop["name"])
                    result[name] = self._copied(loop, f"{place}/{index}", f"{here}/{escaped(name)}", depth)
                continue
            value = evaluated(key, self.scope)
            if isinstance(value, Unresolved) and not value.text.startswith("/"):
                return _add_expression(value, key)
            name = text_of(value)
            result[name] = self._value(inner, place, f"{here}/{escaped(name)}", depth + 1)
            if name != key:
                self.fields[f"{here}/{escaped(name)}"] = place
        return result

    def _copied(self, loop: JsonObject, there: str, here: str, depth: int) -> object:
        """Expand a copy loop of a property or variable: `{"name", "count", "input"}`."""
        self.fields[here] = there
        count = self._text(loop["count"]) if isinstance(loop["count"], str) else loop["count"]
        unfit = unfit_count(count)
        if unfit:
            return Unresolved(unfit, "{copy}")
        entries: list[object] = []
        outer = self.scope
        for index in range(int(str(count))):
            self.scope = outer.within(str(loop["name"]), index)
            self.fields[f"{here}/{index}"] = f"{there}/input"
            try:
                entries.append(self._value(loop["input"], f"{there}/input", f"{here}/{index}", depth + 1))
            finally:
                self.scope = outer
        return entries


def is_copies(value: object) -> bool:
    """Check whether the value of `copy` in an object is a list of loops for its properties.

    Loops with an escaped count belong to a template that is a value here.
    """
    if not isinstance(value, list) or not value:
        return False
    return all(
        isinstance(loop, dict) and {"name", "count", "input"} <= loop.keys() and not str(loop["count"]).startswith("[[")
        for loop in value
    )


def unfit_count(count: object) -> str:
    """Return why a number of copies is not valid, or an empty string."""
    if isinstance(count, Unresolved):
        return f"the number of copies is not known: {count.reason}"
    if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= MAX_COPIES:
        shown = f"`{count}`" if isinstance(count, int | str) else kind_of(count)
        return f"the `count` of a copy loop is {shown}; it should be 0 to {MAX_COPIES}"
    return ""


def _add_expression(value: object, expression: str) -> object:
    """Add the expression to the reason of each unknown part of a value."""
    if isinstance(value, Unresolved):
        shown = f"`{shortened(expression)}`"
        return value if value.reason.startswith("`[") else Unresolved(f"{shown}: {value.reason}", value.text)
    if isinstance(value, dict):
        return {key: _add_expression(inner, expression) for key, inner in value.items()}
    return [_add_expression(inner, expression) for inner in value] if isinstance(value, list) else value


class SettledValue(NamedTuple):
    """A value without its unknown parts.

    Attributes:
        value: without nulls in objects, which ARM treats as absent; null in place of an unknown entry of a list.
        unreadable: by JSON Pointer into it, why a part is not known.
    """

    value: object
    unreadable: Mapping[str, str]


def remove_unknown(value: object, is_known: frozenset[str], scope: str) -> SettledValue:
    """Remove unknown parts.

    Args:
        value: the result of a `Resolver`.
        is_known: the ids of the document's resources in lower case, including those with stand-ins. Such an id
            identifies a resource.
        scope: what everything is deployed to; an id may be unknown in this part only.
    """
    unreadable: dict[str, str] = {}
    return SettledValue(_remove_unresolved(value, "", unreadable, _Ids(is_known, scope)), unreadable)


class _Ids(NamedTuple):
    known: frozenset[str]
    scope: str

    def says_which(self, text: str) -> bool:
        """Check whether an id with stand-ins identifies a resource."""
        folded = lowered(text)
        if folded in self.known:
            return True
        return any(
            folded.startswith(f"{start}/") and "{" not in folded[len(start) :]
            for start in _scope_prefixes(lowered(self.scope))
        )


def _scope_prefixes(scope: str) -> Iterator[str]:
    """Yield the resource group and the subscription that a document is deployed to."""
    yield scope
    if scope.startswith("/subscriptions/"):
        yield "/".join(scope.split("/")[:3])


def _remove_unresolved(value: object, pointer: str, unreadable: dict[str, str], ids: _Ids) -> object:
    if isinstance(value, Unresolved):
        if value.text.startswith("/subscriptions/") and ids.says_which(value.text):
            return value.text
        unreadable[pointer] = value.reason
        return None
    if isinstance(value, dict):
        result = {
            key: _remove_unresolved(inner, f"{pointer}/{escaped(key)}", unreadable, ids) for key, inner in value.items()
        }
        return {key: inner for key, inner in result.items() if inner is not None}
    if isinstance(value, list):
        return [_remove_unresolved(inner, f"{pointer}/{index}", unreadable, ids) for index, inner in enumerate(value)]
    return value
