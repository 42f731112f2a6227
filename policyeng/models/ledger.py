"""The ledger: what of the inputs was not read, with the reason and the place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import force_setattr

from policyeng.models.base import Model
from policyeng.redaction import masked_message

if TYPE_CHECKING:
    from policyeng.models.findings import Severity


class FailureCriteria(Protocol):
    """The rules for what fails a run; settings, options, evaluations and audits have them."""

    @property
    def fail_on(self) -> Severity:
        """The lowest severity whose failures fail the run."""

    @property
    def strict_unknown(self) -> bool:
        """Whether unknown findings, and relevant entries of the ledger, count as failures."""


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


def leaves_undecided(ledger: Iterable[LedgerEntry], criteria: FailureCriteria) -> bool:
    """Check whether a run counts as undecided for what was not read: the one rule of checks, decisions and audits."""
    return criteria.strict_unknown and any(entry.relevant for entry in ledger)
