"""Random markers in documents, and documents that have values in their place."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Collection
from random import Random
from typing import Any, NamedTuple

from policyeng import rego
from policyeng.rego.markers import show
from policyeng.rego.paths import write_path
from policyeng.rego.values import equal
from tests.rego_programs import Program

ABSENT = object()
ODD: tuple[Any, ...] = (None, False, True, 0, 1, 7, 1.5, "", "a", "x", [], [1], {}, {"a": 1})


def pointers(document: Any, place: str = "") -> list[str]:
    """All places below a document."""
    found = []
    parts = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in parts:
        below = f"{place}/{str(key).replace('~', '~0').replace('/', '~1')}"
        found += [below, *pointers(value, below)]
    return found


def find(document: Any, pointer: str) -> Any:
    """What is at a place."""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        document = document[int(key)] if isinstance(document, list) else document[key]
    return document


class Marking:
    """Places of a document that are not known.

    Attributes:
        markers: of values.
        missing: of collections that may have further members.
        marked: the document with markers.
    """

    def __init__(self, document: Any, markers: list[str], missing: list[str]) -> None:
        self.document = document
        self.markers = markers
        self.missing = missing
        self.marked = rego.mark(document, dict.fromkeys(markers, "hidden"), dict.fromkeys(missing, "not listed"))

    @staticmethod
    def draw(random: Random, document: Any, most: int, left_out: Collection[str] = ()) -> Marking:
        """Draw places, none inside another marker, and none of those that are left out."""
        places = [place for place in pointers(document) if place not in left_out]
        chosen: list[str] = []
        for place in random.sample(places, min(len(places), random.randint(1, most))):
            if not any(f"{place}/".startswith(f"{one}/") or f"{one}/".startswith(f"{place}/") for one in chosen):
                chosen.append(place)
        hidden = [place for place in chosen if random.random() < 0.7]
        missing = [place for place in chosen if place not in hidden and isinstance(find(document, place), dict | list)]
        return Marking(document, hidden, missing)

    def substitute(self, random: Random, values: list[Any]) -> Any:
        """A document with values in the place of markers, and members where there may be some."""
        made = copy.deepcopy(self.document)
        for place in self.markers:
            holder, key = _holder(made, place)
            if random.random() < 0.15:
                continue
            if isinstance(holder, dict) and random.random() < 0.25:
                holder.pop(key)
            else:
                holder[key] = copy.deepcopy(random.choice(values))
        for place in self.missing:
            found = find(made, place)
            for _ in range(random.choice((0, 1, 1, 2))):
                value = copy.deepcopy(random.choice([*values, *(found.values() if isinstance(found, dict) else found)]))
                if isinstance(found, list):
                    found.insert(random.randint(0, len(found)), value)
                else:
                    found.setdefault(random.choice(("a", "b", "k", "name", "z")), value)
        return made

    def __str__(self) -> str:
        return f"{show(self.marked)} missing {self.missing}"


def _holder(document: Any, pointer: str) -> tuple[Any, Any]:
    above, _, part = pointer.rpartition("/")
    holder = find(document, above)
    key = part.replace("~1", "/").replace("~0", "~")
    return holder, int(key) if isinstance(holder, list) else key


class Tally(NamedTuple):
    """What a run has met.

    Attributes:
        counts: pairs by what was compared.
        violations: what differs.
    """

    counts: Counter[str]
    violations: list[str]


def check_program(program: Program, seed: int) -> Tally:
    """Put random markers into the input of a program; compare what is decided with what random values give."""
    counts: Counter[str] = Counter()
    violations: list[str] = []
    modules = {"program.rego": program.source, "library.rego": program.library}
    try:
        compiled = rego.compile(modules, {"base": {program.name: program.data}}, version=0 if program.old else 1)
    except rego.RegoError:
        return Tally(counts, violations)
    random = Random(f"{program.name} {seed}")  # noqa: S311  # nothing here is secret
    both = compiled.compiled.rules.keys() & compiled.compile_handled().rules.keys()
    paths = [path for path in compiled.compiled.rules if path in both and path[:1] == (program.name,)]
    names = [write_path(path) for path in paths if path not in compiled.compiled.functions]
    values = [*ODD, "b", "abc", 2, 3, *(find(program.input, place) for place in pointers(program.input))]
    for marking in [Marking.draw(random, program.input, 3) for _ in range(3)]:
        documents = [marking.substitute(random, values) for _ in range(5)]
        for name in names:
            outcome = _result(lambda: compiled.decide(name, marking.marked))  # noqa: B023  # called at once
            for document in documents:
                found = _result(lambda: compiled.query(name, document))  # noqa: B023  # as above
                verdict = _compare(outcome, found)
                counts[verdict] += 1
                if verdict == "violation":
                    violations.append(f"{name}\n{program.source}\n{marking}\n{document}\n{found}")
    return Tally(counts, violations)


def _result(query: Callable[[], Any]) -> Any:
    try:
        return query()
    except rego.EvaluationError as error:
        return error


def _compare(outcome: Any, found: Any) -> str:
    if isinstance(outcome, rego.EvaluationError):
        return "decided" if isinstance(found, rego.EvaluationError) else "violation"
    if isinstance(found, rego.EvaluationError):
        # A definite result wins over what may be an error elsewhere.
        return "hidden error"
    if not outcome.undecided:
        return "decided" if equal(outcome.value, found) else "violation"
    # A set has members that are certain.
    is_set = type(outcome.value) is set
    return "violation" if is_set and not (type(found) is set and outcome.value <= found) else "undecided"
