"""The tables of a store, and the encoding of what they contain: compressed blobs, digests and rows."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, TypeVar

import orjson
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Dialect,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.types import TypeDecorator

from policyeng.audit.records import AuditRun
from policyeng.errors import InputError, StoreError
from policyeng.models import (
    POLICY_FIELDS,
    Evaluation,
    Finding,
    Findings,
    JsonObject,
    Outcome,
    Snapshot,
    to_bytes,
)

_DIGEST = 64


class AnyText(TypeDecorator[str]):
    """External text. NUL is escaped by a backslash, because PostgreSQL does not support it."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002  # as it is called
        """Escape a value for the database."""
        return None if value is None else value.replace("\\", "\\\\").replace("\0", "\\0")

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002  # as it is called
        """Return the original value."""
        if value is None or "\\" not in value:
            return value
        return "\\".join(part.replace("\\0", "\0") for part in value.split("\\\\"))


METADATA = MetaData()

#: By SHA-256 in hexadecimal, whatever is kept whole: resources, frames of snapshots, evaluations, findings, bundles.
CONTENTS = Table(
    "contents",
    METADATA,
    Column("digest", String(_DIGEST), primary_key=True),
    Column("content", LargeBinary, nullable=False),
)

#: Runs: `document` is the JSON of everything but the hash; `policies` and `retention` are covered by its `content`.
RUNS = Table(
    "runs",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("estate", AnyText, nullable=False, index=True),
    Column("document", Text, nullable=False),
    Column("hash", String(_DIGEST), nullable=False),
    Column("policies", String(_DIGEST), nullable=False),
    Column("retention", String(_DIGEST), nullable=False),
)

#: Parts of runs: `standing` is the digest over its findings other than passes; `holding` is the JSON of what they
#: depend on, and until when they are valid.
PARTS = Table(
    "parts",
    METADATA,
    Column("run", Integer, primary_key=True, autoincrement=False),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("name", AnyText, nullable=False),
    Column("snapshot", String(_DIGEST), nullable=False),
    Column("evaluation", String(_DIGEST), nullable=False),
    Column("standing", String(_DIGEST), nullable=False),
    Column("holding", AnyText, nullable=False),
    Column("exit_code", Integer, nullable=False),
    Column("summary", Text, nullable=False),
)

#: Spans of findings; `key` is derived from their part and content, so that those of one part are adjacent.
SPANS = Table(
    "spans",
    METADATA,
    Column("estate", AnyText, primary_key=True),
    Column("key", String(_DIGEST), primary_key=True),
    Column("first", Integer, primary_key=True, autoincrement=False),
    Column("last", Integer),
    Column("part", AnyText, nullable=False),
    Column("policy", AnyText, nullable=False),
    Column("resource", AnyText, nullable=False),
    Column("resource_type", AnyText, nullable=False),
    Column("severity", String(16), nullable=False),
    Column("outcome", String(16), nullable=False),
    Column("exempt", Boolean(create_constraint=True, name="exempt_is_boolean"), nullable=False),
    sqlite_with_rowid=False,
)

#: What retention took away, chained as runs are; `runs` is a JSON list of the numbers that lost something.
RETENTIONS = Table(
    "retentions",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("at", String(40), nullable=False),
    Column("runs", Text, nullable=False),
    Column("dropped", BigInteger, nullable=False),
    Column("previous", String(_DIGEST), nullable=False),
    Column("hash", String(_DIGEST), nullable=False),
)


_Value = TypeVar("_Value")

#: Higher levels take twice the time and save a twentieth.
_LEVEL = 3
#: How many digests one query names; SQLite takes 32,766 variables.
_BATCH = 500
_CHECKSUM = 4
#: Bytes that a content may have: more than the largest document that is read.
MAX_CONTENT = 1 << 28


def in_batches(values: Iterable[_Value], size: int = _BATCH) -> Iterator[Sequence[_Value]]:
    """Yield values in lists of at most `size`."""
    iterator = iter(values)
    while batch := list(islice(iterator, size)):
        yield batch


