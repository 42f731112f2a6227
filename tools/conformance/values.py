"""What an engine says of a case, and when two say the same."""

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import Any


@dataclass(frozen=True)
class Answer:
    """The rows of a case, or a fault (kind, message); neither when the rule is undefined.

    `engine` is what judged it (`rvm` or `interpreter`, empty for OPA) and `why` the reason why not the RVM.
    """

    rows: Any = None
    fault: tuple[str, str] | None = None
    engine: str = ""
    why: str = ""


def exact(text: str) -> Any:
    """JSON with its numbers as they are written."""
    return json.loads(text, parse_float=Decimal, parse_int=Decimal)


def comparable(rows: Any, *, unordered: bool) -> Any:
    """Rows in a form that is equal for equal values only: kinds kept apart, the set of rows without an order.

    `unordered` also takes the order from the list that each variable holds, as OPA's own test does where asked.
    """
    if not isinstance(rows, list):
        return _canonical(rows)
    if unordered:
        rows = [{name: _unordered(value) for name, value in row.items()} for row in rows]
    return sorted({repr(_canonical(row)) for row in rows})


def _unordered(value: Any) -> Any:
    return sorted(value, key=lambda item: repr(_canonical(item))) if isinstance(value, list) else value


def _canonical(value: Any) -> Any:
    match value:
        case dict():
            return ("object", tuple(sorted((key, _canonical(field)) for key, field in value.items())))
        case list():
            return ("list", tuple(_canonical(item) for item in value))
        case bool() | None | str():
            return (type(value).__name__, value)
        case _:
            return ("number", str(Decimal(value).normalize()))
