"""Hold every row of a store against the others: the chain of runs, their parts, contents, spans, and retention."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count, groupby

import orjson
from sqlalchemy import Connection, Row, select

from policyeng.audit.store.chained_retentions import Retentions, retentions_of
from policyeng.audit.store.digests import PartRow, content_of, run_hash
from policyeng.audit.store.faults import Fault, Verified
from policyeng.audit.store.kept import Store
from policyeng.audit.store.opening import streamed
from policyeng.audit.store.tables import PARTS, RUNS
from policyeng.audit.store.verifying_contents import verify_contents
from policyeng.audit.store.verifying_spans import verify_spans

#: A row of the table of runs, and its document as JSON; None when it is none.
_Run = tuple[Row[tuple[int, str, str, str, str, str]], Mapping[str, object] | None]


def verify(store: Store, expected: Sequence[str] = ()) -> Verified:
    """Look at every row of a store.

    Args:
        store: a store.
        expected: hashes of runs or of retentions that were noted elsewhere; only they show that the newest rows, of
            which nothing that follows tells, are still there.

    Raises:
        StoreError: the database refuses something.
    """
    with store.reading() as connection:
        return verified(connection, expected)


def verified(connection: Connection, expected: Sequence[str] = ()) -> Verified:
    """The same as `verify`, as one transaction sees it."""
    retentions = retentions_of(connection)
    runs = [(row, _document(row.document)) for row in connection.execute(select(RUNS).order_by(RUNS.c.number))]
    faults = [*retentions.faults, *_chain(runs, retentions), *_parts(connection, runs)]
    faults += _pruned_runs(runs, retentions)
    found, unused = verify_contents(connection, [row.number for row, _ in runs], retentions.pruned)
    faults += [*found, *verify_spans(connection, _by_estate(runs))]
    hashes = [row.hash for row, _ in runs]
    faults += [_missing(given) for given in expected if given not in (*hashes, *retentions.hashes)]
    head, retention = (entries[-1] if entries else "" for entries in (hashes, retentions.hashes))
    return Verified(faults, len(runs), sorted(retentions.pruned), unused, head, retention)


def _document(text: str) -> Mapping[str, object] | None:
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return document if isinstance(document, dict) else None


def _chain(runs: Sequence[_Run], retentions: Retentions) -> Iterator[Fault]:
    """Numbers without gaps, each hash over its document, each document naming the hash before."""
    previous = ""
    order = {"": -1, **{hash_: position for position, hash_ in enumerate(retentions.hashes)}}
    newest = -1
    for number, (row, document) in zip(count(1), runs, strict=False):
        at = row.number
        if at != number:
            yield Fault("runs", number, f"the run is missing: after {number - 1} comes {at}")
            return  # all that follows is out of place
        if run_hash(row.document) != row.hash or document is None:
            yield Fault("runs", at, "its document or its hash was altered")
        elif (document.get("number"), document.get("estate")) != (row.number, row.estate):
            yield Fault("runs", at, "its document is of another number or estate")
        elif document.get("previous") != previous:
            yield Fault("runs", at, "it does not follow the run before it")
        retained = order.get(row.retention)
        if retained is None or retained < newest:
            yield Fault("runs", at, "the retention that it follows is not there, or not in order")
        newest = newest if retained is None else retained
        previous = row.hash


def _parts(connection: Connection, runs: Sequence[_Run]) -> Iterator[Fault]:
    """Each run has the parts whose hash it states, and no part is of no run."""
    known = {row.number: (row, document) for row, document in runs}
    columns = (PARTS.c.run, PARTS.c.position, *(PARTS.c[name] for name in PartRow._fields))
    rows = streamed(connection, select(*columns).order_by(PARTS.c.run, PARTS.c.position))
    seen: set[int] = set()
    for number, group in groupby(rows, key=lambda row: row[0]):
        parts = list(group)
        seen.add(number)
        if number not in known:
            yield Fault("parts", number, "there are parts of a run that is not there")
            continue
        row, document = known[number]
        in_order = [part[1] for part in parts] == list(range(len(parts)))
        content = content_of(row.policies, row.retention, (PartRow(*part[2:]) for part in parts))
        if document is not None and not (in_order and content == document.get("content")):
            yield Fault("parts", number, "its parts, its policies or its retention are not those that it was made of")
    for number, (row, document) in known.items():
        if number in seen or document is None:
            continue
        if content_of(row.policies, row.retention, ()) != document.get("content"):
            yield Fault("parts", number, "its parts are missing")


def _pruned_runs(runs: Sequence[_Run], retentions: Retentions) -> Iterator[Fault]:
    for number in sorted(retentions.pruned - {row.number for row, _ in runs}):
        yield Fault("retentions", number, "retention took something of a run that is not there")


def _by_estate(runs: Sequence[_Run]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for row, _ in runs:
        found.setdefault(row.estate, []).append(row.number)
    return found


def _missing(given: str) -> Fault:
    return Fault("runs", None, f"no run and no retention has the expected hash `{given}`")
