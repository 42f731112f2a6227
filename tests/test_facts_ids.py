"""Azure ids and scopes compare by whole segments, without case, and malformed ones never match."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyeng.facts.ids import (
    covers,
    extended_by,
    fold_id,
    guid_of,
    index_scopes,
    is_at_or_under,
    name_of,
    place_in_arm,
    positions_near,
    resource_group_of,
    scopes_of,
    segments,
    workspace_of,
)

SUBSCRIPTION = "/subscriptions/11111111-1111-1111-1111-111111111111"
GROUP = f"{SUBSCRIPTION}/resourceGroups/rg-ml"
WORKSPACE = f"{GROUP}/providers/Microsoft.MachineLearningServices/workspaces/ws"
COMPUTE = f"{WORKSPACE}/computes/gpu"
ASSIGNMENT = f"{WORKSPACE}/providers/Microsoft.Authorization/roleAssignments/a"
MANAGEMENT_GROUP = "/providers/Microsoft.Management/managementGroups/corp"

MALFORMED = [
    "",
    "//",
    "ws",
    "subscriptions/11111111-1111-1111-1111-111111111111",
    "/subscriptions",
    "/subscriptions/",
    "/subscriptions//resourceGroups/rg",
    f"{SUBSCRIPTION}//",
    f"{SUBSCRIPTION}/resourceGroups",
    f"{SUBSCRIPTION}/rg-ml",
    f"{GROUP}/providers",
    f"{GROUP}/providers/Microsoft.MachineLearningServices",
    f"{GROUP}/providers/Microsoft.MachineLearningServices/workspaces",
    f"{WORKSPACE}/computes",
    f"{WORKSPACE}/computes/ ",
    f"{GROUP}/workspaces/ws",
    "/resourceGroups/rg-ml",
]


@pytest.mark.parametrize(
    ("arm_id", "scope", "under"),
    [
        (COMPUTE, COMPUTE, True),
        (COMPUTE, WORKSPACE, True),
        (COMPUTE, GROUP, True),
        (COMPUTE, SUBSCRIPTION, True),
        (COMPUTE, "/", True),
        (COMPUTE, f"{SUBSCRIPTION}/", True),
        (f"{COMPUTE}/", SUBSCRIPTION, True),
        ("/", "/", True),
        ("/", SUBSCRIPTION, False),
        (COMPUTE.upper(), WORKSPACE.lower(), True),
        (WORKSPACE, COMPUTE, False),
        (f"{WORKSPACE}2", WORKSPACE, False),
        (f"{GROUP}-2/providers/A.B/c/d", GROUP, False),
        (ASSIGNMENT, WORKSPACE, True),
        (MANAGEMENT_GROUP, "/", True),
        (f"{MANAGEMENT_GROUP}/providers/Microsoft.Authorization/roleAssignments/a", MANAGEMENT_GROUP, True),
        (COMPUTE, MANAGEMENT_GROUP, False),
    ],
)
def test_an_id_is_at_or_under_a_scope_by_whole_segments(arm_id: str, scope: str, under: bool) -> None:
    """`ws2` is not under `ws`, and case never counts."""
    assert is_at_or_under(arm_id, scope) is under


@pytest.mark.parametrize("malformed", MALFORMED)
def test_a_malformed_id_never_matches(malformed: str) -> None:
    """It has no segments, is under nothing, not even itself or the root, and nothing is under it."""
    assert segments(malformed) is None
    assert not is_at_or_under(malformed, malformed)
    assert not is_at_or_under(malformed, "/")
    assert not is_at_or_under(COMPUTE, malformed)
    assert covers(malformed, COMPUTE) is False
    assert scopes_of(malformed) == ()
    assert workspace_of(malformed) is None


@pytest.mark.parametrize(
    ("scope", "arm_id", "expected"),
    [
        (MANAGEMENT_GROUP, COMPUTE, None),
        (MANAGEMENT_GROUP, "/providers/Microsoft.Management/managementGroups/child", None),
        (MANAGEMENT_GROUP.upper(), MANAGEMENT_GROUP, True),
        (MANAGEMENT_GROUP, "/", False),
        (MANAGEMENT_GROUP, "/providers/Microsoft.Authorization/roleDefinitions/r", False),
        (f"{MANAGEMENT_GROUP}/providers/Microsoft.Authorization/policyAssignments/p", COMPUTE, False),
        ("/", COMPUTE, True),
        (SUBSCRIPTION, MANAGEMENT_GROUP, False),
    ],
)
def test_what_a_management_group_covers_is_not_known_from_ids(scope: str, arm_id: str, expected: bool | None) -> None:
    """No id shows whether a subscription belongs to a management group, so the result is neither yes nor no."""
    assert covers(scope, arm_id) is expected


def test_the_holders_of_an_id_come_as_lower_case_ids() -> None:
    """They are ready to be looked up in the snapshot's index."""
    assert scopes_of(COMPUTE) == (SUBSCRIPTION.lower(), GROUP.lower(), WORKSPACE.lower())
    group_id = f"{GROUP}/providers/Microsoft.Network/PrivateEndpoints/pe/privateDnsZoneGroups/default"
    assert scopes_of(group_id)[2:] == (group_id.lower().rpartition("/privatednszonegroups")[0],)
    assert resource_group_of(COMPUTE) == GROUP.lower()
    assert workspace_of(COMPUTE) == WORKSPACE.lower()
    assert workspace_of(WORKSPACE) == WORKSPACE.lower()
    assert workspace_of(ASSIGNMENT) == WORKSPACE.lower()


