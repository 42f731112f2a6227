"""Which subjects a policy takes, by its header."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from policyeng.bundle.header import PolicyHeader
from policyeng.identity import This
from policyeng.models import lowered


class Selector(NamedTuple):
    """One entry of `judges`: a lower-case type, and by JSON Pointer the keys of the values that are allowed."""

    kind: str
    where: tuple[tuple[str, frozenset[object]], ...]


def selectors_of(header: PolicyHeader) -> tuple[Selector, ...]:
    """Return the entries of `judges` of a header, the same ones every time."""
    return _selectors(This(header))


def key_of(value: object) -> object:
    """What values are alike by: texts without case, whole numbers and booleans as they are; None for anything else."""
    if isinstance(value, str):
        return lowered(value)
    return (type(value), value) if type(value) in (bool, int) else None


@lru_cache(maxsize=1024)
def _selectors(key: This[PolicyHeader]) -> tuple[Selector, ...]:
    return tuple(
        Selector(lowered(judged.type), tuple((at, _allowed_keys(allowed)) for at, allowed in judged.where.items()))
        for judged in key.held.judges
    )


def _allowed_keys(allowed: Iterable[str | bool | int]) -> frozenset[object]:
    """The keys of the values that are allowed; 1 and 0 pass for true and false."""
    booleans = {(int, int(entry)) for entry in allowed if isinstance(entry, bool)}
    return frozenset(booleans.union(map(key_of, allowed)))
