"""A value that may be absent, or undecided for a stated reason; and how several of them agree."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Generic, Never, TypeVar

from policyeng.named import NamedTuple

T_co = TypeVar("T_co", covariant=True)


class ResolvedValue(NamedTuple, Generic[T_co]):
    """A value; or an absence (neither value nor reason); or no value and the reason why it cannot be decided.

    A presumed value is one that nobody stated: what is declared takes its place. `among` are the only values that an
    undecided answer may turn out to have, none of them given where any is possible.
    """

    value: T_co | None = None
    reason: str = ""
    presumed: bool = False
    among: frozenset[T_co] = frozenset()

    @property
    def absent(self) -> bool:
        """Nobody said anything: not the same as undecided."""
        return self.value is None and not self.reason

    def or_reason(self, reason: str) -> ResolvedValue[T_co]:
        """Return the answer itself, or undecided for `reason` where it is absent."""
        return ResolvedValue(reason=reason) if self.absent else self


#: Nobody said anything.
ABSENT: ResolvedValue[Never] = ResolvedValue()


def undecided(reason: str, among: Iterable[T_co] = ()) -> ResolvedValue[T_co]:
    """No value, for this reason; where it is known, which values it may turn out to have."""
    return ResolvedValue(reason=reason, among=frozenset(among))


def get_first(*answers: ResolvedValue[T_co]) -> ResolvedValue[T_co]:
    """Return the first answer that is not absent; an absence if all are."""
    return next((answer for answer in answers if not answer.absent), ABSENT)


def get_agreed(answers: Iterable[ResolvedValue[T_co]], subject: str) -> ResolvedValue[T_co]:
    """Return the one value that all answers give; undecided if one is undecided or two differ.

    `subject` begins the reason, as in "the steps run on `a` and `b`". No answers at all is an absence.
    """
    answers = list(answers)
    reasons = sorted({answer.reason for answer in answers if answer.reason})
    among = [answer.among if answer.reason else frozenset(filter(None, [answer.value])) for answer in answers]
    possible = frozenset().union(*among) if all(among) else frozenset()
    if reasons:
        return undecided(reasons[0], possible)
    distinct = {_text(answer.value): answer for answer in answers}
    if len(distinct) > 1:
        return undecided(f"{subject} {quoted(distinct)}", possible)
    return next(iter(distinct.values()), ABSENT)


def joined(said: ResolvedValue[T_co], declared: Iterable[T_co | None], field: str) -> ResolvedValue[T_co]:
    """Return what ARM says, or else what is declared.

    Undecided where the two, or two declarations, contradict each other.
    """
    stated = {_text(value): value for value in declared if value is not None}
    if not stated:
        return said
    texts = quoted(stated)
    if said.value is None or said.presumed:
        if len(stated) > 1:
            return ResolvedValue(reason=f"{field}: the declared workloads contradict each other: {texts}")
        return ResolvedValue(next(iter(stated.values())))
    if stated.keys() - {_text(said.value)}:
        return ResolvedValue(reason=f"{field}: ARM says `{_text(said.value)}` but the declared workload says {texts}")
    return said


def quoted(texts: Iterable[str]) -> str:
    """Return the texts in order, as a reader sees them in a reason: "`a` and `b`"."""
    return " and ".join(f"`{text}`" for text in sorted(texts))


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
