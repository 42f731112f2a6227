"""Which evidence counts for a policy or a control, at a place and at a moment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from policyeng.facts.ids import covers
from policyeng.facts.times import moment as moment_of
from policyeng.models import Evidence, JsonObject, lowered
from policyeng.redaction import masked_message

#: The scope of evidence for everything in a snapshot.
WHOLE_SNAPSHOT = "-"
#: The longest time for which evidence may be given.
LONGEST = timedelta(days=365)


class CountedEvidence(NamedTuple):
    """An entry of `evidence` that was given by a moment.

    Attributes:
        entry: as policies see it.
        state: whether it is active or lapsed at that moment.
        covers: whether its scope covers the place; None if that depends on a part of an id that is not known.
    """

    entry: JsonObject
    state: Literal["in force", "lapsed"]
    covers: bool | None


def mask_evidence(entry: Evidence) -> Evidence:
    """Return an entry for a report, with secrets in its texts masked."""
    texts = {"statement": entry.statement, "reference": entry.reference, "given_by": entry.given_by}
    return entry.model_copy(update={name: text and masked_message(text) for name, text in texts.items()})


def count_evidence(
    entries: Iterable[JsonObject], subject: str, place: str, as_of: datetime
) -> Iterator[CountedEvidence]:
    """Yield the entries for a subject that were given by a moment and cover, or may cover, a place.

    An entry is active from `givenAt` until just before `expiresAt`.

    Args:
        entries: as policies see them, with the names of JSON.
        subject: the id of a policy or `FRAMEWORK:CONTROL`, compared without case.
        place: an ARM id; without one, only entries for the whole snapshot cover it.
        as_of: the evaluation time.
    """
    for entry in entries:
        if lowered(entry["for"]) != lowered(subject):
            continue
        given, expires = moment_of(entry["givenAt"]), moment_of(entry["expiresAt"])
        if given is None or expires is None or given > as_of:
            continue
        is_covered = True if entry["scope"] == WHOLE_SNAPSHOT else covers(entry["scope"], place)
        if is_covered is not False:
            yield CountedEvidence(entry, "lapsed" if expires <= as_of else "in force", is_covered)
