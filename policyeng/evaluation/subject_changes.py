"""What differs between two states of a snapshot, subject by subject."""

from __future__ import annotations

from typing import NamedTuple

from policyeng.evaluation.prepared_snapshot import Resource


class SubjectChange(NamedTuple):
    """A subject that changes.

    Attributes:
        position: its position among the subjects; -1 where that does not matter.
        key: by which the subjects of its kind are sorted.
        before, after: None where it is not there.
        text: what it becomes, as JSON.
    """

    position: int
    key: str
    before: Resource | None
    after: Resource | None
    text: bytes = b""
