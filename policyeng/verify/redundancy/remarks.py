"""What an analysis for redundancy has to say: remarks, of which some are faults, each with what was tried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from policyeng.verify.drawing.examples import Example

Kind = Literal["vacuous", "dead", "implied", "equal", "parameter", "never passes", "told apart", "reason", "not tried"]


@dataclass(frozen=True)
class Remark:
    """Something about one policy.

    Attributes:
        is_fault: whether it makes the analysis fail.
        is_proved: whether it holds whatever is judged; else it is only what nothing that was tried contradicts.
        tried: what was tried, and how often.
        remedy: what the author of the policy should do.
        other: the id of the other policy, where there is one.
        example: what shows it, made small; None where nothing does.
        resource: what of the example shows it.
    """

    policy: str
    kind: Kind
    message: str
    tried: str
    remedy: str
    is_fault: bool = True
    is_proved: bool = False
    other: str = ""
    example: Example | None = None
    resource: str = ""


@dataclass(frozen=True)
class Analysis:
    """A finished analysis.

    Attributes:
        examples, cases: how many of each were judged.
        outcomes: by policy id, how often it ended in which outcome.
        remarks: faults first, then by policy.
    """

    seed: int
    examples: int
    cases: int
    outcomes: Mapping[str, Counter[str]] = field(default_factory=dict)
    remarks: tuple[Remark, ...] = ()

    @property
    def faults(self) -> list[Remark]:
        """The remarks that make it fail."""
        return [remark for remark in self.remarks if remark.is_fault]
