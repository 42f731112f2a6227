"""The permission algebra decides real roles as Azure does, and keeps its laws."""

from __future__ import annotations

import itertools
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyeng.facts import Facts
from policyeng.facts.permissions import action_matches, covered, granted, is_conditional, is_sound
from tests.growth import assert_linear

ROLES = Path(__file__).resolve().parents[1] / "policies" / "facts" / "roles" / "data.json"
ML = "Microsoft.MachineLearningServices"
COMPUTES = f"{ML}/workspaces/computes"
WRITE = f"{COMPUTES}/write"

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
def test_a_pattern_matches_these_actions(pattern: str, action: str, matches: bool) -> None:
    """A star is any run, also none and also with slashes; between slashes it may take one of them along."""
    assert action_matches(pattern, action) is matches


def test_contributor_lacks_what_its_not_actions_take() -> None:
    """`*` less role assignment, in whatever case the action is written."""
    contributor = permissions_of("Contributor")
    assert not granted(contributor, "microsoft.authorization/roleAssignments/WRITE")
    assert granted(contributor, "Microsoft.Authorization/roleAssignments/read")


def test_a_second_block_gives_back_what_the_first_takes() -> None:
    """Blocks add up: a notAction takes only from its own block."""
    narrow = {"actions": [f"{COMPUTES}/*"], "notActions": [WRITE]}
    assert not granted([narrow], WRITE)
    assert granted([narrow, {"actions": [WRITE]}], WRITE)


def test_the_data_plane_is_matched_apart() -> None:
    """`dataActions` grant no action, and `actions` no data action."""
    block = {"actions": ["a/*"], "dataActions": ["d/*"], "notDataActions": ["d/secret"]}
    assert granted([block], "d/x", data_action=True)
    assert not granted([block], "d/secret", data_action=True)
    assert not granted([block], "a/x", data_action=True)
    assert not granted([block], "d/x")


def test_absent_and_null_keys_are_empty() -> None:
    """Formats that leave keys out, or give null, grant and take nothing there."""
    assert granted([{"actions": ["*"], "notActions": None}], WRITE)
    assert not granted([{"notActions": ["x"]}, {}], WRITE)


@pytest.mark.parametrize("block", [{"actions": "*"}, {"actions": ["*"], "notActions": [1]}, None, "*", 7])
def test_a_block_of_another_shape_leaves_it_open(block: object) -> None:
    """A permission that cannot be read is not taken for one that grants nothing, nor hides what another grants."""
    assert not is_sound(block)
    assert granted([block], WRITE) is None
    assert granted([block, {"actions": ["*"]}], WRITE) is True


@pytest.mark.parametrize("permissions", [None, {}, "*", {"actions": ["*"]}])
def test_permissions_that_are_no_list_leave_it_open(permissions: object) -> None:
    """Whatever the value, nothing raises."""
    assert granted(permissions, WRITE) is None


def test_each_plane_is_readable_by_itself() -> None:
    """Data actions that cannot be read leave the control plane alone."""
    block = {"actions": ["*"], "dataActions": "*"}
    assert granted([block], WRITE) is True
    assert granted([block], WRITE, data_action=True) is None


def test_the_condition_of_a_block_decides_what_it_grants() -> None:
    """It is noted as unknown, where the block grants at all and no other one does without a condition."""
    block = {"actions": [f"{COMPUTES}/*"], "notActions": [f"{COMPUTES}/delete"], "condition": "@Resource[x]"}
    assert granted([block], WRITE) is None
    assert granted([block], f"{COMPUTES}/delete") is False
    assert granted([block, {"actions": [WRITE]}], WRITE) is True


@pytest.mark.parametrize(
    ("condition", "decides"), [(None, False), ("", False), (" \n", False), ("x", True), (0, True), (False, True)]
)
def test_any_condition_but_a_blank_one_counts(condition: object, decides: bool) -> None:
    """One that is not text cannot be read, so it is not taken for none."""
    assert is_conditional({"condition": condition}) is decides
    assert not is_conditional(None)


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
    """A pattern is cut back wholly only when no action is left that it matches."""
    assert covered(pattern, others) is expected


# Few letters, so that patterns meet.
patterns = st.text(alphabet="ab/*", max_size=7)
actions = st.text(alphabet="ab/", max_size=7)
blocks = st.fixed_dictionaries(
    {"actions": st.lists(patterns, max_size=3), "notActions": st.lists(patterns, max_size=3)},
    optional={"condition": st.just("@Resource[x] StringEquals 'y'")},
)
permissions = st.lists(blocks, max_size=3)


