"""Values of Azure Policy conditions: missing and unknown values, comparisons, and reads of resources."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from policyeng.models import lowered
from policyeng.rego.markers import Cause, Special, Undecided

#: A JSON value, `MISSING` or `NotKnown`.
Value = Any


class Missing:
    """The value of a field that does not exist."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "missing"

    def __bool__(self) -> bool:
        return False


MISSING = Missing()


class NotKnown:
    """The result of what depends on something that is not known."""

    __slots__ = ("causes",)

    def __init__(self, causes: tuple[Cause, ...]) -> None:
        """Store the pointers and the reasons."""
        self.causes = causes

    @classmethod
    def because(cls, reason: str) -> NotKnown:
        """Return it with a reason without a pointer."""
        return cls((("", reason),))

    def __repr__(self) -> str:
        return f"not known: {'; '.join(reason for _, reason in self.causes)}"


class Tally(NamedTuple):
    """The number of members of which not all are known: at least, at most (None: no bound), and why."""

    least: int
    most: int | None
    causes: tuple[Cause, ...]


class Gathered(NamedTuple):
    """The values under the stars of a path.

    Attributes:
        values: the values; `MISSING` for members without it.
        lacks_list: whether a list on the way does not exist.
        causes: why there may be others.
    """

    values: list[Value]
    lacks_list: bool
    causes: tuple[Cause, ...]


STAR = "*"
#: The parts of a path in a resource; `STAR` opens a list.
Steps = tuple[str, ...]


def split_path(path: str) -> Steps:
    """Return the parts of a path such as `properties.a[*].b` or `tags['c.d']`."""
    steps: list[str] = []
    rest = path
    while rest:
        if rest.startswith("["):
            inner, _, rest = rest[1:].partition("]")
            steps.append(inner.strip("'\""))
        else:
            end = min((at for at in (rest.find("."), rest.find("[")) if at >= 0), default=len(rest))
            steps.append(rest[:end])
            rest = rest[end:]
        rest = rest.removeprefix(".")
    return tuple(steps)


def member(holder: Value, key: str) -> Value:
    """Return the member of an object, with a key that is compared without case.

    Raises:
        Undecided: it is not known.
    """
    undecided = None
    try:
        value = holder.get(key, MISSING)
    except Undecided as error:
        undecided, value = error, MISSING
    if value is MISSING:
        folded = lowered(key)
        for name in getattr(holder, "known_keys", holder.keys)():
            if lowered(name) == folded and name != key:
                return holder.get(name, MISSING)
        if undecided is not None:
            raise undecided
    return value


def read(value: Value, steps: Steps) -> Value:
    """Return the value at a path without stars.

    Raises:
        Undecided: it is not known.
    """
    for step in steps:
        if isinstance(value, dict):
            value = member(value, step)
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, NotKnown):
            raise Undecided(*value.causes)
        else:
            return MISSING
    if isinstance(value, NotKnown):  # asking a marker for its class raises
        raise Undecided(*value.causes)
    return value


def each_item(items: Value) -> Iterable[Value]:
    """Return the members of a list, with the markers among them; raise at its end if there may be others."""
    return items.each() if isinstance(items, Special) else items


def gather(value: Value, steps: Steps) -> Gathered:
    """Return the values under the stars of a path."""
    values: list[Value] = []
    causes: list[Cause] = []
    lacks_list = not _gather(value, steps, values, causes)
    return Gathered(values, lacks_list, tuple(dict.fromkeys(causes)))


def _gather(value: Value, steps: Steps, values: list[Value], causes: list[Cause]) -> bool:
    """Append values and causes; return whether every list on the way exists."""
    at = steps.index(STAR) if STAR in steps else len(steps)
    if at == len(steps):
        try:
            values.append(read(value, steps))
        except Undecided as error:
            values.append(NotKnown(error.causes))
        return True
    try:
        items = read(value, steps[:at])
        if not isinstance(items, list):
            return False
        whole = True
        for item in each_item(items):
            whole = _gather(item, steps[at + 1 :], values, causes) and whole
    except Undecided as error:
        causes.extend(error.causes)
        return True
    return whole


def fold(text: str) -> str:
    """Return a text for comparisons without case."""
    return text.lower() if text.isascii() else text.upper().lower()


def number_of(text: str) -> int | float | None:
    """Return the number that a text is; None if it is none."""
    for kind in (int, float):
        try:
            return kind(text.strip())
        except ValueError:
            continue
    return None


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_same(left: Value, right: Value) -> bool:
    """Compare as `equals` does: without case, `"true"` is true, `"1"` is 1, null is a missing and an empty value."""
    left = None if left is MISSING else left
    right = None if right is MISSING else right
    if isinstance(left, str) and isinstance(right, str):
        return left == right or fold(left) == fold(right)
    if left is None or right is None:
        return left is right or (right if left is None else left) == ""
    if isinstance(right, str):
        left, right = right, left
    if isinstance(left, str):
        if isinstance(right, bool):
            return fold(left) == ("true" if right else "false")
        return _is_number(right) and number_of(left) == right
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(is_same(one, other) for one, other in zip(left, right, strict=True))
    if isinstance(left, dict) and isinstance(right, dict):
        others = {fold(key): value for key, value in right.items()}
        return len(left) == len(others) and all(
            fold(key) in others and is_same(value, others[fold(key)]) for key, value in left.items()
        )
    return bool(left == right)


