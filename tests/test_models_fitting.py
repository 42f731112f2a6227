"""Facts of an organisation are read as pydantic reads them, and those that documents usually have without it."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from policyeng.models import Approval, DeclaredWorkload, Exemption, JsonObject, Metric, Model, Principal, Quota
from policyeng.sources import validation
from policyeng.sources.validation import read_fact
from tests.effort import effort

USUAL: dict[type[Model], JsonObject] = {
    Approval: {
        "id": "A-1",
        "series": "M",
        "scope": "/subscriptions/1",
        "status": "granted",
        "approvedBy": None,
        "grantedAt": "2026-01-01T00:00:00Z",
    },
    DeclaredWorkload: {
        "id": "w",
        "purpose": "training",
        "features": ["automl", "sweep"],
        "model": {"sizeGiB": 3},
        "tags": {"a": "b"},
    },
    Exemption: {
        "id": "e",
        "policy": "AML-NET-001",
        "scope": "/subscriptions/1",
        "category": "waiver",
        "reason": "r",
        "owner": "o",
        "approvedBy": "p",
        "createdAt": "2026-01-01T00:00:00Z",
        "expiresAt": "2026-02-01T00:00:00Z",
    },
    Metric: {"resourceId": "/r", "name": "cpu", "unit": "Percent", "from": "2026-01-01T00:00:00Z", "p95": 2},
    Principal: {"id": "p", "type": "User", "deleted": False},
    Quota: {"scope": "/subscriptions/1", "region": "eastus", "family": "f", "limitVCpus": 12},
}
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(
        [
            *("", "x", "Granted", "2026-01-01T00:00:00Z", "2026-13-01T00:00:00Z", "2026-01-01", "20260101T000000Z"),
            *("2026-01-01T00:00:00.123456Z", "2026-01-01 00:00:00+02:00", "2026-01-01T23:59:60Z", "2026-01-01T00:00Z"),
            *("2026-01-01T00:00:00-00:00", "2026-01-01t00:00:00z", "2026-01-01T24:00:00Z", "0000-01-01T00:00:00Z"),
        ]
    )
    | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "sizeGiB"]), inner, max_size=2),
    max_leaves=4,
)


def read_with_pydantic(noun: type[Model], value: object) -> Model | None:
    """The noun that pydantic makes; None if it refuses the value."""
    try:
        return noun.model_validate_json(orjson.dumps(value), strict=True, by_alias=True, by_name=False)
    except ValidationError:
        return None


@pytest.mark.parametrize("noun", USUAL)
def test_usual_values_need_no_pydantic(noun: type[Model], monkeypatch: pytest.MonkeyPatch) -> None:
    """They are the nouns that pydantic makes."""
    monkeypatch.setattr(validation, "validated", None)
    fact, refusals = read_fact(noun, USUAL[noun], "")
    assert not refusals
    assert fact == read_with_pydantic(noun, USUAL[noun])


@settings(max_examples=effort(300, 20_000))
@given(st.data())
def test_what_is_read_is_what_pydantic_makes(data: st.DataObject) -> None:
    """For values with changed, missing and unknown members; times that are digits are refused before pydantic."""
    noun = data.draw(st.sampled_from(list(USUAL)))
    value: Any = dict(USUAL[noun])
    for key in data.draw(st.lists(st.sampled_from([*value, "unknown"]), max_size=2)):
        if data.draw(st.booleans()):
            value[key] = data.draw(VALUES)
        else:
            value.pop(key, None)
    fact, refusals = read_fact(noun, value, "")

    assert (fact is None) is bool(refusals)
    assert fact == read_with_pydantic(noun, value)
