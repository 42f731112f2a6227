"""What documents do not state: their workspace, their scope, and which of them must be kept apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from policyeng.errors import InputError, UsageError
from policyeng.models import JsonObject
from policyeng.sources.context import DocumentContext, Home, find_surroundings, normalize_context
from policyeng.sources.discovery import Named
from policyeng.sources.merge import separate_ids
from policyeng.sources.parsed import UNKNOWN_SCOPE, UNKNOWN_WORKSPACE, Loaded, ParsedDocument, Placed
from policyeng.sources.text import Text

SUBSCRIPTION = "/subscriptions/11111111-1111-1111-1111-111111111111"
SCOPE = f"{SUBSCRIPTION}/resourceGroups/rg-ml"
WORKSPACES = "/providers/Microsoft.MachineLearningServices/workspaces/"


@pytest.mark.parametrize(
    ("scope", "workspace", "expected"),
    [
        ("", "", DocumentContext()),
        (SCOPE, "", DocumentContext(SCOPE)),
        (f" {SCOPE}/ ", "ws", DocumentContext(SCOPE, f"{SCOPE}{WORKSPACES}ws")),
        (SUBSCRIPTION, "", DocumentContext(f"{SUBSCRIPTION}/resourceGroups/{{resource-group}}")),
        ("", "ws", DocumentContext("", f"{UNKNOWN_SCOPE}{WORKSPACES}ws")),
        ("", f"{SCOPE}{WORKSPACES}ws", DocumentContext(SCOPE, f"{SCOPE}{WORKSPACES}ws")),
        (SUBSCRIPTION + "/resourceGroups/other", f"{SCOPE}{WORKSPACES}ws", None),
    ],
)
def test_a_workspace_is_named_by_id_or_by_name_in_a_scope(
    scope: str, workspace: str, expected: DocumentContext | None
) -> None:
    """An id of a workspace gives the scope, too, unless another is given for templates."""
    expected = expected or DocumentContext(f"{SUBSCRIPTION}/resourceGroups/other", workspace)

    assert normalize_context(scope, workspace, {}) == expected


@pytest.mark.parametrize(
    ("scope", "workspace", "message"),
    [
        ("rg-ml", "", "`rg-ml` is not a subscription or a resource group"),
        (f"{SCOPE}{WORKSPACES}ws", "", "is not a subscription or a resource group"),
        ("", SCOPE, "is not a workspace"),
        ("", f"{SCOPE}{WORKSPACES}ws/computes/c", "is not a workspace"),
    ],
)
def test_another_id_is_a_usage_error(scope: str, workspace: str, message: str) -> None:
    """It names what was given and the form that is read."""
    with pytest.raises(UsageError, match="give") as refused:
        normalize_context(scope, workspace, {})

    assert message in str(refused.value)


HOMES = {
    "same directory": [Home(Path("/r/a"), "A"), Home(Path("/r"), "R"), Home(Path("/r/b"), "B")],
    "above": [Home(Path("/r"), "R"), Home(Path("/r/b"), "B")],
    "elsewhere": [Home(Path("/r/b"), "B")],
    "of one name": [Home(Path("/r/a"), "A"), Home(Path("/r/a"), "a")],
    "two in the same directory": [Home(Path("/r/a"), "A"), Home(Path("/r/a"), "B")],
    "two elsewhere": [Home(Path("/r/b"), "B"), Home(Path("/r/c"), "C")],
    "below": [Home(Path("/r/a/x"), "X"), Home(Path("/r/b"), "B")],
    "none": [],
}


@pytest.mark.parametrize(
    ("homes", "workspace"),
    [
        ("same directory", "A"),
        ("above", "R"),
        ("elsewhere", "B"),
        ("of one name", "A"),
        ("two in the same directory", UNKNOWN_WORKSPACE),
        ("two elsewhere", UNKNOWN_WORKSPACE),
        ("below", UNKNOWN_WORKSPACE),
        ("none", UNKNOWN_WORKSPACE),
    ],
)
def test_the_nearest_workspace_above_a_file_is_its_own(homes: str, workspace: str) -> None:
    """Of its directory, of one above, or the only one there is; between two there is no guess."""
    named = Named("a/c.yml", Path("/r/a/c.yml"))

    assert find_surroundings(named, DocumentContext(), HOMES[homes], 1000).workspace == workspace
    assert find_surroundings(named, DocumentContext(workspace="given"), HOMES[homes], 1000).workspace == "given"


def test_a_scope_places_the_unnamed_workspace() -> None:
    """Its name stays unknown, its resource group is not."""
    around = find_surroundings(Named("c.yml", Path("c.yml")), DocumentContext(SCOPE), [], 1000)

    assert (around.scope, around.workspace) == (SCOPE, f"{SCOPE}{WORKSPACES}{{workspace}}")


def test_neighbours_are_read_by_their_relative_path(tmp_path: Path) -> None:
    """From the directory of the file; a missing file, several documents and standard input are refused."""
    (tmp_path / "x").mkdir()
    (tmp_path / "x/one.yml").write_text("a: 1")
    (tmp_path / "two.yml").write_text("a: 1\n---\nb: 2")
    around = find_surroundings(Named("main.yml", tmp_path / "main.yml"), DocumentContext(), [], 1000)

    assert around.neighbor("x/one.yml") == {"a": 1}
    with pytest.raises(InputError, match="cannot be read"):
        around.neighbor("missing.yml")
    with pytest.raises(InputError, match="2 documents where one should be"):
        around.neighbor("two.yml")
    with pytest.raises(InputError, match="standard input has no files next to it"):
        find_surroundings(Named("<stdin>", None), DocumentContext(), [], 1000).neighbor("x")


def document(file: str, *resources: JsonObject, movable: str = UNKNOWN_SCOPE) -> Loaded:
    """A document without a stated scope, with resources."""
    reading = ParsedDocument(resources=tuple(Placed(entry, "") for entry in resources), movable=movable)
    return Loaded(file, reading, Text(file, (), lambda pointers: [(1, 1)] * len(pointers)))


def made(name: str, scope: str = UNKNOWN_SCOPE, **properties: object) -> JsonObject:
    """A resource of a scope."""
    return {"id": f"{scope}/providers/Microsoft.A/a/{name}", "type": "Microsoft.A/a", "properties": properties}


def ids_of(documents: list[Loaded]) -> list[str]:
    """The ids below their scope, and the resource groups before them."""
    return [
        placed.resource["id"].removeprefix("/subscriptions/{subscription}/resourceGroups/")
        for entry in documents
        for placed in entry.reading.resources
    ]


def test_documents_that_contradict_each_other_are_kept_apart() -> None:
    """With all that they contain, and with the ids in it; those of the other documents stay."""
    referring = made("vm", host=made("x")["id"], other=made("x", SCOPE)["id"], text=f"see {UNKNOWN_SCOPE}")
    apart = separate_ids([document("a/1.json", made("x", n=1)), document("a/2.json", made("x", n=2), referring)])

    moved = "{resource-group@a~2.json}/providers/Microsoft.A/a/"
    assert ids_of(apart) == ["{resource-group}/providers/Microsoft.A/a/x", f"{moved}x", f"{moved}vm"]
    properties = apart[1].reading.resources[1].resource["properties"]
    assert properties["host"] == f"/subscriptions/{{subscription}}/resourceGroups/{moved}x"
    assert (properties["other"], properties["text"]) == (made("x", SCOPE)["id"], f"see {UNKNOWN_SCOPE}")


def test_documents_of_one_file_are_moved_together() -> None:
    """The statements of a document about resources of another one in its file stay true."""
    one, other = ({"id": f"{made('x')['id']}/parts/{name}", "type": "t"} for name in "ab")
    first = [document("1", made("x", n=1)), document("1", one)]
    second = [document("2", other), document("2", made("x", n=2))]
    again = [document("3", made("y", n=1)), document("3", made("y", n=2))]

    rest = "/providers/Microsoft.A/a"
    assert ids_of(separate_ids([*first, *second, *again])) == [
        f"{{resource-group}}{rest}/x",
        f"{{resource-group}}{rest}/x/parts/a",
        f"{{resource-group@2}}{rest}/x/parts/b",
        f"{{resource-group@2}}{rest}/x",
        f"{{resource-group}}{rest}/y",
        f"{{resource-group@3}}{rest}/y",
    ]


def test_documents_that_agree_belong_together() -> None:
    """Resources of other names, the same resource again, and ids that a document states are left as they are."""
    same = [document("1", made("x")), document("2", made("y")), document("3", made("x"))]
    stated = [document("1", made("x", SCOPE)), document("2", made("x", SCOPE, n=1))]
    unmovable = [document("1", made("x"), movable=""), document("2", made("x", n=1), movable="")]

    for documents in (same, stated, unmovable):
        assert separate_ids(documents) == documents


def test_a_single_resource_is_moved_alone() -> None:
    """Two files that deploy one endpoint in two ways both stay in their workspace."""
    scope = f"{SCOPE}{WORKSPACES}ws/onlineEndpoints"
    one, two = ({"id": f"{scope}/e", "type": "t", "kind": kind} for kind in ("a", "b"))
    apart = separate_ids([document("1.yml", one, movable=one["id"]), document("2.yml", two, movable=two["id"])])

    assert ids_of(apart) == [one["id"], f"{scope}/e@2.yml"]