def compare(left: Value, right: Value) -> int | None:
    """Return a number below, equal to or above 0 for ordered values; None for values without an order."""
    if isinstance(left, str) and isinstance(right, str):
        left, right = fold(left), fold(right)
    elif isinstance(left, bool) or isinstance(right, bool):
        if not (isinstance(left, bool) and isinstance(right, bool)):
            return None
    else:
        left = number_of(left) if isinstance(left, str) else left
        right = number_of(right) if isinstance(right, str) else right
        if not (_is_number(left) and _is_number(right)):
            return None
    return bool(left > right) - bool(left < right)


def scalar_text(value: Value) -> str | None:
    """Return a text, number or boolean as text; None for other values."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(int(value)) if value == int(value) else repr(value)
    return value if isinstance(value, str) else None


def is_like(text: str, pattern: str) -> bool:
    """Check a text against a pattern with any number of `*`, without case and without backtracking."""
    text, parts = fold(text), fold(pattern).split("*")
    if len(parts) == 1:
        return text == parts[0]
    first, last = parts[0], parts[-1]
    if len(text) < len(first) + len(last) or not (text.startswith(first) and text.endswith(last)):
        return False
    at, end = len(first), len(text) - len(last)
    for part in parts[1:-1]:
        at = text.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True


def does_match(text: str, pattern: str) -> bool:
    """Check a text against a pattern: `#` is a digit, `?` a letter, `.` any character, others are themselves."""
    return len(text) == len(pattern) and all(
        sign == "."
        or (sign == "#" and character in "0123456789")
        or (sign == "?" and character.isascii() and character.isalpha())
        or (sign == character and sign not in "#?")
        for character, sign in zip(text, pattern, strict=True)
    )


def _of_texts(test: Callable[[str, str], bool]) -> Callable[[Value, Value], bool]:
    def apply(left: Value, right: Value) -> bool:
        text, other = scalar_text(left), scalar_text(right)
        return text is not None and other is not None and test(text, other)

    return apply


def _contains(left: Value, right: Value) -> bool:
    if isinstance(left, list):
        return any(is_same(entry, right) for entry in left)
    if isinstance(left, dict):
        return _has_key(left, right)
    return _of_texts(lambda text, part: fold(part) in fold(text))(left, right)


def _has_key(left: Value, right: Value) -> bool:
    return isinstance(left, dict) and isinstance(right, str) and member(left, right) is not MISSING


def _in(left: Value, right: Value) -> bool:
    return any(is_same(left, entry) for entry in (right if isinstance(right, list) else [right]))


def _ordered(test: Callable[[int], bool]) -> Callable[[Value, Value], bool]:
    def apply(left: Value, right: Value) -> bool:
        order = compare(left, right)
        return order is not None and test(order)

    return apply


def exists(left: Value, right: Value) -> bool:
    """Check whether there is a value, or with false that there is none; null is none."""
    return (left is not MISSING and left is not None) is truth(right)


def truth(value: Value) -> bool:
    """Return the boolean that a value stands for."""
    if isinstance(value, str):
        return fold(value) == "true"
    return bool(value) if isinstance(value, int | float) else False


#: The tests by operator in lower case; those with `not` are the opposites of others.
_TESTS: dict[str, Callable[[Value, Value], bool]] = {
    "equals": is_same,
    "like": _of_texts(is_like),
    "match": _of_texts(does_match),
    "matchinsensitively": _of_texts(lambda text, pattern: does_match(fold(text), fold(pattern))),
    "contains": _contains,
    "in": _in,
    "containskey": _has_key,
}


def _opposite(test: Callable[[Value, Value], bool]) -> Callable[[Value, Value], bool]:
    return lambda left, right: not test(left, right)


OPERATORS: Mapping[str, Callable[[Value, Value], bool]] = {
    **_TESTS,
    **{f"not{name}": _opposite(test) for name, test in _TESTS.items()},
    "less": _ordered(lambda order: order < 0),
    "lessorequals": _ordered(lambda order: order <= 0),
    "greater": _ordered(lambda order: order > 0),
    "greaterorequals": _ordered(lambda order: order >= 0),
    "exists": exists,
}
#: The operators as Azure spells them, by their names in lower case.
SPELLED = {
    lowered(name): name
    for name in [
        "equals",
        "notEquals",
        "like",
        "notLike",
        "match",
        "notMatch",
        "matchInsensitively",
        "notMatchInsensitively",
        "contains",
        "notContains",
        "in",
        "notIn",
        "containsKey",
        "notContainsKey",
        "less",
        "lessOrEquals",
        "greater",
        "greaterOrEquals",
        "exists",
    ]
}


def holds(operator: str, left: Value, right: Value) -> bool | NotKnown:
    """Apply an operator to values of which any may be not known."""
    if isinstance(right, NotKnown):
        return right
    if isinstance(left, NotKnown):
        return left
    if isinstance(left, Tally):
        return _holds_for_tally(operator, left, right)
    try:
        return OPERATORS[operator](left, right)
    except Undecided as error:
        return NotKnown(error.causes)


def _holds_for_tally(operator: str, tally: Tally, right: Value) -> bool | NotKnown:
    """Apply an operator to a number between bounds; it is decided if all numbers between them agree."""
    limit = number_of(right) if isinstance(right, str) else right
    if not isinstance(limit, int | float) or isinstance(limit, bool):
        return OPERATORS[operator](tally.least, right)
    # Beyond the limit all numbers are alike.
    last = max(tally.least, int(limit) + 2)
    last = last if tally.most is None else min(last, tally.most)
    candidates: Sequence[int] = sorted({tally.least, last, *(int(limit) + step for step in (-1, 0, 1))})
    outcomes = {OPERATORS[operator](number, right) for number in candidates if tally.least <= number <= last}
    return outcomes.pop() if len(outcomes) == 1 else NotKnown(tally.causes)
