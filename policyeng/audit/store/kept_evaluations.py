"""Evaluations as contents: all but the findings, and the findings, which stay the same while nothing changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import orjson

from policyeng.audit.store.digests import digest_of
from policyeng.models import Evaluation


class KeptEvaluation(NamedTuple):
    """An evaluation as it is kept: `contents` are its head and its findings, by digest."""

    digest: str
    contents: Mapping[str, bytes]


def kept_evaluation(evaluation: Evaluation) -> KeptEvaluation:
    """The contents of an evaluation."""
    findings = evaluation.model_dump_json(by_alias=True, include={"findings"}, fallback=str).encode()
    said = evaluation.model_dump_json(by_alias=True, exclude={"findings"}, fallback=str).encode()
    below = digest_of(findings)
    head = orjson.dumps({"findings": below, "evaluation": orjson.Fragment(said)})
    digest = digest_of(head)
    return KeptEvaluation(digest, {digest: head, below: findings})


def findings_digest(head: bytes) -> str:
    """The digest of the findings that a head names."""
    digest: str = orjson.loads(head)["findings"]
    return digest


def report_of(head: bytes, findings: bytes) -> bytes:
    """The evaluation of a head and its findings as JSON."""
    said = orjson.dumps(orjson.loads(head)["evaluation"])
    return findings[:-1] + b"," + said[1:]


def evaluation_of(head: bytes, findings: bytes) -> Evaluation:
    """The evaluation of a head and its findings."""
    return Evaluation.model_validate_json(report_of(head, findings))
