"""Shrink an example while a result remains, to one that `policyeng check` can read if possible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import ValidationError

from policyeng.bundle import Bundle
from policyeng.bundle.parameters import parameters_of
from policyeng.errors import EngineError, PolicyengError
from policyeng.models import Snapshot
from policyeng.verify.example_documents import document_of, drop_unreadable, example_of, read
from policyeng.verify.generators.examples import Example
from policyeng.verify.generators.json_mutations import Json
from policyeng.verify.reproduction import is_sayable
from policyeng.verify.shrink_document import shrink

_Found = TypeVar("_Found")

#: The note on an example that is not shrunk because its result does not recur.
NOT_AGAIN = "it did not recur in the same example, which is not shrunk"


@dataclass(frozen=True)
class Smallest(Generic[_Found]):
    """The result of shrinking.

    Attributes:
        found: the result in the smallest example.
        note: why the example is not smaller, or why `policyeng check` cannot read it; empty if neither applies.
    """

    found: _Found
    example: Example
    note: str = ""


def shrink_example(
    bundle: Bundle,
    example: Example,
    found: _Found,
    ask: Callable[[Example, Snapshot], _Found | None],
    *,
    most: int = 3000,
) -> Smallest[_Found]:
    """Shrink an example; every step goes through the reader if the result remains there.

    Args:
        bundle: the bundle whose parameters the example has.
        example: the example with the result.
        found: the result.
        ask: returns the result in another example, or None. An engine error ends the search with the last result.
        most: the maximum number of calls of `ask`.
    """
    search = _ExampleSearch(bundle, ask, is_sayable(dict(example.parameters)))
    start, note = document_of(example), ""
    for candidate in drop_unreadable(start):
        if search.holds(candidate):
            start = candidate
            break
    else:
        search.through_reader = False
        if search.holds(start):
            needed = (
                "parts that no file can represent together"
                if example.document.get("documents")
                else "a resource that the reader refuses"
            )
            note = f"it needs {needed}"
        else:
            reason = f"shrinking ended early: {search.failure}" if search.failure else NOT_AGAIN
            return Smallest(found, example, reason)
    shrink(start, search.holds, most=most)
    if search.failure:
        note = f"shrinking ended early: {search.failure}"
    left, result = search.last or (example, found)
    return Smallest(result, left, note)


class _ExampleSearch(Generic[_Found]):
    """The predicate for shrinking, with the last result."""

    def __init__(self, bundle: Bundle, ask: Callable[[Example, Snapshot], _Found | None], needs_toml: bool) -> None:
        self._bundle = bundle
        self._ask = ask
        self._needs_toml = needs_toml
        self.through_reader = True
        self.last: tuple[Example, _Found] | None = None
        self.failure = ""

    def holds(self, document: Json) -> bool:
        """Check whether an example has the result, too."""
        if self.failure:
            return False
        try:
            example = example_of(document)
            parameters_of(self._bundle, example.parameters)
            snapshot = read(example.document, self._bundle) if self.through_reader else example.snapshot
        except (ValidationError, PolicyengError, AttributeError, KeyError, TypeError, ValueError):
            return False  # not an example
        if snapshot is None or (self._needs_toml and not is_sayable(dict(example.parameters))):
            return False
        try:
            found = self._ask(example, snapshot)
        except EngineError as error:
            self.failure = str(error)
            return False
        if found is not None:
            self.last = (example, found)
        return found is not None
