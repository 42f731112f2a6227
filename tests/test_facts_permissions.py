"""The permission algebra decides real roles as Azure does, and keeps its laws."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyeng.errors import InputError
from policyeng.facts import (
    COMPUTE_MANAGEMENT_ACTIONS,
    Facts,
    action_matches,
    covered,
    grants,
    manages_compute,
)

ROLES = Path(__file__).resolve().parents[1] / "policies" / "facts" / "roles" / "data.json"
ML = "Microsoft.MachineLearningServices"
COMPUTES = f"{ML}/workspaces/computes"
WRITE, DELETE, START, STOP, RESTART = COMPUTE_MANAGEMENT_ACTIONS

Block = dict[str, Any]


def permissions_of(name: str) -> tuple[Block, ...]:
    """The permission blocks of a built-in role."""
    role = Facts.from_document({"roles": orjson.loads(ROLES.read_bytes())}).role(name)
    assert role is not None
    return role.permissions


@pytest.mark.parametrize(
    ("pattern", "action", "matches"),
    [
        ("*", f"{COMPUTES}/write", True),
        ("*", "", True),
        ("a*b", "a\nb", True),
        ("*/read", f"{COMPUTES}/read", True),
        ("*/read", "read", False),
        ("*/read", f"{COMPUTES}/write", False),
        (f"{COMPUTES}/*", f"{COMPUTES}/start/action", True),
        (f"{COMPUTES}/*", COMPUTES, False),
        (f"{COMPUTES}/*/write", f"{COMPUTES}/write", True),
        (f"{COMPUTES}/*/write", f"{COMPUTES}/nodes/write", True),
        (f"{COMPUTES}/*/write", f"{COMPUTES}/a/b/write", True),
        (f"{COMPUTES}/*/write", f"{COMPUTES}write", False),
        (f"{COMPUTES}/*/write", f"{COMPUTES}/overwrite", False),
        ("a/*/*/b", "a/b", True),
        ("a/*/*/b", "a/x/b", True),
        ("a/*b", "a/b", True),
        ("a*/b", "a/b", True),
        ("a/*", "a/", True),
        (f"{ML.upper()}/WORKSPACES/*/WRITE", f"{ML.lower()}/workspaces/computes/write", True),
        (f"{ML}/workspaces/w?ite", f"{ML}/workspaces/write", False),
        ("a.b/c", "axb/c", False),
        ("*a*ab", "aab", True),
        ("*ab*ab*", "abab", True),
        ("*ab*ab*", "aba", False),
    ],
)
def test_a_pattern_stands_for_these_actions(pattern: str, action: str, matches: bool) -> None:
    """A star is any run, also none and also with slashes; between slashes it may take one of them along."""
    assert action_matches(pattern, action) is matches


@pytest.mark.parametrize(
    ("role", "granted"),
    [
        ("AzureML Data Scientist", [START, STOP, RESTART]),
        ("AzureML Compute Operator", list(COMPUTE_MANAGEMENT_ACTIONS)),
        ("Owner", list(COMPUTE_MANAGEMENT_ACTIONS)),
        ("Contributor", list(COMPUTE_MANAGEMENT_ACTIONS)),
        ("Azure AI Administrator", list(COMPUTE_MANAGEMENT_ACTIONS)),
        ("Reader", []),
        ("User Access Administrator", []),
        ("AzureML Metrics Writer (preview)", []),
        ("AzureML Registry User", []),
    ],
)
def test_built_in_roles_manage_compute_as_azure_says(role: str, granted: list[str]) -> None:
    """The Data Scientist cannot create or delete a compute and still starts and stops it."""
    assert manages_compute(permissions_of(role)) == granted


def test_contributor_lacks_what_its_not_actions_take() -> None:
    """`*` less role assignment, in whatever case the action is written."""
    contributor = permissions_of("Contributor")
    assert not grants(contributor, "microsoft.authorization/roleAssignments/WRITE")
    assert grants(contributor, "Microsoft.Authorization/roleAssignments/read")


def test_a_second_block_gives_back_what_the_first_takes() -> None:
    """Blocks add up: a notAction takes only from its own block."""
    narrow = {"actions": [f"{COMPUTES}/*"], "notActions": [WRITE]}
    assert not grants([narrow], WRITE)
    assert grants([narrow, {"actions": [WRITE]}], WRITE)


def test_the_data_plane_is_asked_apart() -> None:
    """`dataActions` grant no action, and `actions` no data action."""
    block = {"actions": ["a/*"], "dataActions": ["d/*"], "notDataActions": ["d/secret"]}
    assert grants([block], "d/x", data_action=True)
    assert not grants([block], "d/secret", data_action=True)
    assert not grants([block], "a/x", data_action=True)
    assert not grants([block], "d/x")


def test_absent_and_null_keys_are_empty() -> None:
    """Formats that leave keys out, or give null, grant and take nothing there."""
    assert grants([{"actions": ["*"], "notActions": None}], WRITE)
    assert not grants([{"notActions": ["x"]}, {}], WRITE)


@pytest.mark.parametrize("block", [{"actions": "*"}, {"actions": ["*"], "notActions": [1]}])
def test_a_block_of_another_shape_is_refused(block: Block) -> None:
    """A permission that cannot be read is never taken for one that grants nothing."""
    with pytest.raises(InputError, match="is not a list of strings"):
        grants([block], WRITE)


@pytest.mark.parametrize(
    ("pattern", "others", "expected"),
    [
        ("*", ["*"], True),
        ("*", ["**"], True),
        ("*", [f"{ML}/*"], False),
        ("*", ["*/read", "*/write", "*/delete", "*/action"], False),
        ("*", [], False),
        (f"{ML}/*", ["*"], True),
        (f"{ML}/*", [f"{ML.lower()}/*"], True),
        (f"{ML}/*", [f"{ML}/workspaces/*", f"{ML}/registries/*"], False),
        (f"{ML}/*/read", ["*/read"], True),
        (f"{ML}/*/read", [f"{ML}/*read"], True),
        (f"{ML}/*read", [f"{ML}/*/read"], False),
        ("a/*/b", ["a*/b"], True),
        ("a/*/b", ["a/*b"], True),
        ("a*b", ["a/*/b"], False),
        ("a/*/b", ["a/*/*/b"], True),
        ("a/*/*/b", ["a/*/b"], True),
        ("a/b", ["a/*/b"], True),
        ("a/b", ["a/c", "a/b"], True),
        ("a/*x", ["a/*y*x", "a/x"], False),
        ("a*", ["a\x00"], False),
        ("\x00*", ["\x00\x01"], False),
    ],
)
def test_a_pattern_is_covered_by_others_or_not(pattern: str, others: list[str], expected: bool) -> None:
    """A pattern is cut back wholly only when no action is left that it stands for."""
    assert covered(pattern, others) is expected


# Few letters, so that patterns meet.
patterns = st.text(alphabet="ab/*", max_size=7)
actions = st.text(alphabet="ab/", max_size=7)
blocks = st.fixed_dictionaries(
    {"actions": st.lists(patterns, max_size=3), "notActions": st.lists(patterns, max_size=3)}
)
permissions = st.lists(blocks, max_size=3)


def stands_for(pattern: str, action: str) -> bool:
    """The same question by the definition itself: try every length for every star."""
    if not pattern:
        return not action
    if pattern.startswith("/*/") and action.startswith("/") and stands_for(pattern[2:], action):
        return True
    if pattern[0] == "*":
        return any(stands_for(pattern[1:], action[cut:]) for cut in range(len(action) + 1))
    return action[:1] == pattern[0] and stands_for(pattern[1:], action[1:])


@given(patterns, actions)
def test_matching_agrees_with_its_definition(pattern: str, action: str) -> None:
    """The compiled form decides as the definition, tried by brute force, does."""
    assert action_matches(pattern, action) is stands_for(pattern, action)


@given(patterns, st.lists(patterns, max_size=3))
def test_inclusion_agrees_with_sampling(pattern: str, others: list[str]) -> None:
    """What is covered has no uncovered sample; what is not covered has one, with a letter that no pattern has."""
    fillings = itertools.product(["", "a", "/", "b/a", "z"], repeat=pattern.count("*"))
    pieces = pattern.split("*")
    samples = ("".join(itertools.chain(*zip(pieces, [*filling, ""], strict=True))) for filling in fillings)
    uncovered = any(not any(stands_for(other, sample) for other in others) for sample in itertools.islice(samples, 700))
    if covered(pattern, others):
        assert not uncovered
    elif pattern.count("*") <= 4:
        assert uncovered


@given(patterns, st.lists(patterns, max_size=3), actions)
def test_what_covers_a_pattern_matches_all_that_it_matches(pattern: str, others: list[str], action: str) -> None:
    """Inclusion is about actions: each one that the pattern stands for is met by some other."""
    if covered(pattern, others) and action_matches(pattern, action):
        assert any(action_matches(other, action) for other in others)


@given(permissions, blocks, patterns, actions)
def test_adding_an_action_never_takes_a_permission(
    before: list[Block], block: Block, pattern: str, action: str
) -> None:
    """More actions, more permissions."""
    if grants([*before, block], action):
        assert grants([*before, {**block, "actions": [*block["actions"], pattern]}], action)


@given(permissions, blocks, patterns, actions)
def test_adding_a_not_action_never_gives_a_permission(
    before: list[Block], block: Block, pattern: str, action: str
) -> None:
    """More notActions, fewer permissions."""
    if grants([*before, {**block, "notActions": [*block["notActions"], pattern]}], action):
        assert grants([*before, block], action)


@given(permissions, permissions, actions)
def test_blocks_add_up(first: list[Block], second: list[Block], action: str) -> None:
    """Two roles together grant what either grants."""
    assert grants([*first, *second], action) is (grants(first, action) or grants(second, action))


def test_a_hostile_pattern_is_decided_at_once() -> None:
    """Many stars do not make matching slow."""
    begun = time.perf_counter()
    assert not action_matches("*a" * 60 + "*b", "a" * 5000)
    assert not covered("*a" * 200, ["*a" * 201] * 50)
    assert time.perf_counter() - begun < 2
