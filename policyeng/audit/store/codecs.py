"""Evaluations as contents: all but the findings, and the findings, which stay the same while nothing changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import orjson

from policyeng.audit.store.digests import SpanState, canonical, digest_of
from policyeng.errors import InputError, StoreError
from policyeng.models import Evaluation, JsonObject, Outcome, Snapshot

_REMEDY = "write numbers within 64 bits, or text, and text without halves of surrogate pairs"


class KeptSnapshot(NamedTuple):
    """A snapshot as it is kept: `contents` are the frame and the resources, by digest."""

    digest: str
    contents: Mapping[str, bytes]


def kept_snapshot(snapshot: Snapshot) -> KeptSnapshot:
    """The contents of a snapshot; where its fields stand in files is no part of it.

    Raises:
        InputError: it holds what JSON cannot.
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
    """The digests of the resources that a frame names, in their order."""
    digests: list[str] = orjson.loads(frame)["resources"]
    return digests


def snapshot_of(frame: bytes, contents: Mapping[str, bytes]) -> Snapshot:
    """The snapshot of a frame, its resources as they were but for the order of keys.

    Raises:
        StoreError: a resource is not there.
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


class KeptEvaluation(NamedTuple):
    """An evaluation as it is kept: `contents` are its head and its findings, by digest."""

    digest: str
    contents: Mapping[str, bytes]
    findings: str


class EvaluationHead(NamedTuple):
    """What a head says.

    Attributes:
        findings: the digest of the findings.
        given: how many of the problems came with the snapshot; they stand first.
        evaluation: all but the findings, as JSON.
    """

    findings: str
    given: int
    evaluation: JsonObject


def kept_evaluation(evaluation: Evaluation, given: int) -> KeptEvaluation:
    """The contents of an evaluation; `given` of its problems came with the snapshot. The run has the settings."""
    findings = evaluation.model_dump_json(by_alias=True, include={"findings"}, fallback=str).encode()
    said = evaluation.model_dump_json(by_alias=True, exclude={"findings", "settings"}, fallback=str).encode()
    below = digest_of(findings)
    head = orjson.dumps({"findings": below, "given": given, "evaluation": orjson.Fragment(said)})
    digest = digest_of(head)
    return KeptEvaluation(digest, {digest: head, below: findings}, below)


def head_of(head: bytes) -> EvaluationHead:
    """What a head says."""
    return EvaluationHead(**orjson.loads(head))


def evaluation_of(head: bytes, findings: bytes) -> Evaluation:
    """The evaluation of a head and its findings."""
    said = orjson.dumps(head_of(head).evaluation)
    return Evaluation.model_validate_json(findings[:-1] + b"," + said[1:])


def standing_in(findings: bytes) -> list[SpanState]:
    """What stands of stored findings."""
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
