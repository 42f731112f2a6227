"""The header of a policy: one model, unknown fields refused, absence decided."""

from __future__ import annotations

import pytest

from policyeng.bundle.header import PolicyHeader, header_from_metadata, parse_header, rego_metadata
from policyeng.errors import BundleError

FIELDS = {
    "id": "AML-NET-001",
    "title": "Public network access is disabled",
    "severity": "high",
    "judges": ["Microsoft.MachineLearningServices/workspaces"],
}


def test_a_minimal_header_is_filled_with_defaults() -> None:
    """Four fields are enough: the rest has a meaning when left out."""
    header = parse_header(FIELDS, "x.rego")

    assert header.exemptable
    assert header.judges[0].type == "Microsoft.MachineLearningServices/workspaces"
    assert header.defaults == {}


def changed(*patch: object, **more: object) -> dict[str, object]:
    """The fields of a header that inspects `/a` and has a patch."""
    return {"inspects": ["/a"], "remediation": {"text": "x", "patches": [{"patch": list(patch), **more}]}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"severty": "high"}, "unknown field `severty`"),
        ({"id": "net-1"}, "upper-case parts"),
        ({"severity": "severe"}, "severity"),
        ({"judges": []}, "judges"),
        ({"inspects": ["properties/x"]}, "not a JSON Pointer"),
        ({"inspects": ["/a", "/b"], "when_absent": {"/a": "fail"}}, "exactly the pointers"),
        ({"consults": [{"type": "a/b", "reads": ["x"]}]}, "not a JSON Pointer"),
        ({"consults": [{"type": "a/b", "reads": []}]}, "reads"),
        ({"consults": [{"reads": ["/x"]}]}, "`type` is left out only"),
        ({"consults": [{"reads": ["/x"], "through": "/y", "naming": "/z"}]}, "`type` is left out only"),
        ({"consults": [{"reads": ["/x"], "through": ["/y", "workspace:/z"]}]}, "not a JSON Pointer"),
        ({"consults": [{"type": "a/b", "reads": ["/x"], "naming": "workspace:/z"}]}, "not a JSON Pointer"),
        ({"consults": [{"type": "a/b", "reads": ["/x"], "within": "group"}]}, "within"),
        ({"consults": [{"type": "a/b", "reads": ["/x"], "parameter": "most"}]}, "a parameter `most` that there is not"),
        ({"when_absent": "perhaps"}, "when_absent"),
        ({"clock": "free"}, "`clock` is `compared`, or a list of durations"),
        ({"clock": ["30 days"]}, "`30 days` is no duration such as `P30D`"),
        ({"clock": ["-P1D"]}, "`-P1D` is no duration"),
        ({"clock": ["parameter:days"]}, "`clock` names a parameter `days` that there is not"),
        ({"parameters": {"limit": {"type": "integer"}}}, "has no default"),
        (
            {"parameters": {"limit": {"type": "integer", "default": "3"}}},
            "the default of parameter `limit` does not fit its schema: '3' is not of type 'integer'; correct one",
        ),
        ({"parameters": {"on": {"items": {"enum": ["a"]}, "default": ["b"]}}}, "at /0, `b` is not `a`; correct one"),
        (
            {"parameters": {"limit": {"type": "whole", "default": 3}}},
            "the schema of parameter `limit` is wrong: 'whole'",
        ),
        ({"parameters": {"limit": {"pattern": "(", "default": "x"}}}, "the schema of parameter `limit` is wrong"),
        ({"parameters": {"limit": {"$ref": "#/x", "default": 3}}}, "is wrong: `/x` is not in it"),
        ({"parameters": {"limit": {"$ref": "#", "default": 3}}}, "is wrong: it refers to itself without end"),
        ({"parameters": {"limit": {"minimum": 3, "maximum": 2, "default": 3}}}, "does not fit its schema"),
        ({"remediation": {"txt": "x"}}, "remediation"),
        ({"title": "x" * 151}, "title"),
        (changed({"op": "put", "path": "/a", "value": 1}), "`put` is no operation of a patch"),
        (changed({"op": "add", "path": "/a"}), "an operation `add` has the members op, path, value"),
        (changed({"op": "remove", "path": "a"}), "not a JSON Pointer"),
        (changed({"op": "remove", "path": 1}), "`1` is no JSON Pointer"),
        (changed({"op": "add", "path": "", "value": {}}), "not a JSON Pointer"),
        (changed({"op": "remove", "path": ""}, {"op": "remove", "path": "/a"}), "must be its only operation"),
        (changed({"op": "remove", "path": "/b"}), "changes `/b`, which is neither in `inspects` nor below it"),
        (changed({"op": "add", "path": "workspace:/a", "value": 1}), "changes `workspace:/a`"),
        (changed({"op": "replace", "path": "/id", "value": "x"}), "would only hide the failure"),
        (changed({"op": "remove", "path": "/a"}, of="a/b"), "policies with `workload` in `judges`"),
        (changed({"op": "remove", "path": "/tags"}, of="a/b") | {"judges": ["workload"]}, "changes `/properties`, not"),
        (changed({"op": "remove", "path": "/target"}) | {"judges": ["workload"]}, "neither in `inspects`"),
        ({"remediation": {"text": "x", "patch": [], "patches": []}}, "both `patch` and `patches`"),
    ],
)
def test_a_header_that_does_not_fit_is_refused_with_its_place(change: dict[str, object], message: str) -> None:
    """The message names the file, the field and what is wrong."""
    with pytest.raises(BundleError) as refusal:
        parse_header({**FIELDS, **change}, "area/x/x.rego")

    assert str(refusal.value).startswith("area/x/x.rego")
    assert message in str(refusal.value)


