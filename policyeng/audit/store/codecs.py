"""Stored forms of snapshots and evaluations. Findings are stored apart from the rest, as they change less often."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import orjson

from policyeng.audit.store.digests import SpanState, canonical, digest_of
from policyeng.errors import InputError, StoreError
from policyeng.models import Evaluation, Finding, Findings, JsonObject, Outcome, Passed, Snapshot, to_bytes

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
    said = without.model_dump_json(by_alias=True, exclude={"findings", "settings"}, fallback=str).encode()
    below = digest_of(findings)
    head = orjson.dumps({"findings": below, "given": given, "evaluation": orjson.Fragment(said)})
    digest = digest_of(head)
    return KeptEvaluation(digest, {digest: head, below: findings}, below)


def _encode_findings(findings: Findings) -> Iterator[bytes]:
    """Each finding as JSON; those that pass are put together of few different parts."""
    policies: dict[int, tuple[bytes, bytes]] = {}
    subjects: dict[int, tuple[bytes, bytes]] = {}
    for entry in findings.entries:
        if not isinstance(entry, Passed):
            yield _finding(entry)
            continue
        policy, subject = entry
        of_policy = policies.get(id(policy))
        if of_policy is None:
            first = _encode_members({name: policy[name] for name in ("policy", "title", "severity")})
            last = _encode_members({name: policy[name] for name in ("remediation", "source")})
            of_policy = policies[id(policy)] = b"{%b," % first, b"%b%b," % (_PASSED, last)
        of_subject = subjects.get(id(subject))
        if of_subject is None:
            names = _encode_members({"resource": subject.resource, "resourceType": subject.resource_type})
            of_subject = subjects[id(subject)] = names, _encode_members({"location": subject.location}) + b"}"
        yield of_policy[0] + of_subject[0] + of_policy[1] + of_subject[1]


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
    said = orjson.dumps(head_of(head).evaluation)
    return Evaluation.model_validate_json(findings[:-1] + b"," + said[1:])


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
