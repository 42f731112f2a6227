"""What was found in an example, in the smallest example in which it is still found and that `policyeng check` reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import ValidationError

from policyeng.bundle import Bundle
from policyeng.bundle.parameters import parameters_of
from policyeng.errors import EngineError, PolicyengError
from policyeng.models import Snapshot
from policyeng.verify.example_documents import document_of, example_of, read, readable
from policyeng.verify.generators.examples import Example
from policyeng.verify.generators.json_mutations import Json
from policyeng.verify.reproduction import is_sayable
from policyeng.verify.shrink_document import shrunk

_Found = TypeVar("_Found")

#: The note where an example is as it was drawn, because what was found in it does not last.
NOT_AGAIN = "it was not found again in the same example, which is as it was drawn"


@dataclass(frozen=True)
class Smallest(Generic[_Found]):
    """What is left after shrinking.

    Attributes:
        found: what is found in the example.
        note: why the example is not smaller, or not one that `policyeng check` reads; empty when all is well.
    """

    found: _Found
    example: Example
    note: str = ""


def smallest(
    bundle: Bundle,
    example: Example,
    found: _Found,
    ask: Callable[[Example, Snapshot], _Found | None],
    *,
    most: int = 3000,
) -> Smallest[_Found]:
    """Shrink an example, through the reader if what was found lives through it.

    Args:
        bundle: whose parameters the example has.
        example: where it was found.
        found: what was found.
        ask: what of that is found in another example, None where nothing is. An engine that fails on the way ends the
            search, and what was found until then is given.
        most: how often it is asked.
    """
    search = _ExampleSearch(bundle, ask, is_sayable(dict(example.parameters)))
    start, note = document_of(example), ""
    for candidate in readable(start):
        if search.holds(candidate):
            start = candidate
            break
    else:
        search.through_reader = False
        if search.holds(start):
            alone = (
                "what no one file says" if example.document.get("documents") else "a resource that the reader refuses"
            )
            note = f"it needs {alone}"
        else:
            reason = f"shrinking ended early: {search.failure}" if search.failure else NOT_AGAIN
            return Smallest(found, example, reason)
    shrunk(start, search.holds, most=most)
    if search.failure:
        note = f"shrinking ended early: {search.failure}"
    left, said = search.last or (example, found)
    return Smallest(said, left, note)


class _ExampleSearch(Generic[_Found]):
    """The question that shrinking asks, with the last answer that was yes."""

    def __init__(self, bundle: Bundle, ask: Callable[[Example, Snapshot], _Found | None], said: bool) -> None:
        self._bundle = bundle
        self._ask = ask
        self._said = said
        self.through_reader = True
        self.last: tuple[Example, _Found] | None = None
        self.failure = ""

    def holds(self, document: Json) -> bool:
        """Whether it is found in an example, too."""
        if self.failure:
            return False
        try:
            example = example_of(document)
            parameters_of(self._bundle, example.parameters)
            snapshot = read(example.document, self._bundle) if self.through_reader else example.snapshot
        except (ValidationError, PolicyengError, AttributeError, KeyError, TypeError, ValueError):
            return False  # what is no example is no smaller example
        if snapshot is None or (self._said and not is_sayable(dict(example.parameters))):
            return False
        try:
            found = self._ask(example, snapshot)
        except EngineError as error:
            self.failure = str(error)
            return False
        if found is not None:
            self.last = (example, found)
        return found is not None