def pack(content: bytes) -> bytes:
    """Return the stored form of a content. Its checksum also covers the bits that decompression ignores.

    Raises:
        StoreError: it is too large.
    """
    if len(content) > MAX_CONTENT:
        message = f"a content of {len(content)} bytes is too large; a store takes {MAX_CONTENT}"
        raise StoreError(message, remedy="split the estate into smaller parts")
    deflated = zlib.compress(content, _LEVEL)
    return zlib.crc32(deflated).to_bytes(_CHECKSUM, "big") + deflated


def unpack(digest: str, stored: bytes) -> bytes:
    """Return the content of its stored form.

    Raises:
        StoreError: the bytes do not match the digest.
    """
    deflated = stored[_CHECKSUM:]
    whole = zlib.crc32(deflated).to_bytes(_CHECKSUM, "big") == stored[:_CHECKSUM]
    content = _inflated(deflated) if whole else None
    if content is None or digest_of(content) != digest:
        remedy = "restore the store from a backup; `policyeng audit verify-history` lists the affected runs"
        raise StoreError(
            f"the content `{digest[:12]}` is not the one that was stored", place=("contents",), remedy=remedy
        )
    return content


def _inflated(deflated: bytes) -> bytes | None:
    """Decompress bytes; None where they are none, or are more than a content can have."""
    stream = zlib.decompressobj()
    try:
        content = stream.decompress(deflated, MAX_CONTENT)
    except zlib.error:
        return None
    return content if stream.eof else None


def store_missing(connection: Connection, contents: Mapping[str, bytes]) -> None:
    """Store the packed contents that are missing, in the order of their digests to avoid deadlocks of writers."""
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    for batch in in_batches(sorted(contents)):
        known = set(connection.scalars(select(CONTENTS.c.digest).where(CONTENTS.c.digest.in_(batch))))
        rows = [{"digest": digest, "content": contents[digest]} for digest in batch if digest not in known]
        if rows:
            connection.execute(insert(CONTENTS).on_conflict_do_nothing(), rows)


def fetch(connection: Connection, digests: Iterable[str]) -> dict[str, bytes]:
    """Return contents by digest, without those that are missing.

    Raises:
        StoreError: one of them is not what was stored.
    """
    found: dict[str, bytes] = {}
    for batch in in_batches(dict.fromkeys(digests)):
        rows = connection.execute(select(CONTENTS).where(CONTENTS.c.digest.in_(batch)))
        found.update((digest, unpack(digest, content)) for digest, content in rows)
    return found


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


_REMEDY = "write numbers within 64 bits, or text, and text without halves of surrogate pairs"


class KeptSnapshot(NamedTuple):
    """The stored form of a snapshot: `contents` are the frame and the resources, by digest."""

    digest: str
    contents: Mapping[str, bytes]


def encode_snapshot(snapshot: Snapshot) -> KeptSnapshot:
    """Return the stored form of a snapshot, without the source locations of its fields.

    Raises:
        InputError: JSON cannot represent a value.
    """
    try:
        resources = [canonical(resource) for resource in snapshot.resources]
        digests = [digest_of(resource) for resource in resources]
        frame = snapshot.model_dump(mode="json", by_alias=True, exclude={"resources"}, exclude_defaults=True)
        content = canonical({"frame": frame, "resources": digests})
    except (TypeError, ValueError) as error:
        raise InputError(f"holds what JSON cannot: {str(error).lower()}", remedy=_REMEDY) from None
    digest = digest_of(content)
    return KeptSnapshot(digest, {digest: content, **dict(zip(digests, resources, strict=True))})


def resources_of(frame: bytes) -> list[str]:
    """Return the digests of the resources of a frame, in order."""
    digests: list[str] = orjson.loads(frame)["resources"]
    return digests


def snapshot_of(frame: bytes, contents: Mapping[str, bytes]) -> Snapshot:
    """Return the snapshot of a frame. The keys of its resources are sorted.

    Raises:
        StoreError: a resource is missing.
    """
    document = orjson.loads(frame)
    try:
        resources = tuple(orjson.loads(contents[digest]) for digest in document["resources"])
    except KeyError as error:
        raise StoreError(
            f"the content {str(error)[:14]}`".replace("'", "`") + " is gone", place=("contents",)
        ) from None
    snapshot = Snapshot.model_validate(document["frame"])
    return snapshot.model_copy(update={"resources": resources})


