"""A difference made small: the smallest snapshot, parameters and clock on which the same engines still differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import orjson
from pydantic import ValidationError

from policyeng.bundle import Bundle
from policyeng.bundle.parameters import parameters_of
from policyeng.errors import EngineError, PolicyengError
from policyeng.models import JsonObject, Snapshot
from policyeng.sources import read_inputs
from policyeng.verify.agreement.contestants import Contestant
from policyeng.verify.agreement.differential import Comparison, comparisons, differs
from policyeng.verify.cases import DEFAULT_AS_OF
from policyeng.verify.drawing.edits import Json
from policyeng.verify.drawing.examples import Example
from policyeng.verify.shrinking import shrunk


@dataclass(frozen=True)
class Counterexample:
    """A difference after shrinking.

    Attributes:
        comparison: the pair, what every engine says of it, and the example.
        note: why the snapshot is not smaller, or not one that `policyeng check` reads; empty when all is well.
    """

    comparison: Comparison
    note: str = ""


def counterexample(
    found: Comparison, bundle: Bundle, contestants: Sequence[Contestant], *, most: int = 3000
) -> Counterexample:
    """Shrink a difference to one that `policyeng check` can read, if it lives through the reader.

    An engine that fails on the way ends the search, and what was found until then is given.
    """
    search = _Search(found, bundle, [entry for entry in contestants if entry.name in dict(found.judgements)])
    start = as_document(found.example)
    note = ""
    for readable in _starts(start):
        if search.differing(readable) is not None:
            start = readable
            break
    else:
        search.through_reader = False
        note = "the difference needs a resource that the reader refuses"
    shrunk(start, search.holds, most=most)
    if search.failure:
        note = f"shrinking ended early: {search.failure}"
    return Counterexample(search.last or found, note)


class _Search:
    """The question that shrinking asks, with the last answer that was yes."""

    def __init__(self, found: Comparison, bundle: Bundle, contestants: Sequence[Contestant]) -> None:
        self._found = found
        self._bundle = bundle
        self._contestants = contestants
        self.through_reader = True
        self.last: Comparison | None = None
        self.failure = ""

    def holds(self, document: Json) -> bool:
        """Whether the same engines differ on the same policy."""
        if self.failure:
            return False
        try:
            comparison = self.differing(document)
        except EngineError as error:
            self.failure = str(error)
            return False
        if comparison is not None:
            self.last = comparison
        return comparison is not None

    def differing(self, document: Json) -> Comparison | None:
        """The first pair of the document on which they differ.

        Raises:
            EngineError: an engine cannot judge.
        """
        try:
            example = as_example(document)
            parameters_of(self._bundle, example.parameters)
            snapshot = read(example.document) if self.through_reader else example.snapshot
        except (ValidationError, PolicyengError, AttributeError, KeyError, TypeError, ValueError):
            return None  # what is no example is no smaller example
        if snapshot is None:
            return None
        every = comparisons(self._bundle, example, self._contestants, snapshot, self._found.policy)
        return next((entry for entry in every if differs(entry) and entry.kind == self._found.kind), None)


def read(document: JsonObject) -> Snapshot | None:
    """A snapshot as `policyeng check` reads it; None when it refuses a part."""
    text = orjson.dumps({"snapshotVersion": 1, **document})
    inputs = read_inputs(["-"], from_format="native", stdin=text)
    return None if any(problem.level == "error" for problem in inputs.problems) else inputs.snapshot


def _starts(start: JsonObject) -> Iterator[JsonObject]:
    """The document as it is, and without the resources that the reader refuses."""
    yield start
    snapshot = start["snapshot"]
    kept = [resource for resource in snapshot["resources"] if read({"resources": [resource]}) is not None]
    yield {**start, "snapshot": {**snapshot, "resources": kept}}


def as_document(example: Example) -> JsonObject:
    """An example as one JSON document; the clock is left out when it is the usual one."""
    return {
        "snapshot": example.document,
        "parameters": dict(example.parameters),
        "asOf": example.as_of.isoformat(),
    }


def as_example(document: Json) -> Example:
    """The example of such a document.

    Raises:
        TypeError, ValueError, KeyError, AttributeError: it is none.
    """
    if not isinstance(document, dict):
        raise TypeError("not an example")
    snapshot: JsonObject = dict(document["snapshot"])  # type: ignore[arg-type]  # else it raises TypeError
    if not all(isinstance(resource, dict) for resource in snapshot["resources"]):
        raise TypeError("a resource that is no object")
    parameters: JsonObject = dict(document.get("parameters") or {})  # type: ignore[arg-type]  # the same
    stated = document.get("asOf")
    as_of = datetime.fromisoformat(stated) if isinstance(stated, str) else DEFAULT_AS_OF
    if as_of.tzinfo is None:
        raise ValueError("a clock without a zone")
    return Example(snapshot, parameters, as_of)
