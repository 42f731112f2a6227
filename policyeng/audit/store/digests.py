"""Hashes: of contents, of what stands in a part, of the parts of a run, and of a run in the chain."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import orjson

from policyeng.audit.records import AuditRun


class SpanState(NamedTuple):
    """What a span says of a finding other than a pass, beside its part."""

    policy: str
    resource: str
    resource_type: str
    severity: str
    outcome: str
    exempt: bool


class PartRow(NamedTuple):
    """A row of the table of parts, without its run and its position."""

    name: str
    snapshot: str
    evaluation: str
    standing: str
    holding: str
    exit_code: int
    summary: str


def digest_of(content: bytes) -> str:
    """SHA-256, as hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def canonical(value: object) -> bytes:
    """JSON with sorted keys and without spaces."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def standing_digest(standing: Iterable[SpanState]) -> str:
    """The digest over what stands in a part, whatever its order."""
    return digest_of(standing_json(standing))


def standing_json(standing: Iterable[SpanState]) -> bytes:
    """What stands as JSON, whatever its order."""
    return canonical([list(entry) for entry in sorted(standing)])


def part_key(part: str) -> str:
    """What the keys of all spans of a part begin with."""
    return digest_of(part.encode())[:32]


def span_key(part: str, standing: SpanState) -> str:
    """The key of a span: the same for every span of one finding that says the same."""
    return part_key(part) + digest_of(canonical(list(standing)))[:32]


def content_of(policies: str, retention: str, parts: Iterable[PartRow]) -> str:
    """The hash over what a run judged and found.

    Args:
        policies: the digest of the stored bundle.
        retention: the hash of the newest retention before the run; empty without one.
        parts: in their order.
    """
    digest = hashlib.sha256(canonical([policies, retention]))
    for part in parts:
        digest.update(b"\n" + canonical(list(part)))
    return digest.hexdigest()


def document_of(run: AuditRun) -> str:
    """The JSON of a run without its hash, which is what the hash is made over."""
    return canonical(orjson.loads(run.model_dump_json(by_alias=True, exclude={"hash"}))).decode()


def run_hash(document: str) -> str:
    """The hash of a run by its document."""
    return digest_of(document.encode())


def retention_hash(number: int, at: str, runs: str, dropped: int, previous: str) -> str:
    """The hash of a row of the table of retentions."""
    fields: Sequence[object] = [number, at, runs, dropped, previous]
    return digest_of(canonical(fields))
