"""Evaluations as contents: all but the findings, and the findings, which stay the same while nothing changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import orjson

from policyeng.audit.store.digests import Standing, digest_of
from policyeng.models import Evaluation, JsonObject, Outcome


class KeptEvaluation(NamedTuple):
    """An evaluation as it is kept: `contents` are its head and its findings, by digest."""

    digest: str
    contents: Mapping[str, bytes]
    findings: str


class Head(NamedTuple):
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


def head_of(head: bytes) -> Head:
    """What a head says."""
    return Head(**orjson.loads(head))


def evaluation_of(head: bytes, findings: bytes) -> Evaluation:
    """The evaluation of a head and its findings."""
    said = orjson.dumps(head_of(head).evaluation)
    return Evaluation.model_validate_json(findings[:-1] + b"," + said[1:])


def standing_in(findings: bytes) -> list[Standing]:
    """What stands of stored findings."""
    return sorted(
        {
            Standing(
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
