"""`policyeng.facts.words`: tags, regulated and stage, three-valued and for any shape of document."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyeng.facts import words
from policyeng.models import WORKSPACE_TYPE
from policyeng.redaction import masked

SENSITIVE = ("Regulated", " restricted ")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["", " ", "dev", "Regulated", "true"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["tags", "properties", "hbiWorkspace", "data-classification", "Environment", "stage"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(st.sampled_from(["tags", "properties", "id"]), JSON, max_size=3)


def _tagged(value: object) -> dict[str, Any]:
    return {"tags": {"data-classification": value}}


def _spelled(name: str) -> dict[str, Any]:
    return {"tags": {"data-classification": "internal", name: "restricted"}}


def _flagged(value: object) -> dict[str, Any]:
    return {"properties": {"hbiWorkspace": value}}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (" De V\n", "de v"),
        ("", None),
        (" \t\u2003", None),
        ("\x1f", "\x1f"),
        (7, None),
        (None, None),
        (["dev"], None),
    ],
)
def test_folded_forgets_case_and_white_space_around(value: object, expected: str | None) -> None:
    """Blank and other than text is nothing; a control character is no white space, as in Rego."""
    assert words.fold(value) == expected


def test_white_space_is_that_of_unicode_without_separators_of_information() -> None:
    """Those four are control characters to Unicode, and white space to `str.isspace`."""
    signs = list(map(chr, range(0x10000)))
    spaces = set(filter(str.isspace, signs)) - set("\x1c\x1d\x1e\x1f")

    assert {sign for sign in signs if not words.trim(sign)} == spaces


@pytest.mark.parametrize("value", [None, 7, "text", [], {"a": []}])
def test_inside_gives_none_whatever_is_on_the_way(value: object) -> None:
    """A path through anything but objects leads nowhere."""
    assert words.get_inside(value, "a", "b") is None


def test_inside_follows_keys() -> None:
    """A path of keys leads to the value."""
    assert words.get_inside({"a": {"b": 7}}, "a", "b") == 7


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"tags": {"STAGE": "dev"}}, "dev"),
        ({"tags": {"stages": "dev"}}, None),
        ({"properties": {"tags": {"stage": "test"}}}, "test"),
        ({"type": f"{WORKSPACE_TYPE}/jobs", "properties": {"tags": {"stage": "test"}}}, "test"),
        ({"type": f"{WORKSPACE_TYPE}/Computes", "properties": {"tags": {"stage": "test"}}}, None),
        ({"type": WORKSPACE_TYPE, "properties": {"tags": {"stage": "test"}}}, None),
        ({"tags": {"stage": "dev"}, "properties": {"tags": {"stage": "test"}}}, "dev"),
        ({"tags": {"stage": " "}, "properties": {"tags": {"stage": "test"}}}, "test"),
        ({"tags": {"stage": "test", "Stage": "dev"}}, "dev"),
        ({"tags": {"stage": "test", "Stage": ""}}, "test"),
        ({"tags": {"stage": 7}}, 7),
        ({"tags": {"stage": False}}, False),
        ({"tags": {"stage": None}}, None),
        ({"tags": {"stage": None}, "properties": {"tags": {"stage": "test"}}}, "test"),
        ({"tags": None}, None),
        ({"tags": ["stage"]}, None),
        ({}, None),
        (None, None),
    ],
)
def test_tag_is_the_first_one_stated_without_case(document: dict[str, Any] | None, expected: object) -> None:
    """Top-level tags go before those of `properties`; absent, null and blank ones state nothing."""
    assert words.tag(document, "stage") == words.tag(document, "STAGE") == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (" De `v`\n", "`De `v``"),
        ("é😀" * 30, f"`{'é😀' * 30}`"),
        (" " + "é😀" * 30 + "x ", "a text of 61 characters"),
        (7, "not text"),
        (None, "not text"),
    ],
)
def test_shown_is_a_short_text_or_how_long_it_is(value: object, expected: str) -> None:
    """What a reason shows is a whole value or none of it, counted in characters."""
    assert words.format_value(value) == expected


@pytest.mark.parametrize("secret", ["sig=2MqAbCdEfGhIjKlMnOp", "https://a:b@host.example", "AccountKey=abc"])
def test_a_secret_in_a_tag_is_masked_with_its_reason(secret: str) -> None:
    """Reports mask whole texts, and the reason still looks like the secret that it shows."""
    assert masked({"because": words.stage({"tags": {"stage": secret}}, None).reason}) == {"because": "***"}


@pytest.mark.parametrize(
    ("resource", "workspace", "decided"),
    [
        ({}, _flagged(True), True),
        ({}, _flagged("TRUE"), True),
        (_tagged("public"), _flagged(True), True),
        ({}, _flagged(False), False),
        ({}, _flagged("False"), False),
        ({}, _flagged(None), False),
        ({}, {}, False),
        ({}, {"properties": "text"}, False),
        ({"tags": {"Data-Classification": "RESTRICTED"}}, {}, True),
        ({}, _tagged("regulated"), True),
        (_tagged(""), _tagged("regulated"), True),
        (_tagged("public"), _tagged("regulated"), False),
        ({"properties": _tagged("restricted")}, {}, True),
        (_tagged("restricted"), None, True),
        ({}, None, None),
        (_tagged("public"), None, None),
        ({}, _flagged(1), None),
        ({}, _flagged("yes"), None),
        ({}, _flagged(""), None),
        (_tagged(7), {}, None),
        (_spelled("Data-Classification"), {}, True),
        (_spelled("data_classification"), {}, True),
        (_spelled("DataClassification"), {}, True),
        (_spelled("data classification"), {}, True),
        (_spelled("data.classification"), {}, False),
        ({}, _spelled("DATA-CLASSIFICATION"), True),
        ({"tags": {"data-classification": 7, "Data-Classification": "public"}}, {}, None),
        ({**_tagged("public"), "properties": _tagged("restricted")}, {}, True),
    ],
)
def test_regulated_is_three_valued(
    resource: dict[str, Any], workspace: dict[str, Any] | None, decided: bool | None
) -> None:
    """The flag or the first tag stated makes it regulated; what could and cannot be read leaves it undecided."""
    assert words.regulated(resource, workspace, SENSITIVE).decided is decided


def test_a_blank_word_makes_nothing_regulated() -> None:
    """Else a tag that is not text would be equal to it."""
    assert words.regulated(_tagged(7), {}, ["", "restricted"]).decided is None


@pytest.mark.parametrize(
    ("resource", "workspace", "reason"),
    [
        ({}, _flagged(True), "`hbiWorkspace` of the workspace is true"),
        (_tagged(" Regulated "), {}, "the tag `data-classification` of the resource is `Regulated`"),
        ({}, _tagged("restricted"), "the tag `data-classification` of the workspace is `restricted`"),
        ({}, _flagged(1), "`hbiWorkspace` of the workspace is neither true nor false"),
        (_tagged(7), {}, "the tag `data-classification` of the resource is not text"),
        ({}, {}, "no flag and no tag states so"),
    ],
)
def test_regulated_says_why(resource: dict[str, Any], workspace: dict[str, Any], reason: str) -> None:
    """The reason names the flag or the tag that decided, or what could not be read."""
    assert words.regulated(resource, workspace, SENSITIVE).reason == reason


ENVIRONMENT = "the tag `environment` of the resource is"
SEVERAL = "the tag `environment` of the resource has several values"
UNKNOWN = "which is none of dev, test, staging and production and counts as production"


@pytest.mark.parametrize(
    ("of_resource", "of_workspace", "name", "reason"),
    [
        ({"environment": "dev"}, {"environment": "production"}, "dev", f"{ENVIRONMENT} `dev`"),
        ({"Environment": " Test "}, {}, "test", f"{ENVIRONMENT} `Test`"),
        ({"stage": "STAGING"}, {"environment": "dev"}, "staging", "the tag `stage` of the resource is `STAGING`"),
        ({"environment": "production", "stage": "dev"}, {}, "production", f"{ENVIRONMENT} `production`"),
        ({"environment": ""}, {"stage": "dev"}, "dev", "the tag `stage` of the workspace is `dev`"),
        ({"environment": "sandbox"}, {"environment": "dev"}, "production", f"{ENVIRONMENT} `sandbox`, {UNKNOWN}"),
        ({"environment": "x" * 61}, {}, "production", f"{ENVIRONMENT} a text of 61 characters, {UNKNOWN}"),
        ({"environment": 1}, {}, "production", f"{ENVIRONMENT} not text, which counts as production"),
        ({"environment": "dev", "Environment": "test"}, {}, "production", f"{SEVERAL}, which counts as production"),
        ({"environment": "dev", "Environment": 7}, {}, "production", f"{SEVERAL}, which counts as production"),
        ({"environment": " Dev", "Environment": "DEV"}, {}, "dev", f"{ENVIRONMENT} `DEV`"),
        ({}, {}, "production", "no tag `environment` or `stage`, which counts as production"),
    ],
)
def test_stage_is_the_first_one_stated(
    of_resource: dict[str, Any], of_workspace: dict[str, Any], name: str, reason: str
) -> None:
    """`environment` goes before `stage`, the resource before the workspace; the unknown counts as production."""
    assert words.stage({"tags": of_resource}, {"tags": of_workspace}) == words.WorkloadStage(name, reason)


def test_stage_without_a_workspace_is_production() -> None:
    """A workspace that is not in the snapshot states nothing."""
    assert words.stage({}, None).name == "production"


@given(DOCUMENTS, st.none() | DOCUMENTS)
def test_no_document_makes_a_word_raise(resource: dict[str, Any], workspace: dict[str, Any] | None) -> None:
    """Any JSON gives a result: regulated one of three, stage one of four."""
    assert words.regulated(resource, workspace, SENSITIVE).decided in (True, False, None)
    assert words.stage(resource, workspace).name in words.STAGES


@given(DOCUMENTS, DOCUMENTS)
def test_a_flag_is_never_undone(resource: dict[str, Any], workspace: dict[str, Any]) -> None:
    """With `hbiWorkspace` true no tag of any resource makes work unregulated."""
    assert words.regulated(resource, {**workspace, **_flagged(True)}, SENSITIVE).decided is True


def test_regions_and_families_compare_without_case_and_spaces() -> None:
    """The portal writes regions with both, and Azure some families."""
    assert words.squeeze(" East US 2 ") == words.squeeze("eastus2") == "eastus2"
    assert words.squeeze(" ") is words.squeeze(None) is None
