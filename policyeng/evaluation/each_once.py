"""What is in a snapshot, each id once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from policyeng.models import Approval, DeclaredWorkload, Problem, lowered, to_bytes

_Stated = TypeVar("_Stated", Approval, DeclaredWorkload)


def each_once(entries: Sequence[_Stated], called: str) -> tuple[tuple[_Stated, ...], list[Problem]]:
    """Entries, each id once; of several with one id the same one is kept in whatever order they come."""
    by_id: dict[str, list[_Stated]] = {}
    for entry in entries:
        by_id.setdefault(lowered(entry.id), []).append(entry)
    if len(by_id) == len(entries):
        return tuple(entries), []
    kept = {key: min(alike, key=to_bytes) for key, alike in by_id.items()}
    problems = [twice(called, kept[key].id) for key, alike in by_id.items() for _ in alike[1:]]
    return tuple(kept.values()), sorted(problems, key=lambda problem: problem.place)


def twice(called: str, identity: str) -> Problem:
    """The problem of two that have one id."""
    return Problem(level="error", message=f"two {called} have this id; remove one of them", place=identity)
