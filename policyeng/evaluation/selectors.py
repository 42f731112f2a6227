"""What a header says of the subjects that its policy judges and reads, worked out once and then only asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from policyeng.bundle.header import PolicyHeader
from policyeng.bundle.header_parts import WORKSPACE
from policyeng.identity import This
from policyeng.models import lowered


class Judging(NamedTuple):
    """One entry of `judges`: a lower-case type, and by JSON Pointer the keys of the values that are allowed."""

    kind: str
    where: tuple[tuple[str, frozenset[object]], ...]


class Selector(NamedTuple):
    """A header, ready to be asked about thousands of subjects.

    Attributes:
        judges: what the policy takes.
        reads: by the lower-case types that it judges, the JSON Pointers into the judged resource that decide: those
            that it inspects, and those that it is narrowed by.
        in_workspace: the pointers into its workspace that it inspects.
    """

    judges: tuple[Judging, ...]
    reads: Mapping[str, tuple[str, ...]]
    in_workspace: tuple[str, ...]


def selector_of(header: PolicyHeader) -> Selector:
    """The selector of a header, the same one every time."""
    return _selector(This(header))


def key_of(value: object) -> object:
    """What values are alike by: texts without case, whole numbers and booleans as they are; None for anything else."""
    if isinstance(value, str):
        return lowered(value)
    return (type(value), value) if type(value) in (bool, int) else None


@lru_cache(maxsize=1024)
def _selector(key: This[PolicyHeader]) -> Selector:
    header = key.held
    judges = tuple(
        Judging(lowered(judged.type), tuple((at, _allowed_keys(allowed)) for at, allowed in judged.where.items()))
        for judged in header.judges
    )
    reads = {judging.kind: [at for at in header.inspects if not at.startswith(WORKSPACE)] for judging in judges}
    for kind, where in judges:
        reads[kind] += [pointer for pointer, _ in where if pointer not in reads[kind]]
    return Selector(
        judges=judges,
        reads={kind: tuple(pointers) for kind, pointers in reads.items()},
        in_workspace=tuple(at.removeprefix(WORKSPACE) for at in header.inspects if at.startswith(WORKSPACE)),
    )


def _allowed_keys(allowed: Iterable[str | bool | int]) -> frozenset[object]:
    """The keys of the values that are allowed; 1 and 0 pass for true and false."""
    booleans = {(int, int(entry)) for entry in allowed if isinstance(entry, bool)}
    return frozenset(booleans.union(map(key_of, allowed)))
