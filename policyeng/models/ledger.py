"""The ledger: what of the inputs was not read, with the reason and the place."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import force_setattr

from policyeng.models.base import Model
from policyeng.redaction import masked_message


class LedgerEntry(Model, frozen=True, kw_only=True):
    """A folder, a file or a part of a document that was not read.

    Attributes:
        place: a folder (with a slash at the end) or a file as the user named it, maybe with a line; empty for a part of
            the snapshot.
        reason: why it was not read.
        relevant: whether it could hold or change a Machine Learning resource.
    """

    place: str
    reason: str
    relevant: bool

    def __post_init__(self) -> None:
        force_setattr(self, "place", masked_message(self.place))
        force_setattr(self, "reason", masked_message(self.reason))


def relevant_entries(ledger: Iterable[LedgerEntry]) -> list[LedgerEntry]:
    """Return the entries that could hold or change a Machine Learning resource."""
    return [entry for entry in ledger if entry.relevant]


def leaves_undecided(ledger: Iterable[LedgerEntry], *, strict_unknown: bool) -> bool:
    """Check whether a run counts as undecided for what was not read: the one rule of checks, decisions and audits."""
    return strict_unknown and any(entry.relevant for entry in ledger)