#: What is the same of every finding that passes.
_PASSED = b',"outcome":"pass","denials":[],"unknowns":[],"exemption":null,'


class KeptEvaluation(NamedTuple):
    """The stored form of an evaluation: `contents` are its head and its findings, by digest."""

    digest: str
    contents: Mapping[str, bytes]
    findings: str


class EvaluationHead(NamedTuple):
    """The fields of a head.

    Attributes:
        findings: the digest of the findings.
        given: the number of problems of the snapshot, which are the first.
        evaluation: the evaluation without its findings, as JSON.
    """

    findings: str
    given: int
    evaluation: JsonObject


def encode_evaluation(evaluation: Evaluation, given: int) -> KeptEvaluation:
    """Return the stored form of an evaluation, without the settings. `given` of its problems are of the snapshot."""
    findings = b'{"findings":[%b]}' % b",".join(_encode_findings(Findings.of(evaluation.findings)))
    without = evaluation.model_copy(update={"findings": ()})
    encoded = without.model_dump_json(by_alias=True, exclude={"findings", "settings"}, fallback=str).encode()
    below = digest_of(findings)
    head = orjson.dumps({"findings": below, "given": given, "evaluation": orjson.Fragment(encoded)})
    digest = digest_of(head)
    return KeptEvaluation(digest, {digest: head, below: findings}, below)


def _encode_findings(findings: Findings) -> Iterator[bytes]:
    """Encode each finding as JSON; those that pass are composed of few different parts."""
    subjects: dict[int, tuple[bytes, bytes]] = {}
    for column in findings.columns:
        head = middle = b""
        for position in column.order:
            if (finding := column.others.get(position)) is not None:
                yield _finding(finding)
                continue
            if not head:
                first, last = (_encode_members({key: column.template[key] for key in keys}) for keys in POLICY_FIELDS)
                head, middle = b"{%b," % first, b"%b%b," % (_PASSED, last)
            encoded = subjects.get(position)
            if encoded is None:
                subject = column.subjects[position]
                encoded = subjects[position] = (
                    _encode_members({"resource": subject.resource, "resourceType": subject.resource_type}),
                    _encode_members({"owner": subject.owner, "location": subject.location}) + b"}",
                )
            yield head + encoded[0] + middle + encoded[1]


def _encode_members(fields: JsonObject) -> bytes:
    return to_bytes(fields)[1:-1]


def _finding(finding: Finding) -> bytes:
    try:
        return to_bytes(finding)
    except TypeError:  # what only Python has, or a number beyond 64 bits, from a policy in Python
        return finding.model_dump_json(by_alias=True, fallback=str).encode()


def head_of(head: bytes) -> EvaluationHead:
    """Return the fields of a head."""
    return EvaluationHead(**orjson.loads(head))


def evaluation_of(head: bytes, findings: bytes) -> Evaluation:
    """Return the evaluation of a head and its findings."""
    encoded = orjson.dumps(head_of(head).evaluation)
    return Evaluation.model_validate_json(findings[:-1] + b"," + encoded[1:])


def compute_span_states(findings: Findings) -> list[SpanState]:
    """Return the span states of findings, as `standing_in` does for stored findings."""
    return sorted(
        {
            SpanState(
                finding.policy,
                finding.resource,
                finding.resource_type,
                str(finding.severity),
                str(finding.outcome),
                finding.exemption is not None,
            )
            for finding in findings.others
        }
    )


def read_span_states(findings: bytes) -> list[SpanState]:
    """Return the span states of stored findings, without passes."""
    return sorted(
        {
            SpanState(
                finding["policy"],
                finding["resource"],
                finding["resourceType"],
                finding["severity"],
                finding["outcome"],
                finding["exemption"] is not None,
            )
            for finding in orjson.loads(findings)["findings"]
            if finding["outcome"] != str(Outcome.PASS)
        }
    )
