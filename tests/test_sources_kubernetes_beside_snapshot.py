"""Single objects next to a snapshot of Azure: which resources they are, and which ones they name."""

from __future__ import annotations

from typing import Any

import pytest

from policyeng.errors import InputError
from policyeng.models import JsonObject, Snapshot
from policyeng.sources.kubernetes.single_object import BesideSnapshot
from policyeng.sources.parsed import UNKNOWN_SCOPE, Placed
from tests.cluster import ELSEWHERE, GROUP, WORKSPACE, object_of, workspace_object

STORAGE = "Microsoft.Storage/storageAccounts"
SUBSCRIPTION = GROUP.rpartition("/resourceGroups")[0]


def next_to(*ids: str, **more: Any) -> BesideSnapshot:
    """A snapshot of resources with these ids; the type is read off them."""
    resources = [{"id": identity, "type": _type_of(identity)} for identity in ids]
    return BesideSnapshot(Snapshot.model_validate({"resources": resources, **more}))


def _type_of(identity: str) -> str:
    provider, *rest = identity.rpartition("/providers/")[2].split("/")
    return "/".join([provider, *rest[::2]])


def drawn(document: JsonObject, there: BesideSnapshot) -> Placed:
    """The resource that an object represents."""
    entry = there.read(document, "").entry
    assert isinstance(entry, Placed)
    return entry


def test_an_owner_is_found_by_its_name() -> None:
    """A resource group among those with content, a workspace and its parents; case makes no difference."""
    there = next_to(WORKSPACE)
    compute = object_of("WorkspacesCompute", {"owner": {"name": "WS"}, "properties": {"aks": {}}}, name="c")

    assert there.identity(workspace_object(azureName="other"), "") == WORKSPACE.replace("/ws", "/other")
    assert there.identity(compute, "") == f"{WORKSPACE}/computes/c"
    assert drawn(compute, there).resource["id"] == f"{WORKSPACE}/computes/c"


def test_the_id_that_the_service_gave_goes_first() -> None:
    """Then the owner's, as the object states it."""
    owned = workspace_object()
    owned["spec"]["owner"] = {"armId": ELSEWHERE}
    given = WORKSPACE.replace("/ws", "/real")

    assert next_to(WORKSPACE).identity(workspace_object(), given) == given
    assert next_to(WORKSPACE).identity(owned, "").startswith(ELSEWHERE)


def test_a_resource_of_another_group_is_another_one() -> None:
    """Though its name is the same."""
    there = next_to(WORKSPACE.replace("rg-ml", "rg-other"))

    assert there.identity(workspace_object(), "").startswith(UNKNOWN_SCOPE)
    assert next_to(scope=SUBSCRIPTION).identity(workspace_object(), "") == WORKSPACE


def test_of_two_groups_of_one_name_the_one_with_the_resource_is_meant() -> None:
    """If just one has it; else it is unknown."""
    other = f"{ELSEWHERE}/providers/{STORAGE}/st"

    assert next_to(other, WORKSPACE).identity(workspace_object(), "") == WORKSPACE
    for ids in ((other, f"{GROUP}/providers/{STORAGE}/st"), (WORKSPACE, WORKSPACE.replace(GROUP, ELSEWHERE))):
        with pytest.raises(InputError, match="several subscriptions"):
            next_to(*ids).identity(workspace_object(), "")


def test_an_owner_with_two_candidates_is_unknown() -> None:
    """Two workspaces of one name."""
    there = next_to(WORKSPACE, WORKSPACE.replace("rg-ml", "rg-other"))
    with pytest.raises(InputError, match="the owner of the object is unknown"):
        there.identity(object_of("WorkspacesCompute", {"owner": {"name": "ws"}}), "")


def test_what_an_object_names_is_found_by_its_name() -> None:
    """In any resource group; with two candidates it is unknown."""
    named = workspace_object(
        storageAccountReference={"group": "storage.azure.com", "kind": "StorageAccount", "name": "st"}
    )
    account = f"{ELSEWHERE}/providers/{STORAGE}/st"

    assert drawn(named, next_to(WORKSPACE, account)).resource["properties"]["storageAccount"] == account
    two = drawn(named, next_to(WORKSPACE, account, account.replace("rg-ml", "rg-x")))
    assert "/properties/storageAccount" in two.unreadable


def test_resources_without_ids_hide_nothing() -> None:
    """They are passed over."""
    there = BesideSnapshot(
        Snapshot(resources=({"id": 1}, {"type": "t"}, {"id": WORKSPACE, "type": _type_of(WORKSPACE)}))
    )

    assert there.resource(WORKSPACE.upper()) is not None
    assert there.of_type(_type_of(WORKSPACE).upper()) == [there.resource(WORKSPACE)]
