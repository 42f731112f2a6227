"""Compile expressions such as `[concat(field('name'), '-logs')]` to closures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import RLock
from typing import Any, NamedTuple

from policyeng.azure_policy.aliases import AliasTable, UnknownAliasError
from policyeng.azure_policy.functions import FUNCTIONS, UNDECIDABLE, get_member
from policyeng.azure_policy.values import MISSING, STAR, NotKnown, Steps, Value, each_item, gather, read, truth
from policyeng.models import JsonObject, lowered
from policyeng.parsing.arm_expressions import (
    ExpressionError,
    FunctionCall,
    Literal,
    Member,
    Node,
    is_expression,
    parsed,
    plain,
)
from policyeng.parsing.json_text import shortened
from policyeng.rego.markers import Undecided

#: Held while a name that is known late is compiled: threads of a server share the compilers.
_COMPILING = RLock()
#: Nested counts of one definition.
MAX_COUNTS = 8
#: Functions that are compiled by a method of their own.
_SPECIAL = frozenset(("and", "coalesce", "current", "field", "if", "or", "parameters"))
#: The reasons of functions without arguments, by name, where the context does not have their value.
_CONTEXT = {
    "resourcegroup": "the resource is in no resource group",
    "subscription": "the resource is in no subscription",
    "policy": "the policy is not assigned",
    "requestcontext": "there is no request",
}


class RefusedError(ValueError):
    """A definition that cannot be compiled: the text names what, and `place` is a JSON Pointer into the rule."""

    def __init__(self, reason: str, place: str, kind: str) -> None:
        """Store the reason, the place, and the kind of what is refused."""
        super().__init__(f"{reason}, at {place}" if place else reason)
        self.reason, self.place, self.kind = reason, place, kind


@dataclass(slots=True)
class Scope:
    """What a condition reads.

    Attributes:
        resource: the resource that the key `field` means.
        parameters: by name in lower case.
        context: the values of functions without arguments, by name in lower case; a function computes those that are
            seldom needed.
        subject: the resource of `if`, which the function `field` means.
        members: the current member of each enclosing count.
    """

    resource: JsonObject
    parameters: Mapping[str, Value]
    context: Mapping[str, Callable[[], Value]]
    subject: JsonObject
    members: list[Value] = field(default_factory=lambda: [None] * MAX_COUNTS)


Evaluate = Callable[[Scope], Any]


class Counted(NamedTuple):
    """An enclosing count: the steps and name of a field, or the name of a value, and its number.

    Attributes:
        name: in lower case.
        steps: of the list, with the star at its end; None for values, and for fields that the type does not have.
        slot: its index in `Scope.members`.
    """

    name: str
    is_field: bool
    steps: Steps | None
    slot: int


class FieldRead(NamedTuple):
    """How a field is read.

    Attributes:
        slot: the count whose member the steps begin at; None for the resource.
        steps: None if the type does not have it.
        is_list: the function `field` returns a list: the name has a star.
    """

    name: str
    slot: int | None
    steps: Steps | None
    is_list: bool


class ExpressionCompiler:
    """Compiles the expressions of one definition for resources of one type.

    Attributes:
        reads: the steps of all fields.
        counted: the enclosing counts, the outermost first.
    """

    def __init__(
        self, aliases: AliasTable, kind: str, subject_kind: str, declared: Mapping[str, object] | None
    ) -> None:
        """Prepare for a type.

        Args:
            aliases: where fields are.
            kind: the lower-case type of what the key `field` means.
            subject_kind: the lower-case type of the resource of `if`.
            declared: the parameters that the definition declares, by name in lower case; None for any.
        """
        self._aliases, self._kind, self._subject_kind, self._declared = aliases, kind, subject_kind, declared
        self.counted: list[Counted] = []
        self.reads: set[Steps] = set()

    def find_field(self, name: str, place: str, kind: str | None = None) -> FieldRead:
        """Return how a field is read in resources of a type, the own one by default.

        Raises:
            RefusedError: it is neither a field of every resource nor an alias.
        """
        try:
            steps = self._aliases.steps(name, self._kind if kind is None else kind)
        except UnknownAliasError as error:
            raise RefusedError(str(error), place, "unknown alias") from error
        folded, nearest = lowered(name), None
        for counted in self.counted:
            inside = folded == counted.name or folded.startswith((f"{counted.name}.", f"{counted.name}["))
            if counted.is_field and inside and (nearest is None or len(counted.name) >= len(nearest.name)):
                nearest = counted
        if steps is not None:
            self.reads.add(steps)
        if nearest is None:
            return FieldRead(name, None, steps, is_list=STAR in name or STAR in (steps or ()))
        own = None if steps is None or nearest.steps is None else steps[len(nearest.steps) :]
        return FieldRead(name, nearest.slot, own, is_list=True)

    def compile_value(self, value: object, place: str) -> Evaluate:
        """Compile a value in which texts may be expressions.

        Raises:
            RefusedError: an expression is not valid, or has an unknown function, alias or parameter.
        """
        if isinstance(value, str):
            if not is_expression(value):
                text = plain(value)
                return lambda _: text
            try:
                return self._compile(parsed(value), place)
            except ExpressionError as error:
                reason = f"the expression `{shortened(value)}` is not valid: {error}"
                raise RefusedError(reason, place, "expression") from error
        if isinstance(value, list) and any(isinstance(entry, str | list | dict) for entry in value):
            entries = [self.compile_value(entry, f"{place}/{index}") for index, entry in enumerate(value)]
            return lambda scope: _joined([entry(scope) for entry in entries])
        if isinstance(value, dict):
            members = {key: self.compile_value(entry, f"{place}/{key}") for key, entry in value.items()}
            return lambda scope: _joined_members({key: entry(scope) for key, entry in members.items()})
        return lambda _: value

    def _compile(self, node: Node, place: str) -> Evaluate:
        if isinstance(node, Literal):
            literal = node.value
            return lambda _: literal
        if isinstance(node, Member):
            holder, key = self._compile(node.holder, place), self._compile(node.key, place)
            return _apply("a member", get_member, (holder, key))
        if node.name in _SPECIAL:
            compiled: Evaluate = getattr(self, f"_compile_{node.name}")(node, place)
            return compiled
        arguments = tuple(self._compile(argument, place) for argument in node.arguments)
        if node.name in _CONTEXT or node.name == "utcnow":
            return _read_context(node)
        if node.name in UNDECIDABLE:
            unknown = NotKnown.because(f"`{node.written}()` has no value here: {UNDECIDABLE[node.name]}")
            return lambda _: unknown
        function = FUNCTIONS.get(node.name)
        if function is None:
            raise RefusedError(f"the function `{node.written}` is not supported", place, "unknown function")
        return _apply(f"{node.written}()", function, arguments)

    def _compile_parameters(self, node: FunctionCall, place: str) -> Evaluate:
        [argument] = self._require_arguments(node, 1, place)
        if isinstance(argument, Literal):
            name = str(argument.value)
            if self._declared is not None and lowered(name) not in self._declared:
                raise RefusedError(f"the parameter `{name}` is not declared", place, "undeclared parameter")
        read_name = self._compile(argument, place)

        def evaluate(scope: Scope) -> Value:
            name = read_name(scope)
            if isinstance(name, NotKnown):
                return name
            value = scope.parameters.get(lowered(str(name)))
            return NotKnown.because(f"the parameter `{name}` has no value") if value is None else value

        return evaluate

    def _compile_field(self, node: FunctionCall, place: str) -> Evaluate:
        [argument] = self._require_arguments(node, 1, place)
        if isinstance(argument, Literal):
            return self._compile_field_read(str(argument.value), place)
        return self.compile_dynamic(self._compile(argument, place), lambda name: self._compile_field_read(name, place))

    def _compile_field_read(self, name: str, place: str) -> Evaluate:
        """Compile a read of the resource of `if`, or of the member of a count: that is a list of one."""
        field_read = self.find_field(name, place, self._subject_kind)
        slot, steps = field_read.slot, field_read.steps
        if steps is None:
            absent: Value = [] if field_read.is_list else MISSING
            return lambda _: absent

        if not field_read.is_list:
            read_plain = plain_reader(steps)
            return lambda scope: read_plain(scope.subject)

        def evaluate(scope: Scope) -> Value:
            root = scope.subject if slot is None else scope.members[slot]
            gathered = gather(root, steps)
            unknown = next((value for value in gathered.values if isinstance(value, NotKnown)), None)
            if gathered.causes or unknown is not None:
                return unknown or NotKnown(gathered.causes)
            return [value for value in gathered.values if value is not MISSING]

        return evaluate

    def compile_dynamic(self, read_name: Evaluate, compile_field: Callable[[str], Evaluate]) -> Evaluate:
        """Compile what depends on a name that is known only when it is evaluated."""
        counted, compiled = list(self.counted), dict[str, Evaluate | NotKnown]()

        def evaluate(scope: Scope) -> Value:
            name = read_name(scope)
            if isinstance(name, NotKnown):
                return name
            if not isinstance(name, str):
                return NotKnown.because("the name of a field is not a text")
            if name not in compiled:
                with _COMPILING:
                    outer, self.counted = self.counted, counted
                    try:
                        compiled[name] = compile_field(name)
                    except RefusedError as error:
                        compiled[name] = NotKnown.because(error.reason)
                    finally:
                        self.counted = outer
            function = compiled[name]
            return function if isinstance(function, NotKnown) else function(scope)

        return evaluate

    def _compile_current(self, node: FunctionCall, place: str) -> Evaluate:
        if not self.counted:
            raise RefusedError("`current()` is outside of a count", place, "current")
        if not node.arguments:
            innermost = self.counted[-1].slot
            return lambda scope: read_or_unknown(scope.members[innermost], ())
        [argument] = self._require_arguments(node, 1, place)
        if not isinstance(argument, Literal):
            raise RefusedError("`current()` of an expression is not supported", place, "current")
        name = str(argument.value)
        for counted in reversed(self.counted):
            if not counted.is_field and counted.name == lowered(name):
                slot = counted.slot
                return lambda scope: read_or_unknown(scope.members[slot], ())
        field_read = self.find_field(name, place)
        if field_read.slot is None:
            raise RefusedError(f"`current('{name}')` is outside of a count of it", place, "current")
        own_slot, steps = field_read.slot, field_read.steps
        if steps is None:
            return lambda _: MISSING
        if STAR in steps:
            return lambda scope: [
                value for value in gather(scope.members[own_slot], steps).values if value is not MISSING
            ]
        return lambda scope: read_or_unknown(scope.members[own_slot], steps)

    def _compile_if(self, node: FunctionCall, place: str) -> Evaluate:
        condition, then, otherwise = (
            self._compile(argument, place) for argument in self._require_arguments(node, 3, place)
        )

        def evaluate(scope: Scope) -> Value:
            value = condition(scope)
            if isinstance(value, NotKnown):
                return value
            return then(scope) if truth(value) else otherwise(scope)

        return evaluate

    def _compile_and(self, node: FunctionCall, place: str) -> Evaluate:
        return self._compile_connective(node, place, ends=False)

    def _compile_or(self, node: FunctionCall, place: str) -> Evaluate:
        return self._compile_connective(node, place, ends=True)

    def _compile_connective(self, node: FunctionCall, place: str, *, ends: bool) -> Evaluate:
        parts = [self._compile(argument, place) for argument in node.arguments]

        def evaluate(scope: Scope) -> Value:
            unknown = None
            for part in parts:
                value = part(scope)
                if isinstance(value, NotKnown):
                    unknown = unknown or value
                elif truth(value) is ends:
                    return ends
            return unknown or not ends

        return evaluate

    def _compile_coalesce(self, node: FunctionCall, place: str) -> Evaluate:
        parts = [self._compile(argument, place) for argument in node.arguments]

        def evaluate(scope: Scope) -> Value:
            values = (part(scope) for part in parts)
            return next((value for value in values if value is not None and value is not MISSING), None)

        return evaluate

    def _require_arguments(self, node: FunctionCall, number: int, place: str) -> tuple[Node, ...]:
        if len(node.arguments) != number:
            reason = f"`{node.written}` has {len(node.arguments)} arguments and needs {number}"
            raise RefusedError(reason, place, "expression")
        return node.arguments


def _apply(name: str, function: Callable[..., object], arguments: tuple[Evaluate, ...]) -> Evaluate:
    def evaluate(scope: Scope) -> Value:
        values = []
        for argument in arguments:
            value = argument(scope)
            if isinstance(value, NotKnown):
                return value
            values.append(None if value is MISSING else value)
        try:
            return function(*values)
        except Undecided as error:
            return NotKnown(error.causes)
        except (ExpressionError, TypeError) as error:
            reason = str(error) if isinstance(error, ExpressionError) else "the arguments do not fit"
            return NotKnown.because(f"{name} fails: {reason}")

    return evaluate


def _read_context(node: FunctionCall) -> Evaluate:
    name = node.name
    reason = NotKnown.because(f"`{node.written}()` has no value here: {_CONTEXT.get(name, 'the time is not known')}")

    def evaluate(scope: Scope) -> Value:
        make = scope.context.get(name)
        return reason if make is None else make()

    return evaluate


def plain_reader(steps: Steps) -> Callable[[Value], Value]:
    """Return a function that reads a path without stars."""
    if lowered(steps[0]) not in ("id", "name", "fullname"):
        return lambda root: read_or_unknown(root, steps)

    def evaluate(root: Value) -> Value:
        if steps[0] == "name" or len(steps) > 1:
            value = read_or_unknown(root, steps)
        else:
            value = read_or_unknown(root, ("id",))
            if lowered(steps[0]) == "fullname" and isinstance(value, str):
                value = "/".join(value.rpartition("/providers/")[2].split("/")[2::2])
        # Parts of names and ids that are known later are in braces.
        return NotKnown.because("the id or the name is not known") if isinstance(value, str) and "{" in value else value

    return evaluate


#: The steps of the field `location`, whose values are equal without spaces, too.
LOCATION: Steps = ("location",)


def fold_location(value: Value) -> Value:
    """Return a location, or locations, without spaces: `East US` is `eastus`."""
    if isinstance(value, list):
        return [fold_location(entry) for entry in each_item(value)]
    return (lowered(value.replace(" ", "")) or value) if isinstance(value, str) else value


def read_or_unknown(root: Value, steps: Steps) -> Value:
    """Return the value at a path without stars, which may be not known."""
    try:
        return read(root, steps)
    except Undecided as error:
        return NotKnown(error.causes)


def _joined(entries: list[Value]) -> Value:
    unknown = next((entry for entry in entries if isinstance(entry, NotKnown)), None)
    return unknown or [None if entry is MISSING else entry for entry in entries]


def _joined_members(members: dict[str, Value]) -> Value:
    unknown = next((entry for entry in members.values() if isinstance(entry, NotKnown)), None)
    return unknown or {key: None if entry is MISSING else entry for key, entry in members.items()}
