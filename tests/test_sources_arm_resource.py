"""Resources in the form of ARM, read from one JSON value."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from policyeng.sources import arm_resource
from policyeng.sources.arm_resource import read_entry

GROUP = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg"
WORKSPACE = "Microsoft.MachineLearningServices/workspaces"
PARTS = [
    "",
    " ",
    "rg",
    "ws",
    "a_b",
    "ä",
    "$(x)",
    "${x}",
    "{{x}}",
    "__X__",
    "subscriptions",
    "resourceGroups",
    "providers",
]
TYPES = [WORKSPACE, f"{WORKSPACE}/computes", "Microsoft.Authorization/roleAssignments", "Microsoft.Compute/disks"]
KEYS = ["name", "location", "tags", "properties", "Properties", "sku", "vm_size", "kind", "limit", "unit", "extra"]

segments = st.sampled_from([*PARTS, *(part for name in TYPES for part in name.split("/"))])
written_ids = st.lists(segments, max_size=9).map("/".join)
ids = st.one_of(
    written_ids,
    st.tuples(
        st.sampled_from(["", GROUP, f"{GROUP}/providers/{WORKSPACE}/ws"]), st.sampled_from(TYPES), written_ids
    ).map(lambda parts: f"{parts[0]}/providers/{parts[1]}/{parts[2]}"),
)
values: st.SearchStrategy[object] = st.one_of(st.none(), st.just({}), st.just({"a": 1}), st.just([]), st.just("text"))
entries = st.builds(
    lambda identity, kind, rest: {"id": identity, "type": kind, **rest},
    st.one_of(ids, values),
    st.one_of(st.sampled_from([*TYPES, *map(str.upper, TYPES), "$(type)", "microsoft.x/y "]), values),
    st.dictionaries(st.sampled_from(KEYS), values, max_size=4),
)


@given(entry=entries)
@example({"id": f"{GROUP}/providers/{WORKSPACE}/ws", "type": WORKSPACE, "properties": {}})
@example({"id": f"{GROUP}/providers/{WORKSPACE}/ws", "type": WORKSPACE, "properties": {}, "tags": None})
@example({"id": f"{GROUP}/providers/{WORKSPACE}/ws/providers/{TYPES[2]}/r", "type": TYPES[2], "properties": {}})
def test_an_ordinary_resource_is_read_as_any_other(entry: dict[str, object]) -> None:
    """The shortcut for resources as ARM returns them changes nothing."""
    shortened = read_entry(entry, "/value/0")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arm_resource, "_is_ordinary", lambda _: False)
        assert read_entry(entry, "/value/0") == shortened