def fits(pattern: str, action: str) -> bool:
    """The same question by the definition itself: try every length for every star."""
    if not pattern:
        return not action
    if pattern.startswith("/*/") and action.startswith("/") and fits(pattern[2:], action):
        return True
    if pattern[0] == "*":
        return any(fits(pattern[1:], action[cut:]) for cut in range(len(action) + 1))
    return action[:1] == pattern[0] and fits(pattern[1:], action[1:])


@given(patterns, actions)
def test_matching_agrees_with_its_definition(pattern: str, action: str) -> None:
    """The compiled form decides as the definition, tried by brute force, does."""
    assert action_matches(pattern, action) is fits(pattern, action)


@given(patterns, st.lists(patterns, max_size=3))
def test_inclusion_agrees_with_sampling(pattern: str, others: list[str]) -> None:
    """What is covered has no uncovered sample; what is not covered has one, with a letter that no pattern has."""
    fillings = itertools.product(["", "a", "/", "b/a", "z"], repeat=pattern.count("*"))
    pieces = pattern.split("*")
    samples = ("".join(itertools.chain(*zip(pieces, [*filling, ""], strict=True))) for filling in fillings)
    uncovered = any(not any(fits(other, sample) for other in others) for sample in itertools.islice(samples, 700))
    if covered(pattern, others):
        assert not uncovered
    elif pattern.count("*") <= 4:
        assert uncovered


@given(patterns, st.lists(patterns, max_size=3), actions)
def test_what_covers_a_pattern_matches_all_that_it_matches(pattern: str, others: list[str], action: str) -> None:
    """Inclusion is about actions: each one that the pattern matches is met by some other."""
    if covered(pattern, others) and action_matches(pattern, action):
        assert any(action_matches(other, action) for other in others)


#: How much is granted: nothing, what a condition decides, all of it.
RANK = {False: 0, None: 1, True: 2}


@given(permissions, blocks, patterns, actions)
def test_adding_an_action_never_takes_a_permission(
    before: list[Block], block: Block, pattern: str, action: str
) -> None:
    """More actions, more permissions."""
    after = granted([*before, {**block, "actions": [*block["actions"], pattern]}], action)
    assert RANK[after] >= RANK[granted([*before, block], action)]


@given(permissions, blocks, patterns, actions)
def test_adding_a_not_action_never_gives_a_permission(
    before: list[Block], block: Block, pattern: str, action: str
) -> None:
    """More notActions, fewer permissions."""
    after = granted([*before, {**block, "notActions": [*block["notActions"], pattern]}], action)
    assert RANK[after] <= RANK[granted([*before, block], action)]


@given(permissions, permissions, actions)
def test_blocks_add_up(first: list[Block], second: list[Block], action: str) -> None:
    """Two roles together grant what either grants."""
    both = granted([*first, *second], action)
    assert RANK[both] == max(RANK[granted(first, action)], RANK[granted(second, action)])


@given(permissions, actions, st.randoms(use_true_random=False))
def test_order_is_irrelevant(before: list[Block], action: str, order: Random) -> None:
    """Neither the order of the blocks nor that of their patterns decides anything."""
    mixed = [
        {**block, **{key: order.sample(block[key], len(block[key])) for key in ("actions", "notActions")}}
        for block in order.sample(before, len(before))
    ]
    assert granted(mixed, action) is granted(before, action)


@given(permissions, actions)
def test_case_is_irrelevant(before: list[Block], action: str) -> None:
    """Neither that of the patterns nor that of the action."""
    shouted = [
        {**block, **{key: [pattern.upper() for pattern in block[key]] for key in ("actions", "notActions")}}
        for block in before
    ]
    assert granted(shouted, action) is granted(before, action)
    assert granted(before, action.upper()) is granted(before, action)


@given(actions)
def test_a_star_grants_everything(action: str) -> None:
    """Whatever the action; and taken back it leaves nothing."""
    assert granted([{"actions": ["*"]}], action) is True
    assert granted([{"actions": [action, "*"], "notActions": ["*"]}], action) is False


@given(actions, actions)
def test_a_pattern_without_a_star_grants_itself_alone(pattern: str, action: str) -> None:
    """No action is taken in by being above, below or alike."""
    assert granted([{"actions": [pattern]}], action) is (pattern == action)


@given(patterns, st.lists(patterns, max_size=3), actions)
def test_what_is_wholly_cut_back_grants_nothing(pattern: str, taken: list[str], action: str) -> None:
    """`covered` is sound against `granted`: a pattern that is covered by the notActions leaves no action."""
    if covered(pattern, taken):
        assert granted([{"actions": [pattern], "notActions": taken}], action) is False


def test_a_hostile_pattern_takes_linear_time() -> None:
    """Many stars do not make matching slow."""
    assert not covered("*a" * 200, ["*a" * 201] * 50)
    assert_linear(lambda size: action_matches("*a" * 60 + "*b", "a" * size), 5000)
