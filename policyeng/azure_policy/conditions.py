"""Compile conditions to closures with three values: true, false and not known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from policyeng.azure_policy.expressions import (
    LOCATION,
    MAX_COUNTS,
    Counted,
    Evaluate,
    ExpressionCompiler,
    FieldRead,
    RefusedError,
    Scope,
    fold_location,
    plain_reader,
    read_or_unknown,
)
from policyeng.azure_policy.values import (
    MISSING,
    SPELLED,
    STAR,
    NotKnown,
    Tally,
    Value,
    gather,
    holds,
)
from policyeng.models import JsonObject, lowered
from policyeng.parsing.arm_expressions import is_expression
from policyeng.rego.markers import Cause

#: Conditions nested deeper are refused.
_MAX_DEPTH = 64


class FieldComparison(NamedTuple):
    """What a condition without others in it compares: with a field if there is one, by an operator in lower case."""

    field: FieldRead | None
    operator: str
    left: Evaluate
    right: Evaluate


class Condition(NamedTuple):
    """A compiled condition.

    Attributes:
        evaluate: returns true, false or `NotKnown`.
        parts: the conditions in it.
        comparison: None if it has others in it.
    """

    kind: Literal["allof", "anyof", "not", "comparison"]
    evaluate: Evaluate
    parts: tuple[Condition, ...] = ()
    comparison: FieldComparison | None = None


class ConditionCompiler(ExpressionCompiler):
    """Compiles the conditions of one definition for resources of one type."""

    def compile(self, condition: object, place: str, depth: int = 0) -> Condition:
        """Compile a condition.

        Raises:
            RefusedError: it is not one, or has something that is not supported.
        """
        if not isinstance(condition, dict):
            raise RefusedError("a condition is not an object", place, "condition")
        if depth > _MAX_DEPTH:
            raise RefusedError(f"conditions are nested deeper than {_MAX_DEPTH} levels", place, "condition")
        keys = {lowered(key): key for key in condition}
        for kind in ("allof", "anyof", "not"):
            if kind in keys:
                if len(keys) > 1:
                    raise RefusedError(f"there are other keys next to `{keys[kind]}`", place, "condition")
                return self._compile_connected(kind, condition[keys[kind]], f"{place}/{keys[kind]}", depth)
        return self._compile_comparison(condition, keys, place)

    def _compile_connected(self, kind: str, value: object, place: str, depth: int) -> Condition:
        if kind == "not":
            inner = self.compile(value, place, depth + 1)
            evaluate = inner.evaluate
            return Condition("not", lambda scope: _negate(evaluate(scope)), (inner,))
        if not isinstance(value, list):
            raise RefusedError(f"`{place.rpartition('/')[2]}` is not a list", place, "condition")
        parts = tuple(self.compile(entry, f"{place}/{index}", depth + 1) for index, entry in enumerate(value))
        if kind == "allof":
            return Condition("allof", _connect(parts, ends=False), parts)
        return Condition("anyof", _connect(parts, ends=True), parts)

    def _compile_comparison(self, condition: JsonObject, keys: dict[str, str], place: str) -> Condition:
        operators = [key for key in keys if key in SPELLED]
        sides = [key for key in ("field", "value", "count") if key in keys]
        if others := sorted(keys.keys() - SPELLED.keys() - {"field", "value", "count"}):
            raise RefusedError(f"the key `{keys[others[0]]}` is not supported", place, "unknown key")
        if len(operators) != 1 or len(sides) != 1:
            reason = f"a condition has {len(sides)} of `field`, `value` and `count`, and {len(operators)} operators"
            raise RefusedError(reason, place, "condition")
        [operator], [side] = operators, sides
        left, here = condition[keys[side]], f"{place}/{keys[side]}"
        right = self.compile_value(condition[keys[operator]], f"{place}/{keys[operator]}")
        if side == "field":
            return self._compile_field_condition(left, operator, right, here)
        compiled = self.compile_value(left, here) if side == "value" else self._compile_count(left, here)
        return Condition(
            "comparison",
            lambda scope: holds(operator, compiled(scope), right(scope)),
            comparison=FieldComparison(None, operator, compiled, right),
        )

    def _compile_field_condition(self, name: object, operator: str, right: Evaluate, place: str) -> Condition:
        if not isinstance(name, str):
            raise RefusedError("`field` is not a text", place, "condition")
        if not is_expression(name):
            field_read = self.find_field(name, place)
            left, evaluate = self._compile_test(field_read, operator, right)
            return Condition("comparison", evaluate, comparison=FieldComparison(field_read, operator, left, right))
        read_name = self.compile_value(name, place)
        evaluate = self.compile_dynamic(
            read_name, lambda text: self._compile_test(self.find_field(text, place), operator, right)[1]
        )
        return Condition("comparison", evaluate, comparison=FieldComparison(None, operator, read_name, right))

    def _compile_test(self, field_read: FieldRead, operator: str, right: Evaluate) -> tuple[Evaluate, Evaluate]:
        """Return functions that return the value of a field, and whether all of its values fulfil a condition."""
        slot, steps = field_read.slot, field_read.steps

        def root(scope: Scope) -> Value:
            return scope.resource if slot is None else scope.members[slot]

        if steps is None:
            # A list that does not exist fulfils no condition on its members.
            if STAR in field_read.name and slot is None:
                return lambda _: MISSING, lambda _: False
            return lambda _: MISSING, lambda scope: holds(operator, MISSING, right(scope))
        if STAR not in steps:
            if slot is not None:

                def read_member(scope: Scope) -> Value:
                    return read_or_unknown(scope.members[slot], steps)

                return read_member, lambda scope: holds(operator, read_member(scope), right(scope))
            read_plain = plain_reader(steps)

            def read(scope: Scope) -> Value:
                return read_plain(scope.resource)

            if steps == LOCATION and operator.removeprefix("not") in ("equals", "in"):
                return read, lambda scope: holds(operator, fold_location(read(scope)), fold_location(right(scope)))
            return read, lambda scope: holds(operator, read(scope), right(scope))

        def evaluate(scope: Scope) -> bool | NotKnown:
            gathered = gather(root(scope), steps)
            if gathered.lacks_list:
                return False
            wanted, unknown = right(scope), NotKnown(gathered.causes) if gathered.causes else None
            for value in gathered.values:
                outcome = holds(operator, value, wanted)
                if outcome is False:
                    return False
                if isinstance(outcome, NotKnown):
                    unknown = unknown or outcome
            return unknown or True

        return lambda scope: [value for value in gather(root(scope), steps).values if value is not MISSING], evaluate

    def _compile_count(self, count: object, place: str) -> Evaluate:
        if not isinstance(count, dict):
            raise RefusedError("`count` is not an object", place, "count")
        keys = {lowered(key): key for key in count}
        if others := sorted(keys.keys() - {"field", "value", "where", "name"}):
            raise RefusedError(f"the key `{keys[others[0]]}` of `count` is not supported", place, "unknown key")
        if ("field" in keys) == ("value" in keys) or ("name" in keys and "field" in keys):
            raise RefusedError("`count` needs either `field`, or `value` with an optional `name`", place, "count")
        if "field" in keys:
            counted, items = self._compile_counted_field(count[keys["field"]], f"{place}/field", where="where" in keys)
        else:
            counted, items = self._compile_counted_value(count, keys, place)
        if "where" not in keys:
            return lambda scope: _count(*items(scope))
        if len(self.counted) >= MAX_COUNTS:
            raise RefusedError(f"counts are nested deeper than {MAX_COUNTS}", place, "count")
        self.counted.append(counted)
        try:
            where = self.compile(count[keys["where"]], f"{place}/{keys['where']}").evaluate
        finally:
            self.counted.pop()
        slot = counted.slot

        def evaluate(scope: Scope) -> Value:
            values, causes = items(scope)
            least, unknown = 0, list(causes)
            possible = 0
            for value in values:
                scope.members[slot] = value
                outcome = where(scope)
                if outcome is True:
                    least += 1
                elif isinstance(outcome, NotKnown):
                    possible += 1
                    unknown += outcome.causes
            if not unknown:
                return least
            return Tally(least, None if causes else least + possible, tuple(dict.fromkeys(unknown)))

        return evaluate

    def _compile_counted_field(self, name: object, place: str, *, where: bool) -> tuple[Counted, Evaluate]:
        if not isinstance(name, str) or is_expression(name):
            raise RefusedError("`field` of `count` is not the name of a field", place, "count")
        field_read = self.find_field(name, place)
        slot, steps = field_read.slot, field_read.steps
        if not name.endswith("[*]"):
            if where:
                raise RefusedError("`count` with `where` needs a field that ends with `[*]`", place, "count")
            steps = None if steps is None else (*steps, STAR)
        elif slot is not None and steps == ():
            raise RefusedError("it counts the list that is being counted", place, "count")
        whole = self._whole_steps(name, place)
        counted = Counted(lowered(name), is_field=True, steps=whole, slot=len(self.counted))
        if steps is None:
            return counted, lambda _: ([], ())

        def items(scope: Scope) -> tuple[list[Value], tuple[Cause, ...]]:
            gathered = gather(scope.resource if slot is None else scope.members[slot], steps)
            return gathered.values, gathered.causes

        return counted, items

    def _whole_steps(self, name: str, place: str) -> tuple[str, ...] | None:
        outer, self.counted = self.counted, []
        try:
            return self.find_field(name, place).steps
        finally:
            self.counted = outer

    def _compile_counted_value(self, count: JsonObject, keys: dict[str, str], place: str) -> tuple[Counted, Evaluate]:
        name = count[keys["name"]] if "name" in keys else ""
        if not isinstance(name, str):
            raise RefusedError("`name` of `count` is not a text", place, "count")
        source = self.compile_value(count[keys["value"]], f"{place}/{keys['value']}")

        def items(scope: Scope) -> tuple[list[Value], tuple[Cause, ...]]:
            value = source(scope)
            if isinstance(value, NotKnown):
                return [], value.causes
            if value is None or value is MISSING:
                return [], ()
            if not isinstance(value, list):
                return [value], ()
            gathered = gather(value, (STAR,))
            return gathered.values, gathered.causes

        return Counted(lowered(name), is_field=False, steps=None, slot=len(self.counted)), items


def _count(values: list[Value], causes: tuple[Cause, ...]) -> Value:
    return Tally(len(values), None, causes) if causes else len(values)


def _negate(value: Value) -> Value:
    return value if isinstance(value, NotKnown) else not value


def _connect(parts: tuple[Condition, ...], *, ends: bool) -> Evaluate:
    """Return a function that is `ends` if any part is, whatever is not known of others."""
    functions = [part.evaluate for part in parts]

    def evaluate(scope: Scope) -> Value:
        unknown: tuple[Cause, ...] = ()
        for function in functions:
            value = function(scope)
            if value is ends:
                return ends
            if isinstance(value, NotKnown):
                unknown += value.causes
        return NotKnown(tuple(dict.fromkeys(unknown))) if unknown else not ends

    return evaluate


def deciding_comparisons(condition: Condition, scope: Scope) -> Iterator[tuple[FieldComparison, bool]]:
    """Yield the comparisons that made a condition what it is, each with its outcome."""
    outcome = condition.evaluate(scope)
    if isinstance(outcome, NotKnown):
        return
    if condition.comparison is not None:
        yield condition.comparison, outcome
        return
    if condition.kind == "not":
        deciding = condition.parts
    elif (condition.kind == "anyof") is outcome:
        deciding = tuple(part for part in condition.parts if part.evaluate(scope) is outcome)[:1]
    else:
        deciding = condition.parts
    for part in deciding:
        yield from deciding_comparisons(part, scope)
