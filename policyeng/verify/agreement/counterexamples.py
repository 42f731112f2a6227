"""A difference made small: the smallest snapshot, parameters and clock on which the same engines still differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from policyeng.bundle import Bundle
from policyeng.models import Snapshot
from policyeng.verify.agreement.contestants import Contestant
from policyeng.verify.agreement.differential import Comparison, comparisons, differs
from policyeng.verify.drawing.examples import Example
from policyeng.verify.smallest import smallest


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
    asked = [entry for entry in contestants if entry.name in dict(found.judgements)]

    def differing(example: Example, snapshot: Snapshot) -> Comparison | None:
        every = comparisons(bundle, example, asked, snapshot, found.policy)
        return next((entry for entry in every if differs(entry) and entry.kind == found.kind), None)

    left = smallest(bundle, found.example, found, differing, most=most)
    return Counterexample(left.found, left.note)
