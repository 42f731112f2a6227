"""The expressions of ARM templates: their values with unresolved parts, and the scope of their names."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from policyeng.models import lowered
from policyeng.sources.templates import Unresolved

#: The budget for all expressions of one document, in values and in units of 16 characters of text.
MAX_WORK = 500_000
#: The maximum nesting of expressions, including the variables and parameters in them.
MAX_LEVELS = 80
#: The maximum depth of a value, as in all documents.
MAX_VALUE_DEPTH = 128

#: The maximum length of a stand-in for a text; ARM ids are not longer either.
LONGEST_TEXT = 2_048

_LONGEST_STAND_IN = 100


class TooMuchError(Exception):
    """The expressions of a document exceed a limit; the text states which one."""


class ExpressionBudget:
    """The work of the expressions of one document so far, and their current nesting."""

    def __init__(self) -> None:
        self.spent = 0
        self.level = 0

    def charge(self, amount: int) -> None:
        """Add an amount of work.

        Raises:
            TooMuchError: the total is more than `MAX_WORK`.
        """
        self.spent += amount
        if self.spent > MAX_WORK:
            raise TooMuchError(f"the expressions of the document produce more than {MAX_WORK} values")

    def weigh(self, value: object) -> None:
        """Add the size of a complete value.

        Raises:
            TooMuchError: the total is too much, or the value too deep.
        """
        waiting = [(value, 1)]
        while waiting:
            inner, depth = waiting.pop()
            self.charge(1 + len(inner) // 16 if isinstance(inner, str) else 1)
            if depth > MAX_VALUE_DEPTH:
                raise TooMuchError(f"an expression produces a value deeper than {MAX_VALUE_DEPTH} levels")
            if isinstance(inner, dict):
                waiting += [(entry, depth + 1) for entry in inner.values()]
            elif isinstance(inner, list):
                waiting += [(entry, depth + 1) for entry in inner]

    def deeper(self) -> None:
        """Enter one level; the caller decrements `level` again.

        Raises:
            TooMuchError: it is too deep.
        """
        self.level += 1
        if self.level > MAX_LEVELS:
            raise TooMuchError(f"expressions, variables and parameters are nested deeper than {MAX_LEVELS} levels")


def find_unresolved(value: object) -> Unresolved | None:
    """Return the first unresolved part of a value."""
    return next(_unresolved(value), None)


def _unresolved(value: object) -> Iterator[Unresolved]:
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, Unresolved):
            yield inner
        elif isinstance(inner, dict):
            waiting += reversed(inner.values())
        elif isinstance(inner, list):
            waiting += reversed(inner)


def text_of(value: object) -> str:
    """Return the text of a value, or its stand-in; that of null is empty."""
    if isinstance(value, Unresolved):
        return value.text
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value)  # as in .NET, which evaluates templates
    if isinstance(value, str | int | float):
        return str(value)
    part = find_unresolved(value)
    return part.text if part else f"{type(value).__name__}-{_digest(repr(value))}"


def stand_in(name: str, arguments: Sequence[object]) -> str:
    """Return the stand-in for a call, as one segment of an id; equal calls have equal stand-ins."""
    return in_braces(f"{name}({','.join(_last_segments(text_of(argument)) for argument in arguments)})")


def _last_segments(text: str) -> str:
    """Return the last two segments of an id, which are enough in a stand-in; other text is unchanged."""
    return "/".join(text.split("/")[-2:]) if text.startswith("/") else text


def in_braces(text: str) -> str:
    """Return a text as a stand-in: one segment, with braces around it and none inside."""
    inner = text.replace("{", "").replace("}", "").replace("/", "~")
    if len(inner) > _LONGEST_STAND_IN:
        inner = f"{inner[:_LONGEST_STAND_IN]}-{_digest(inner)}"
    return f"{{{inner}}}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


class DeploymentTarget(NamedTuple):
    """What a template is deployed to.

    Attributes:
        id: the ARM id of a resource group, subscription or management group; empty for the tenant. Unknown
            parts are in braces.
        reason: why a part of it is not known.
    """

    id: str
    reason: str = ""

    @property
    def subscription(self) -> str:
        """The ARM id of its subscription; empty if it is not in one."""
        segments = self.id.split("/")
        return "/".join(segments[:3]) if lowered(self.id).startswith("/subscriptions/") else ""

    def stated(self, text: str) -> object:
        """Return an id that begins with the place, or its stand-in."""
        return Unresolved(self.reason, text) if "{" in text else text


@dataclass(frozen=True, eq=False, slots=True)
class Declared:
    """The declarations of a template, by name in lower case; each is evaluated on first use.

    Attributes:
        parameters, variables: functions that return the value and are called once.
        functions: the template's own functions.
        known: the values that were evaluated.
    """

    parameters: Mapping[str, Callable[[], object]]
    variables: Mapping[str, Callable[[], object]]
    functions: Mapping[str, Callable[..., object]]
    known: dict[tuple[str, str], object] = field(default_factory=dict)

    def value(self, kind: str, name: str) -> object:
        """Return the value of a parameter or variable.

        Args:
            kind: `parameters` or `variables`.
            name: as the expression writes it.
        """
        key = (kind, name.lower())
        if key not in self.known:
            one = kind[:-1]
            give = (self.parameters if kind == "parameters" else self.variables).get(name.lower())
            if give is None:
                return Unresolved(f"the template declares no {one} `{name}`", f"{{{name.replace('/', '~')}}}")
            self.known[key] = Unresolved(f"the {one} `{name}` refers to itself", f"{{{name.replace('/', '~')}}}")
            self.known[key] = give()
        return self.known[key]


@dataclass(frozen=True, eq=False, slots=True)
class TemplateScope:
    """The scope of an expression.

    Attributes:
        declared: the declarations of the template.
        place: what it is deployed to.
        work: the budget of the document's expressions.
        copies: the index of each enclosing copy loop, by name in lower case; the empty name is the innermost.
        local: the variables of lambdas, by name in lower case.
        outputs: return an output of a deployment, by the deployment's name or symbolic name and the output's name.
    """

    declared: Declared
    place: DeploymentTarget
    work: ExpressionBudget
    copies: Mapping[str, object] = field(default_factory=dict)
    local: Mapping[str, object] = field(default_factory=dict)
    outputs: Callable[[str, str], object] = lambda deployment, output: None  # noqa: ARG005  # the signature is fixed

    def within(self, name: str, index: object) -> TemplateScope:
        """Return the scope of one iteration of a copy loop."""
        return replace(self, copies={**self.copies, name.lower(): index, "": index})

    def locally(self, variables: Mapping[str, object]) -> TemplateScope:
        """Return the scope of a lambda's body."""
        return replace(self, local={**self.local, **variables})
