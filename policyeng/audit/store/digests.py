"""Hashes of contents, of the findings of a part, of the parts of a run, and of a run in the chain."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import orjson

from policyeng.audit.records import AuditRun


class SpanState(NamedTuple):
    """The state of a finding other than a pass, without its part."""

    policy: str
    resource: str
    resource_type: str
    severity: str
    outcome: str
    exempt: bool


class PartRow(NamedTuple):
    """A row of the table of parts, without the run and the position."""

    name: str
    snapshot: str
    evaluation: str
    standing: str
    holding: str
    exit_code: int
    summary: str


def digest_of(content: bytes) -> str:
    """Return the SHA-256 as hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def canonical(value: object) -> bytes:
    """Return JSON with sorted keys and without spaces."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def digest_span_states(standing: Iterable[SpanState]) -> str:
    """Return the digest of the span states of a part, in any order."""
    return digest_of(encode_span_states(standing))


def encode_span_states(standing: Iterable[SpanState]) -> bytes:
    """Return span states, in any order, as JSON."""
    return canonical([list(entry) for entry in sorted(standing)])


def part_key(part: str) -> str:
    """Return the prefix of the keys of all spans of a part."""
    return digest_of(part.encode())[:32]


def span_key(part: str, standing: SpanState) -> str:
    """Return the key of a span, the same for all spans with one state of a finding."""
    return part_key(part) + digest_of(canonical(list(standing)))[:32]


def content_of(policies: str, retention: str, parts: Iterable[PartRow]) -> str:
    """Return the hash of the policies and the parts of a run.

    Args:
        policies: the digest of the stored bundle.
        retention: the hash of the newest retention before the run; empty without one.
        parts: in order.
    """
    digest = hashlib.sha256(canonical([policies, retention]))
    for part in parts:
        digest.update(b"\n" + canonical(list(part)))
    return digest.hexdigest()


def document_of(run: AuditRun) -> str:
    """Return the JSON of a run without its hash, which the hash covers."""
    return canonical(orjson.loads(run.model_dump_json(by_alias=True, exclude={"hash"}))).decode()


def run_hash(document: str) -> str:
    """Return the hash of a run from its document."""
    return digest_of(document.encode())


def retention_hash(number: int, at: str, runs: str, dropped: int, previous: str) -> str:
    """Return the hash of a row of the table of retentions."""
    fields: Sequence[object] = [number, at, runs, dropped, previous]
    return digest_of(canonical(fields))
