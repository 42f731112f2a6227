"""An estate written as a template and read again is the same estate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyeng.models import JsonObject
from policyeng.sources import arm_template
from policyeng.sources.arm_resource import service_made, with_attachment
from policyeng.sources.parsed import ParsedDocument, Surroundings
from tests.effort import effort
from tests.writers.arm_template import SCOPE, expressible, write

BASELINES = sorted((Path(__file__).resolve().parents[1] / "samples" / "baselines").glob("*.json"))

#: Without white space around them, which readers take from some fields.
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12).map(str.strip) | st.sampled_from(
    ["[parameters('x')]", "[[x]", "[", "it's", "{0}", "{{x}}", "a/b", "]", "PT15M", f"{SCOPE}/providers/A.B/c/d"]
)
SCALARS = TEXTS | st.booleans() | st.integers(-(2**31), 2**31) | st.sampled_from([0.5, -1.25])


def read_back(resources: list[JsonObject]) -> ParsedDocument:
    """The estate as the template written from it states it."""
    (content,) = write(resources).values()
    document = json.loads(content)
    assert arm_template.detect(document)
    return arm_template.read(document, Surroundings(scope=SCOPE))


def without_nulls(value: Any) -> Any:
    """The value without the keys that are null, which a template takes as absent."""
    if isinstance(value, dict):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value


def assert_same(resources: list[JsonObject]) -> None:
    """Everything that can be written comes back, and nothing else is unreadable than what the service makes."""
    reading = read_back(resources)

    assert not reading.refusals
    assert not reading.incomplete
    assert not reading.remarks
    # Templates name a resource by its id; the workspace of the baselines has another name than its id.
    expected = {one["id"]: {**one, "name": one["id"].rpartition("/")[2]} for one in resources if expressible(one)}
    found = {placed.resource["id"]: placed for placed in reading.resources}
    assert found.keys() == expected.keys()
    for identity, placed in found.items():
        assert with_attachment(placed.resource) == with_attachment(without_nulls(expected[identity]))
        assert placed.unreadable == service_made(placed.resource["type"])


@st.composite
def changed(draw: st.DrawFn) -> JsonObject:
    """A resource of the baselines with other values in some places."""
    path = draw(st.sampled_from(BASELINES))
    resource: JsonObject = json.loads(path.read_text(encoding="utf-8"))
    for _ in range(draw(st.integers(0, 4))):
        holder: Any = resource["properties"]
        while isinstance(holder, dict) and holder:
            key = draw(st.sampled_from(sorted(holder)))
            inner = holder[key]
            if not isinstance(inner, dict) or not inner:
                holder[key] = draw(st.lists(SCALARS, max_size=3)) if isinstance(inner, list) else draw(SCALARS)
                break
            holder = inner
    resource["tags"] = draw(st.dictionaries(st.text("abcXYZ-", min_size=1, max_size=5), TEXTS, max_size=3))
    return resource


@pytest.mark.parametrize("path", BASELINES, ids=lambda path: path.stem)
def test_each_kind_of_resource_comes_back(path: Path) -> None:
    """One resource of each kind that the baselines have."""
    assert_same([json.loads(path.read_text(encoding="utf-8"))])


def test_the_whole_estate_comes_back() -> None:
    """Children next to or inside their parents, and other resources in nested templates."""
    assert_same([json.loads(path.read_text(encoding="utf-8")) for path in BASELINES])


def test_resources_elsewhere_come_back() -> None:
    """Another resource group and another subscription are deployed to by nested templates."""
    elsewhere = [SCOPE.replace("rg-ml", "rg-net"), SCOPE.replace("1111-", "2222-", 1)]
    kind = "Microsoft.Network/virtualNetworks/subnets"
    assert_same(
        [
            {"id": f"{group}/providers/Microsoft.Network/virtualNetworks/v/subnets/s", "name": "s", "type": kind}
            for group in elsewhere
        ]
    )


@settings(max_examples=effort(30, 150), deadline=None)
@given(st.lists(changed(), max_size=5, unique_by=lambda resource: resource["id"]))
def test_any_estate_comes_back(resources: list[JsonObject]) -> None:
    """Its values can be any, texts in brackets, quotes and braces among them."""
    assert_same(resources)