def test_what_has_no_parent_of_the_kind_gives_none() -> None:
    """A scope above has no holder below it, and other providers have no workspace."""
    assert resource_group_of(SUBSCRIPTION) is None
    assert workspace_of(GROUP) is None
    assert workspace_of(f"{GROUP}/providers/Microsoft.Databricks/workspaces/dbx") is None
    assert workspace_of(f"{SUBSCRIPTION}/providers/Microsoft.MachineLearningServices/workspaces/ws") is None
    assert scopes_of(MANAGEMENT_GROUP) == ()


def test_one_slash_at_the_end_makes_no_difference() -> None:
    """Two do: what is not an id is equal to nothing else."""
    assert fold_id(f"{COMPUTE.upper()}/") == fold_id(COMPUTE)
    assert fold_id(f"{COMPUTE}//") != fold_id(COMPUTE)
    assert name_of(f"{COMPUTE[:-3]}GPU/") == "GPU"


@pytest.mark.parametrize(
    ("role_id", "guid"),
    [
        (f"{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/R-1", "r-1"),
        ("/providers/Microsoft.Authorization/roleDefinitions/r-1/", "r-1"),
        (" R-1 ", "r-1"),
        ("r-1//", "r-1"),
        ("", ""),
        ("/", ""),
        (None, ""),
        (["r-1"], ""),
    ],
)
def test_the_guid_of_a_role_is_the_last_part_of_its_id(role_id: object, guid: str) -> None:
    """Whatever precedes it."""
    assert guid_of(role_id) == guid


def test_a_name_may_be_a_word_of_the_grammar() -> None:
    """A workspace may be called `providers`, a resource group `subscriptions`."""
    odd = (
        f"{SUBSCRIPTION}/resourceGroups/subscriptions/providers/Microsoft.MachineLearningServices/workspaces/providers"
    )
    assert workspace_of(f"{odd}/computes/providers") == odd.lower()


names = st.text(alphabet="aB1-._", min_size=1, max_size=4)
scopes = st.lists(names, min_size=0, max_size=5).map(
    lambda parts: (
        SUBSCRIPTION
        + "".join(
            f"/{word}/{part}"
            for word, part in zip(["resourceGroups", "providers/A.B/c", "d", "e", "f"], parts, strict=False)
        )
    )
)


@given(scopes, scopes, scopes)
def test_being_under_is_an_order(first: str, second: str, third: str) -> None:
    """Every id is under itself; under is transitive; two ids under one another are the same but for case."""
    assert is_at_or_under(first, first.swapcase().replace("/SUBSCRIPTIONS", "/subscriptions"))
    if is_at_or_under(first, second) and is_at_or_under(second, third):
        assert is_at_or_under(first, third)
    if is_at_or_under(first, second) and is_at_or_under(second, first):
        assert first.lower() == second.lower()


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_text_makes_the_comparison_raise(arm_id: str, scope: str) -> None:
    """Ids come from outside: whatever they contain, the result is yes, no or not known."""
    assert covers(scope, arm_id) in {True, False, None}


@given(st.lists(st.one_of(scopes, st.sampled_from(["/", MANAGEMENT_GROUP, "/subscriptions/{s}", *MALFORMED]))), scopes)
def test_what_may_contain_an_id_is_found_by_its_scope(listed: list[str], arm_id: str) -> None:
    """Positions come in order, and those that are left out surely contain nothing of the id, which may be open."""
    indexed = index_scopes([scope] for scope in listed)
    for place in (arm_id, arm_id.replace(SUBSCRIPTION, "/subscriptions/{s}"), MANAGEMENT_GROUP):
        near = positions_near(indexed, place)
        assert near == sorted(set(near))
        assert all(at in near or covers(scope, place) is False for at, scope in enumerate(listed))


def test_an_id_is_far_from_most_scopes() -> None:
    """A scope of another subscription, or below the id, is left out; several scopes of one position count once."""
    indexed = index_scopes([[GROUP, SUBSCRIPTION], [f"{SUBSCRIPTION}2"], [COMPUTE], [MANAGEMENT_GROUP], []])

    assert positions_near(indexed, WORKSPACE) == [0, 3]


_WORDS = [
    "subscriptions",
    "resourcegroups",
    "providers",
    "microsoft.machinelearningservices",
    "workspaces",
    "computes",
    "microsoft.network",
    "privateendpoints",
    "microsoft.authorization",
    "locks",
    "a",
    "{x}",
    "ä",
]
_PARTS = st.sampled_from([*_WORDS, "", " ", "a b", "\n"])
_GROUPS = st.sampled_from([*map(str.lower, (GROUP, SUBSCRIPTION, WORKSPACE)), "", "/subscriptions/s/resourcegroups/ g"])


@given(_GROUPS, st.lists(_PARTS, max_size=9))
def test_one_split_of_an_id_finds_what_three_functions_find(head: str, parts: list[str]) -> None:
    """For ordinary ids and for any other text."""
    for key in (f"{head}/{'/'.join(parts)}", f"{head}/providers/{'/'.join(parts)}"):
        assert place_in_arm(key) == (scopes_of(key), workspace_of(key), extended_by(key))
