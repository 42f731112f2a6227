"""How evaluations are written for a store: as pydantic writes them, put together of fewer parts."""

from __future__ import annotations

from random import Random

import orjson
import pytest

from policyeng import evaluate
from policyeng.audit.store.tables import (
    compute_span_states,
    digest_of,
    encode_evaluation,
    evaluation_of,
    read_span_states,
)
from policyeng.bundle import load_bundle
from policyeng.models import Denial, Finding, Findings, Outcome, Severity
from policyeng.verify.generators.examples import Examples
from tests.effort import effort


@pytest.mark.slow
def test_evaluations_are_written_as_pydantic_writes_them() -> None:
    """Findings and the rest, of drawn estates with exemptions; and what is written is what is read back."""
    bundle = load_bundle()
    examples = Examples(bundle)
    for number in range(effort(15, 500)):
        example = examples.drawn(Random(f"written {number}"))  # noqa: S311  # nothing here is secret
        evaluation = evaluate(
            bundle,
            example.snapshot,
            as_of=example.as_of,
            exemptions=example.exemptions,
            parameters=example.parameters,
        )
        kept = encode_evaluation(evaluation, 0)
        findings = kept.contents[kept.findings]

        assert findings == evaluation.model_dump_json(by_alias=True, include={"findings"}, fallback=str).encode()
        expected = evaluation.model_dump_json(by_alias=True, exclude={"findings", "settings"}, fallback=str).encode()
        whole = {"findings": digest_of(findings), "given": 0, "evaluation": orjson.Fragment(expected)}
        assert kept.contents[kept.digest] == orjson.dumps(whole)
        assert compute_span_states(Findings.of(evaluation.findings)) == read_span_states(findings)
        assert evaluation_of(kept.contents[kept.digest], findings) == evaluation


@pytest.mark.slow
def test_what_json_cannot_represent_is_written_too() -> None:
    """As it was before: a number beyond 64 bits."""
    finding = Finding(
        policy="T-A-1",
        title="t",
        severity=Severity.LOW,
        resource="r",
        resource_type="t",
        outcome=Outcome.FAIL,
        denials=(Denial("m", actual=1 << 70),),
    )
    bundle = load_bundle()
    example = Examples(bundle).drawn(Random(1))  # noqa: S311  # nothing here is secret
    evaluation = evaluate(bundle, example.snapshot, as_of=example.as_of).model_copy(update={"findings": (finding,)})
    kept = encode_evaluation(evaluation, 0)

    whole = evaluation.model_dump_json(by_alias=True, include={"findings"}, fallback=str).encode()
    assert kept.contents[kept.findings] == whole
