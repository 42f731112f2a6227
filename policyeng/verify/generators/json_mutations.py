"""Random edits of JSON documents: small ones as people make them, and hostile ones.

Every draw uses the given generator, so one seed gives one document, and hypothesis can pass its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import TypeAlias

from policyeng.parsing.json_pointer import list_index, unescaped

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
#: The keys and positions from the root of a document to a place in it.
Place = tuple[str | int, ...]

#: Texts that programming languages fold, trim, sort or read as numbers in different ways.
ODD_TEXTS = (
    *("", " ", "\t", "\u00a0", "\u0085", "\u001c", "\u2003x\u3000", "\ufeff", "\u200b", "\u0000", "\U0001f600"),
    *("\u0130", "i\u0307", "\u1e9e", "\u00df", "\u212a", "\u017f", "\u0391\u03a3", "\u03c2", "e\u0301", "\u00e9"),
    *("/", "//", "/subscriptions", ".", "*", "0", "1", "01", "-1", "+1", "1e3", "0x10", "\u0663", "1_000", "NaN"),
    *("true", "null", "{}", "P", "PT", "P1W", "pt1,5h", "2026-02-30T00:00:00Z", "9999-12-31T23:59:59Z", "x" * 300),
)
ODD_NUMBERS = (
    *(0, -0.0, 1, -1, 1.0, 2, 0.5, 0.1, 1.5, 3.0000000000000004, 100, 1e15, 1e16, 1e17, 1e21, 1e22, 1e300, 5e-324),
    *(2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 2**64 - 1, 123456789012.25),
)
ODD_VALUES: tuple[Json, ...] = (None, True, False, [], {}, [None], [[]], [{}], {"": ""}, {"id": None}, ["x", 1, None])
#: The probability that an edit changes a member of a list or an object, rather than all of it.
_DEEPER = 0.8
#: Letters that fold to others, or that others fold to, in one language but not in another.
_LOOKALIKES = {"k": "\u212a", "s": "\u017f", "i": "\u0130", "K": "\u212a", "S": "\u017f", "I": "\u0131"}


def draw_boolean(random: Random, chance: float) -> bool:
    """Draw whether something happens; the smallest draw is false, so examples shrink to plain ones."""
    return random.random() >= 1 - chance


def copied(document: Json, spelled: Callable[[str], str] = str) -> Json:
    """Return a deep copy of a JSON document with any numbers, with `spelled` applied to its texts and keys."""
    if isinstance(document, dict):
        return {spelled(key): copied(member, spelled) for key, member in document.items()}
    if isinstance(document, list):
        return [copied(member, spelled) for member in document]
    return spelled(document) if isinstance(document, str) else document


def draw_odd_value(random: Random, depth: int = 2) -> Json:
    """Return an unexpected value: of a wrong type, empty, huge, or nested."""
    kind = random.randrange(8)
    if kind < 3:
        return random.choice(ODD_TEXTS)
    if kind < 5:
        return random.choice(ODD_NUMBERS)
    if kind < 7 or depth == 0:
        return copied(random.choice(ODD_VALUES))
    if draw_boolean(random, 0.5):
        return [draw_odd_value(random, depth - 1) for _ in range(random.randrange(4))]
    keys = ("id", "type", "properties", "tags", "vmSize", "subnet", "name", "Id", "\u00e9", "")
    return {random.choice(keys): draw_odd_value(random, depth - 1) for _ in range(random.randrange(4))}


def altered(random: Random, value: Json) -> Json:
    """Return a value near another one: in other letter case, padded, one more, as text, or in a list."""
    if isinstance(value, bool):
        return random.choice((not value, str(value), str(value).lower(), int(value), f" {value}"))
    if isinstance(value, str):
        return _altered_text(random, value)
    if isinstance(value, int | float):
        near: tuple[Json, ...] = (value + 1, value - 1, -value, float(value), str(value), [value])
        return random.choice(near)
    if isinstance(value, list):
        return _altered_list(random, value)
    if isinstance(value, dict):
        return _altered_object(random, value)
    return draw_odd_value(random)


def _altered_text(random: Random, text: str) -> Json:
    kind = random.randrange(10)
    if kind == 0:
        return text.upper()
    if kind == 1:
        return text.lower()
    if kind == 2:
        return text.swapcase()
    if kind == 3:
        return random.choice((f" {text}", f"{text}\t", f"\u00a0{text}", f"{text}\u001f", f"{text}\n"))
    if kind == 4:
        return text + random.choice(("/", "-2", "x", "/x", "//", " "))
    if kind == 5:
        return text[:-1] if draw_boolean(random, 0.5) else text.rpartition("/")[0]
    if kind == 6 and text:
        position = random.randrange(len(text))
        letter = _LOOKALIKES.get(text[position], random.choice(("\u0130", "\u212a", "?")))
        return text[:position] + letter + text[position + 1 :]
    if kind == 7:
        return [text]
    return text.title()


def _altered_list(random: Random, values: list[Json]) -> Json:
    changed = list(values)
    kind = random.randrange(6)
    if kind == 0:
        return []
    if kind == 1 and changed:
        changed.pop(random.randrange(len(changed)))
    elif kind == 2 and changed:
        changed.append(copied(random.choice(changed)))
    elif kind == 3:
        changed.insert(random.randrange(len(changed) + 1), draw_odd_value(random))
    elif kind == 4:
        return changed[0] if changed else None
    else:
        changed.reverse()
    return changed


def _altered_object(random: Random, members: dict[str, Json]) -> Json:
    changed = dict(members)
    kind = random.randrange(4)
    if kind == 0 or not changed:
        return {}
    key = random.choice(sorted(changed))
    if kind == 1:
        del changed[key]
    elif kind == 2:
        changed[key.swapcase()] = altered(random, changed[key])
    else:
        return [changed]
    return changed


def places(document: Json, above: Place = ()) -> Iterator[Place]:
    """Yield every place in a document below its root."""
    members: Sequence[tuple[str | int, Json]] = ()
    if isinstance(document, dict):
        members = list(document.items())
    elif isinstance(document, list):
        members = list(enumerate(document))
    for key, value in members:
        yield (*above, key)
        yield from places(value, (*above, key))


def edit_somewhere(random: Random, document: dict[str, Json], kept: Sequence[str] = ("id", "type")) -> None:
    """Change, replace or remove one place of a document, in place, except for the top-level keys in `kept`."""
    place = _place_in(random, document, [key for key in document if key not in kept])
    if not place:
        return
    kind = random.randrange(4)
    if kind == 0:
        remove(document, place)
    elif kind == 1:
        put_value(document, place, draw_odd_value(random))
    else:
        put_value(document, place, altered(random, value_in(document, place)))


def _place_in(random: Random, document: Json, keys: Sequence[str | int]) -> Place:
    """Return a random place below one of the keys of a document, without counting all of them."""
    place: list[str | int] = []
    while keys:
        place.append(random.choice(keys))
        document = document[place[-1]]  # type: ignore[index]  # the key is one of the document's
        if not draw_boolean(random, _DEEPER):
            break
        keys = (
            list(document) if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else ()
        )
    return tuple(place)


def value_in(document: Json, place: Place) -> Json:
    """Return the value at a place that exists."""
    for step in place:
        document = document[step]  # type: ignore[index]  # the place exists, so the step fits
    return document


def put_value(document: Json, place: Place, value: Json) -> None:
    """Set a place; other values on the way are replaced by objects, and lists take existing positions."""
    *above, last = place
    for step in above:
        document = _enter(document, step)
    if isinstance(document, list) and isinstance(last, int) and last < len(document):
        document[last] = value
    elif isinstance(document, dict):
        document[str(last)] = value


def _enter(document: Json, step: str | int) -> Json:
    if isinstance(document, list) and isinstance(step, int) and step < len(document):
        if not isinstance(document[step], dict | list):
            document[step] = {}
        return document[step]
    if isinstance(document, dict):
        inner = document.get(str(step))
        if not isinstance(inner, dict | list):
            document[str(step)] = inner = {}
        return inner
    return {}


def remove(document: Json, place: Place) -> None:
    """Remove a place, if it exists."""
    *above, last = place
    for step in above:
        if isinstance(document, dict) and step in document:
            document = document[str(step)]
        elif isinstance(document, list) and isinstance(step, int) and step < len(document):
            document = document[step]
        else:
            return
    if isinstance(document, dict):
        document.pop(str(last), None)
    elif isinstance(document, list) and isinstance(last, int) and last < len(document):
        del document[last]


def place_of(random: Random, document: Json, pointer: str) -> Place:
    """Return a JSON Pointer as a place of a document: `*` is one of the existing members."""
    steps: list[str | int] = []
    for part in pointer.split("/")[1:]:
        key: str | int = unescaped(part)
        if isinstance(document, list):
            if part == "*":
                key = random.randrange(len(document)) if document else 0
            elif (index := list_index(part)) is not None:
                key = index
        elif isinstance(document, dict) and part == "*" and document:
            key = random.choice(sorted(document))
        steps.append(key)
        document = _member(document, key)
    return tuple(steps)


def _member(document: Json, key: str | int) -> Json:
    if isinstance(document, dict):
        return document.get(str(key))
    if isinstance(document, list) and isinstance(key, int) and key < len(document):
        return document[key]
    return None