def test_absence_can_differ_by_pointer() -> None:
    """`when_absent` is one verdict, or one per inspected pointer."""
    header = PolicyHeader.model_validate({**FIELDS, "inspects": ["/a"], "when_absent": {"/a": "pass"}})

    assert header.absent("/a") == "pass"
    assert PolicyHeader.model_validate({**FIELDS, "when_absent": "fail"}).absent("/a") == "fail"


def test_a_patch_may_change_what_is_inspected_and_what_lies_below() -> None:
    """Also of the workspace; tests and copies may read anything, and the steps of a workload are of its target."""
    patch = [
        {"op": "test", "path": "/kind", "value": "x"},
        {"op": "copy", "from": "workspace:/tags/a", "path": "/a/b"},
        {"op": "add", "path": "workspace:/w/c", "value": 1},
    ]
    alone = {"text": "x", "patch": patch}
    header = parse_header({**FIELDS, "inspects": ["/a", "workspace:/w"], "remediation": alone}, "x")
    work = {"text": "x", "patch": [{"op": "replace", "path": "/target", "value": "aks"}]}

    assert header.remediation is not None
    assert [entry.patch for entry in header.remediation.patches] == [tuple(patch)]
    assert parse_header({**FIELDS, "judges": "workload", "inspects": ["/runs"], "remediation": work}, "x")


def test_parameters_may_be_one_object_schema() -> None:
    """A schema per name and one schema of an object are the same thing."""
    whole = {"type": "object", "properties": {"limit": {"type": "integer", "default": 3}}}

    assert parse_header({**FIELDS, "parameters": whole}, "x").defaults == {"limit": 3}


def test_metadata_is_the_block_above_the_package() -> None:
    """Only the METADATA block directly above `package` describes the policy; rule annotations do not."""
    source = "# METADATA\n# title: T\n# custom:\n#   id: AML-X-1\npackage a.b\n\n# METADATA\n# title: rule\ndeny := 1\n"

    assert rego_metadata(source) == "title: T\ncustom:\n  id: AML-X-1"
    assert rego_metadata("package a.b\n# METADATA\n# title: rule\n") is None


def test_a_library_without_an_id_is_no_policy() -> None:
    """METADATA without `custom.id` describes a library."""
    assert header_from_metadata({"title": "ids"}, "lib.rego") is None


def test_a_field_may_not_be_in_both_places() -> None:
    """A field both at the top and under `custom` would have two meanings."""
    with pytest.raises(BundleError, match="both in METADATA and under"):
        header_from_metadata({"title": "a", "custom": {**FIELDS, "title": "b"}}, "x.rego")


def test_fields_of_opa_itself_are_taken() -> None:
    """OPA's own annotations next to ours are no unknown fields."""
    header = header_from_metadata({"scope": "package", "authors": ["a"], "custom": FIELDS}, "x")

    assert header is not None
    assert header.id == "AML-NET-001"
