"""Changes of single subjects between two states of a snapshot."""

from __future__ import annotations

from typing import NamedTuple

from policyeng.evaluation.prepared_snapshot import Resource


class SubjectChange(NamedTuple):
    """A subject that changes.

    Attributes:
        position: its position among the subjects; -1 if it is not needed.
        key: the sort key among the subjects of its kind.
        before, after: None if the subject does not exist in that state.
        text: the later state as JSON.
    """

    position: int
    key: str
    before: Resource | None
    after: Resource | None
    text: bytes = b""
