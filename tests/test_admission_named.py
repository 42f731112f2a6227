"""A change as ARM reads it: a document that ARM takes otherwise than it looks is never allowed."""

from __future__ import annotations

from typing import Any

import pytest

import policyeng
from policyeng.admission import changes_of
from policyeng.bundle import Bundle
from policyeng.bundle.cases import Case, baselines_of, estate
from policyeng.errors import InputError
from policyeng.models import Change, Decision, JsonObject, Operation, Snapshot

OPEN: JsonObject = {"publicNetworkAccess": "Enabled"}


@pytest.fixture(scope="module")
def state(bundle: Bundle) -> Snapshot:
    """The compliant baselines."""
    return estate(baselines_of(bundle), Case(), "here")


@pytest.fixture
def closed(bundle: Bundle) -> JsonObject:
    """A workspace as it may be."""
    return baselines_of(bundle).resources["workspace"]


def decided(bundle: Bundle, state: Snapshot, change: Any) -> Decision:
    """The decision on a change."""
    return policyeng.admit(bundle, state, change)


def is_refused(bundle: Bundle, state: Snapshot, change: Any) -> bool:
    """Whether nothing of a change can be read, or it cannot be decided."""
    try:
        return decided(bundle, state, change).exit_code == 2
    except InputError:
        return True


def opened(closed: JsonObject, **properties: object) -> JsonObject:
    """The workspace with other properties."""
    return {**closed, "properties": {**closed["properties"], **properties}}


@pytest.mark.parametrize(
    "patch",
    [
        {"properties": {"publicnetworkaccess": "Enabled"}},
        {"PROPERTIES": {"PublicNetworkAccess": "Enabled"}},
        {"properties": {"PUBLICNETWORKACCESS": None}},
    ],
)
def test_a_patch_changes_what_is_there_whatever_its_letters(
    bundle: Bundle, state: Snapshot, closed: JsonObject, patch: JsonObject
) -> None:
    """ARM reads the names of members without case, so a patch adds nothing next to them."""
    change = {"operation": "patch", "id": closed["id"], "patch": patch}
    assert decided(bundle, state, change).denied[0].policy == "AML-NET-001"


def test_a_member_in_other_letters_is_that_member(bundle: Bundle, state: Snapshot, closed: JsonObject) -> None:
    """The place of it has the name in the document."""
    properties = {key: value for key, value in closed["properties"].items() if key != "publicNetworkAccess"}
    changed = {**closed, "properties": {**properties, "PublicNetworkAccess": " Disabled "}}

    assert decided(bundle, state, changed).allowed
    (change,) = changes_of(changed, bundle.spellings)
    assert change.resource is not None
    assert change.resource["properties"]["publicNetworkAccess"] == "Disabled"


def test_a_duplicate_member_is_refused(bundle: Bundle, state: Snapshot, closed: JsonObject) -> None:
    """Which of the two ARM takes is unknown; at the top, below it, and in a patch."""
    twice = opened(closed, PublicNetworkAccess="Enabled")
    above = {**closed, "Properties": OPEN}
    patch = {"operation": "patch", "id": closed["id"], "patch": {"tags": {}, "Tags": {}}}
    with pytest.raises(InputError, match="`Properties` and `properties` are the same member"):
        decided(bundle, state, above)
    for change, place in ((twice, "/properties/PublicNetworkAccess"), (patch, "/Tags")):
        decision = decided(bundle, state, change)
        assert (decision.allowed, decision.exit_code) == (False, 2)
        assert f"{place}: the member is there twice, as" in decision.problems[0].message


def test_names_that_only_policies_know_are_read_as_they_spell_them(bundle: Bundle, closed: JsonObject) -> None:
    """Those of a user's own policies; a duplicate is refused."""
    spellings = {"microsoft.machinelearningservices/workspaces": {"ourown": "ourOwn"}}
    (change,) = changes_of(opened(closed, OUROWN=1), spellings)
    assert change.resource is not None
    assert change.resource["properties"]["ourOwn"] == 1
    with pytest.raises(InputError, match="/properties/ourown: the member is there twice, as"):
        changes_of(opened(closed, ourOwn=1, ourown=2), spellings)
    assert bundle.spellings[""]["publicnetworkaccess"] == "publicNetworkAccess"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("/workspaces/ws-ml", "/workspaces/%77s-ml"),
        ("/workspaces/ws-ml", "/%77orkspaces/ws-ml"),
        ("/workspaces/ws-ml", "/workspaces/ws-ml?api-version=2025-12-01"),
        ("/workspaces/ws-ml", "/workspaces/ws-ml#"),
        ("/workspaces/ws-ml", "/workspaces/x/../ws-ml"),
        ("/workspaces/ws-ml", "/workspaces%2Fws-ml"),
        ("/workspaces/ws-ml", "/workspaces/ws-ml "),
        ("/workspaces/ws-ml", "\\workspaces/ws-ml"),
    ],
)
def test_an_id_that_is_another_one_as_a_url_is_refused(
    bundle: Bundle, state: Snapshot, closed: JsonObject, old: str, new: str
) -> None:
    """Whatever is done with it."""
    other = closed["id"].replace(old, new)
    put = {**closed, "id": other}
    made = Change(operation=Operation.REPLACE, id=other, resource=put)
    for change in (put, other, {"operation": "patch", "id": other, "patch": {}}, made):
        assert is_refused(bundle, state, change), change


@pytest.mark.parametrize("other", ["Microsoft.Resources/tags", "Microsoft.MachineLearningServices/workspaces ", "x/y"])
def test_a_type_is_that_of_the_id(bundle: Bundle, state: Snapshot, closed: JsonObject, other: str) -> None:
    """Else nothing would evaluate the resource."""
    changed = {**opened(closed, **OPEN), "type": other}
    with pytest.raises(InputError, match="but `type` is"):
        decided(bundle, state, changed)
    decision = decided(bundle, state, Change(operation=Operation.REPLACE, id=closed["id"], resource=changed))
    assert (decision.allowed, decision.exit_code) == (False, 2)
    assert "but `type` is" in decision.problems[0].message


def test_an_id_with_a_slash_at_its_end_is_that_id(bundle: Bundle, state: Snapshot, closed: JsonObject) -> None:
    """So that what lies under it still does."""
    plain = decided(bundle, state, opened(closed, **OPEN))
    slashed_id = f"{closed['id']}/"
    put = {**opened(closed, **OPEN), "id": slashed_id}
    assert is_refused(bundle, state, put)
    slashed = decided(bundle, state, Change(operation=Operation.REPLACE, id=slashed_id, resource=put))
    assert (slashed.denied, slashed.undecided, slashed.changes) == (plain.denied, plain.undecided, plain.changes)
