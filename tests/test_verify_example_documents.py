"""Examples as documents: what is kept of an example is the example, and what is none is refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from policyeng.models import Exemption, JsonObject
from policyeng.verify.cases import DEFAULT_AS_OF
from policyeng.verify.drawing.examples import Example
from policyeng.verify.example_documents import document_of, example_of, text_of

AT = datetime(2026, 3, 1, 12, 0, 0, 1, tzinfo=UTC)
EXEMPTION = Exemption(
    id="E-1",
    policy="T-A-1",
    scope="/subscriptions/s",
    category="waiver",
    reason="r",
    owner="o",
    approved_by="a",
    created_at=AT - timedelta(days=1),
    expires_at=AT + timedelta(microseconds=1),
)
#: Texts of unusual letters, and a number beyond 64 bits: random estates hold both.
ODD: JsonObject = {"resources": [{"id": "x\u0130", "number": 2**70, "text": "\u2028"}]}


@pytest.mark.parametrize("exemptions", [(), (EXEMPTION,)])
def test_a_kept_example_is_read_back_whole(exemptions: tuple[Exemption, ...]) -> None:
    """Its estate, parameters, clock to the microsecond, and exemptions."""
    example = Example(ODD, {"T-A-1": {"days": 3}}, AT, exemptions)

    assert example_of(json.loads(text_of(document_of(example)))) == example


def test_what_is_left_out_of_a_document_is_the_usual() -> None:
    """No parameters, no exemptions, and the clock of cases."""
    assert example_of({"snapshot": {"resources": []}}) == Example({"resources": []}, {}, DEFAULT_AS_OF)


@pytest.mark.parametrize(
    "document",
    [
        [],
        {"snapshot": {"resources": ["text"]}},
        {"snapshot": {"resources": []}, "asOf": "2026-01-01"},
        {"snapshot": {"resources": []}, "exemptions": [{"id": "E-1"}]},
        {"snapshot": {"resources": []}, "exemptions": [None]},
    ],
)
def test_what_is_no_example_is_refused(document: JsonObject) -> None:
    """With an error that the search for smaller examples, and the reader of kept failures, expect."""
    with pytest.raises((AttributeError, KeyError, TypeError, ValueError)):
        example_of(document)
