"""Hold contents against their digests, and what runs refer to against what is there."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from sqlalchemy import Connection, select

from policyeng.audit.store.contents import fetch, in_batches, unpacked
from policyeng.audit.store.digests import standing_digest
from policyeng.audit.store.faults import Fault
from policyeng.audit.store.kept_evaluations import standing_in
from policyeng.audit.store.opening import streamed
from policyeng.audit.store.references import Direct, Reference, direct_of, references_of
from policyeng.audit.store.tables import CONTENTS, PARTS, RUNS
from policyeng.errors import StoreError

_FETCHED = 200


def verify_contents(connection: Connection, numbers: Sequence[int], pruned: Collection[int]) -> tuple[list[Fault], int]:
    """What is wrong with contents, and how many of them no run refers to.

    Args:
        connection: reads.
        numbers: those of all runs.
        pruned: those of the runs of which retention took something.
    """
    present, broken = _read_all(connection)
    whole = [number for number in numbers if number not in pruned]
    direct = direct_of(connection, whole)
    references = list(references_of(connection, direct, broken))
    wanted = direct.policies | direct.frames | direct.heads
    wanted.update(digest for reference in references for digest in reference.below)
    faults = [*_lost(connection, wanted - present, direct, references, "is missing")]
    faults += _lost(connection, broken & wanted, direct, references, "is not what was stored")
    faults += [
        Fault("contents", None, f"the content `{digest[:12]}` is not what was stored, and no run needs it")
        for digest in sorted(broken - wanted)
    ]
    faults += _standing(connection, whole, direct, references, broken)
    return faults, len(present - wanted - broken)


def _read_all(connection: Connection) -> tuple[set[str], set[str]]:
    """The digests of all contents, and of those that are not what was stored."""
    present: set[str] = set()
    broken: set[str] = set()
    for digest, content in streamed(connection, select(CONTENTS), _FETCHED):
        present.add(digest)
        try:
            unpacked(digest, content)
        except StoreError:
            broken.add(digest)
    return present, broken


def _lost(
    connection: Connection, lost: Collection[str], direct: Direct, references: Sequence[Reference], what: str
) -> Iterator[Fault]:
    """A fault for every content that is not there as it was, with the first run that needs it."""
    if not lost:
        return
    above = {digest: reference.digest for reference in references for digest in reference.below if digest in lost}
    for digest in sorted(lost):
        holder = above.get(digest, digest)
        columns = (PARTS.c.snapshot, PARTS.c.evaluation)
        in_parts = select(PARTS.c.run).where(columns[holder in direct.heads] == holder).order_by(PARTS.c.run)
        in_runs = select(RUNS.c.number).where(RUNS.c.policies == digest).order_by(RUNS.c.number)
        number = connection.scalar((in_runs if digest in direct.policies else in_parts).limit(1))
        yield Fault("contents", number, f"the content `{digest[:12]}` {what}")


def _standing(
    connection: Connection,
    numbers: Sequence[int],
    direct: Direct,
    references: Sequence[Reference],
    broken: Collection[str],
) -> Iterator[Fault]:
    """What the rows of parts say to stand is what the findings say."""
    below = {reference.digest: reference.below[0] for reference in references if reference.digest in direct.heads}
    stated: dict[str, str] = {}
    for batch in in_batches(sorted(set(below.values()).difference(broken)), _FETCHED):
        stated.update(
            (digest, standing_digest(standing_in(findings))) for digest, findings in fetch(connection, batch).items()
        )
    for some in in_batches(numbers):
        yield from _differing(connection, some, below, stated)


def _differing(
    connection: Connection, numbers: Sequence[int], below: Mapping[str, str], stated: Mapping[str, str]
) -> Iterator[Fault]:
    asked = select(PARTS.c.run, PARTS.c.name, PARTS.c.evaluation, PARTS.c.standing).where(PARTS.c.run.in_(numbers))
    for number, name, evaluation, standing in connection.execute(asked):
        expected = stated.get(below.get(evaluation, ""))
        if expected is not None and expected != standing:
            yield Fault("parts", number, f"what stands in `{name}` is not what was found there")
