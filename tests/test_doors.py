"""Every door reads a change alike: the command, HTTP, Python and the webhook allow and refuse the same documents."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest

import policyeng
from policyeng.bundle.policy_selection import selected
from policyeng.configuration import Settings
from policyeng.context import EvaluationSetup
from policyeng.models import Decision, JsonObject, Snapshot
from policyeng.server.service import SnapshotState
from policyeng.sources.changes import read_alone
from policyeng.sources.discovery import name_document
from policyeng.sources.text import read_text
from tests.cluster import review_of, workspace_object
from tests.command import policyeng as command
from tests.conftest import ROOT
from tests.servers import send_to, service_of

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
STATE = ROOT / "samples/workspaces/compliant.json"
FORMATS = sorted(path for path in (ROOT / "samples/formats").rglob("*") if path.is_file())
#: Policies that fail for the samples.
SELECT = ("AML-NET-001", "AML-CMP-001", "AML-CMP-008", "AML-END-001", "AML-END-008", "AML-IDN-001")


class Seen(NamedTuple):
    """What a door makes of a document: allowed, denied, undecided or refused, and the policies that deny."""

    verdict: str
    policies: frozenset[str] = frozenset()


REFUSED = Seen("refused")


class Row(NamedTuple):
    """A document.

    Attributes:
        content: as a file or a body.
        is_yaml: it is a file with that suffix, which a client of HTTP sends as JSON.
        expected: the verdict of every door; empty for any but allowed.
        encoding: HTTP takes no such text, whatever it says; files may be so.
        last_counts: the parser of a program takes the last of two members.
    """

    content: bytes
    expected: str = ""
    is_yaml: bool = False
    encoding: bool = False
    last_counts: bool = False


@cache
def state() -> Snapshot:
    """The state that changes are of."""
    return policyeng.load_snapshot(STATE)


@cache
def setup() -> EvaluationSetup:
    """A few policies."""
    return EvaluationSetup(selected(policyeng.load_bundle(), SELECT), (), {}, Settings())


def seen(decision: Decision | JsonObject) -> Seen:
    """The outcome of a decision; one that is about nothing and could not be made refuses the document."""
    shown: JsonObject = (
        decision if isinstance(decision, dict) else orjson.loads(decision.model_dump_json(by_alias=True))
    )
    verdict = ("allowed", "denied", "undecided")[shown["exitCode"]]
    if verdict == "undecided" and not shown["changes"]:
        return REFUSED
    assert shown["allowed"] is (verdict == "allowed")
    return Seen(verdict, frozenset(finding["policy"] for finding in shown["denied"]))


def in_process(change: Callable[[], Any]) -> Seen:
    """The outcome in Python, where a change is made and decided."""
    try:
        decision = policyeng.admit(setup().bundle, state(), change(), as_of=AS_OF)
    except policyeng.InputError as error:
        message = str(error)
    else:
        return seen(decision)
    assert len(message) < 1000
    return REFUSED


def by_command(row: Row, folder: Path) -> Seen:
    """The outcome of `policyeng admit` with a file."""
    path = folder / ("change.yaml" if row.is_yaml else "change.json")
    path.write_bytes(row.content)
    options = [word for name in SELECT for word in ("--select", name)]
    found = command("admit", str(path), "--snapshot", str(STATE), "--format", "json", *options)
    if found.returncode == 3:
        return REFUSED
    decision = json.loads(found.stdout)
    assert found.returncode == decision["exitCode"], found.stderr
    return seen(decision)


def by_http(row: Row) -> Seen:
    """The outcome of `POST /v1/admit`."""
    service = service_of(setup(), SnapshotState(state(), datetime.now(UTC)), deadline=60.0)
    response = send_to(service, "/v1/admit", text(parsed(row)) if row.is_yaml else row.content)
    if response.status_code in (400, 422):
        assert response.headers["content-type"] == "application/problem+json"
        assert len(response.content) < 2000
        return REFUSED
    assert response.status_code == 200, response.text
    found = seen(response.json())
    assert found.verdict == "allowed" or service.allowed.entries == ()
    return found


def parsed(row: Row) -> object:
    """What a program would pass to `admit`: the parsed document, else its text; None for a stream."""
    try:
        if row.is_yaml:
            documents = read_text(row.content, "change.yaml", max_bytes=len(row.content)).documents
            return documents[0][1] if len(documents) == 1 else None
        return json.loads(row.content)
    except (ValueError, policyeng.InputError):
        return row.content.decode("utf-8", "replace")


def verdicts(row: Row, folder: Path) -> Mapping[str, Seen]:
    """The outcomes of the doors."""
    return {
        "command": by_command(row, folder),
        "HTTP": by_http(row),
        "load_changes of a path": in_process(
            lambda: policyeng.load_changes(folder / ("change.yaml" if row.is_yaml else "change.json"))
        ),
        "load_changes of bytes": in_process(lambda: policyeng.load_changes(row.content)),
        "admit": in_process(lambda: parsed(row)),
    }


def require_alike(row: Row, folder: Path) -> None:
    """Fail where doors differ, or where one allows what it must not."""
    found = dict(verdicts(row, folder))
    if row.encoding:
        assert found.pop("HTTP") == REFUSED
    if row.encoding or row.last_counts:
        assert found.pop("admit").verdict != "allowed"
    elif row.is_yaml and parsed(row) is None:
        del found["admit"], found["HTTP"]
    first = found["command"]
    for name, other in found.items():
        # `load_changes` fails for a document of which a part cannot be read.
        if first.verdict == "undecided" and name.startswith("load_changes") and other == REFUSED:
            continue
        assert other == first, found
    assert first.verdict == row.expected if row.expected else first.verdict != "allowed", found


KIND = "Microsoft.MachineLearningServices/workspaces"
WORKSPACE: JsonObject = next(one for one in orjson.loads(STATE.read_bytes())["resources"] if one["type"] == KIND)
OPENED = {**WORKSPACE, "properties": {**WORKSPACE["properties"], "publicNetworkAccess": "Enabled"}}
ID: str = WORKSPACE["id"]
MISSING = f"{ID}-missing"


def text(value: object) -> bytes:
    """A document as JSON."""
    return json.dumps(value).encode()


_WRONG: tuple[object, ...] = (
    *(None, True, False, 0, 1, -1.5, 10**18, "", " ", "x", "null", "samples/formats/az-output.json", "-", "."),
    *([], {}, [[]], [{}], [None], [1], [True], [""], ["x"], [["x"]], {"a": 1}, {"value": []}, {"changes": []}),
    *({"changes": "x"}, {"changes": [None]}, {"operation": "delete"}, {"operation": None, "id": ID}),
    *({"resources": []}, {"snapshotVersion": 1, "resources": []}, {"change": {}}, {"state": {}}),
)
_WHAT_IF = {"status": "Succeeded"}
_PREDICTED = {"resourceId": ID, "changeType": "Create", "after": OPENED}
VALUES: Mapping[str, Row] = {
    **{repr(value): Row(text(value), "refused") for value in _WRONG},
    "a resource": Row(text(WORKSPACE), "allowed"),
    "an opened resource": Row(text(OPENED), "denied"),
    "in a list": Row(text([OPENED]), "denied"),
    "in a value": Row(text({"value": [OPENED]}), "denied"),
    "a change": Row(text({"operation": "replace", "resource": OPENED}), "denied"),
    "in changes": Row(text({"changes": [OPENED]}), "denied"),
    "with something else": Row(text({"changes": [OPENED, "x"]}), "undecided"),
    "with something before": Row(text([1, OPENED]), "undecided"),
    "with nothing in it": Row(text({"id": ID, "type": WORKSPACE["type"]}), "denied"),
    "with an id alone": Row(text({"id": ID}), "denied"),
    "of another type": Row(text({**OPENED, "type": "Microsoft.Resources/tags"}), "refused"),
    "a list in it": Row(text({"value": [WORKSPACE], **OPENED}), "refused"),
    "a list and another": Row(text({"value": [WORKSPACE], "Value": [OPENED]}), "refused"),
    "what-if of two lists": Row(text({**_WHAT_IF, "changes": [], "Changes": [_PREDICTED]}), "refused"),
    "what-if of two lists inside": Row(
        text({**_WHAT_IF, "properties": {"changes": [], "Changes": [_PREDICTED]}}), "refused"
    ),
    "what-if of two results": Row(
        text({**_WHAT_IF, "changes": [{**_PREDICTED, "after": WORKSPACE, "After": OPENED}]}), "refused"
    ),
    "what-if of two types": Row(
        text({**_WHAT_IF, "changes": [{"resourceId": ID, "changeType": "Ignore", "ChangeType": "Create"}]}), "refused"
    ),
    "twice the properties": Row(text({**OPENED, "Properties": WORKSPACE["properties"]}), "refused"),
    "twice a member": Row(text({**OPENED, "properties": {**OPENED["properties"], "PublicNetworkAccess": "x"}})),
    "no change that is stated": Row(text({"status": "Succeeded", "changes": []}), "allowed"),
    "JSON text of a resource": Row(text(json.dumps(OPENED)), "refused"),
    "JSON text of a compliant one": Row(text(json.dumps(WORKSPACE)), "refused"),
    "JSON text of a list": Row(text(json.dumps([OPENED])), "refused"),
    "a list of JSON text": Row(text([json.dumps(OPENED)]), "refused"),
    "JSON text of JSON text": Row(text(json.dumps(json.dumps(OPENED))), "refused"),
    "JSON text of an id": Row(text(json.dumps(ID)), "refused"),
}

DELETIONS: Mapping[str, Row] = {
    f"{name}, {form}": Row(text(made), expected)
    for name, identity, expected in (
        ("an id of the state", ID, "allowed"),
        ("in other letters", ID.upper(), "allowed"),
        ("the id of its group", ID[: ID.index("/providers/")], "allowed"),
        ("missing", MISSING, "undecided"),
        ("missing below", f"{ID}/computes/missing", "undecided"),
        ("a missing group", f"{ID[: ID.index('/providers/')]}-missing", "undecided"),
        ("with a query", f"{ID}?api-version=2025-01-01", "undecided"),
        ("with a fragment", f"{ID}#", "undecided"),
        ("with an escape", ID.replace("ml-prod", "%6Dl-prod"), "undecided"),
        ("with a space", f"{ID} ", "undecided"),
        ("with a slash", f"{ID}/", "refused"),
        ("with dots", f"{ID}/../x", ""),
        ("with a placeholder", f"{ID}/computes/{{name}}", ""),
        ("half of one", ID.rpartition("/")[0], "refused"),
        ("without its slash", ID.removeprefix("/"), "refused"),
        ("very long", f"{ID}/computes/{'x' * 5000}", "undecided"),
    )
    for form, made in (
        ("alone", identity),
        ("in a list", [identity]),
        ("as an operation", {"operation": "delete", "id": identity}),
        ("in changes", {"changes": [{"operation": "Delete", "id": identity}]}),
    )
}

_OPENED = json.dumps(OPENED)
TEXTS: Mapping[str, Row] = {
    "truncated": Row(_OPENED[:-1].encode(), "refused"),
    "half": Row(_OPENED[: len(_OPENED) // 2].encode(), "refused"),
    "NaN": Row(text({**WORKSPACE, "tags": {"x": float("nan")}}), "refused"),
    "Infinity": Row(text([{**WORKSPACE, "tags": {"x": [float("-inf")]}}]), "refused"),
    "a number that is too large": Row(_OPENED.replace('"Enabled"', "1e999", 1).encode(), "refused"),
    "a duplicate key": Row(f'{{"id": "{ID}", {_OPENED[1:]}'.encode(), "refused", last_counts=True),
    "a duplicate member": Row(
        _OPENED.replace('"Enabled"', '"Disabled", "publicNetworkAccess": "Enabled"', 1).encode(),
        "refused",
        last_counts=True,
    ),
    "more text": Row(f"{_OPENED} x".encode(), "refused"),
    "JSON Lines": Row(f"{_OPENED}\n{_OPENED}\n".encode(), "refused"),
    "deep": Row(b"[" * 200 + b"]" * 200, "refused"),
    "a lone surrogate": Row(b'"\\ud800"', "refused"),
    "no UTF-8": Row(b'"\xff"', "refused"),
    "a byte order mark": Row(b"\xef\xbb\xbf" + _OPENED.encode(), "denied", encoding=True),
    "UTF-16": Row(_OPENED.encode("utf-16"), "denied", encoding=True),
    "UTF-16 without a mark": Row(_OPENED.encode("utf-16-le"), "denied", encoding=True),
    "a comment": Row(f"// {ID}\n{_OPENED}".encode(), "denied", encoding=True),
    "empty": Row(b"", "refused"),
    "white space": Row(b" \n\t", "refused"),
    "a zero": Row(b"\0", "refused"),
    "x": Row(b"x", "refused"),
    "a file name": Row(b"samples/formats/az-output.json", "refused"),
    "a quote": Row(b'"', "refused"),
    "YAML": Row(f"operation: delete\nid: {MISSING}\n".encode(), "undecided", is_yaml=True),
    "YAML of a resource": Row(_OPENED.encode(), "denied", is_yaml=True),
    "YAML text": Row(b"x", "refused", is_yaml=True),
    "a YAML list of text": Row(b"- x\n- y\n", "refused", is_yaml=True),
    "YAML of JSON text": Row(b"'" + _OPENED.encode() + b"'", "refused", is_yaml=True),
    "nothing in YAML": Row(b"# nothing\n", "refused", is_yaml=True),
}


def formats() -> Iterator[tuple[str, Row]]:
    """Each sample, and what must never be allowed in its place."""
    for path in FORMATS:
        content, is_yaml = path.read_bytes(), path.suffix in (".yml", ".yaml")
        name = path.name
        yield name, Row(content, is_yaml=is_yaml)
        yield f"{name}, as a text", Row(text(content.decode()), "refused")
        if not is_yaml:
            document = json.loads(content)
            yield f"{name}, truncated", Row(content.rstrip()[:-1], "refused")
            yield f"{name}, in a list", Row(text([document]))
            yield f"{name}, in changes", Row(text({"changes": [document]}))
            yield f"{name}, in a value", Row(text({"value": [document]}))
            yield f"{name}, opened", Row(content.replace(b'"Disabled"', b'"Enabled"').replace(b"false", b"true"))


@pytest.mark.attack
@pytest.mark.parametrize("row", VALUES.values(), ids=VALUES)
def test_json_values(tmp_path: Path, row: Row) -> None:
    """Every type, and every place of one in a change."""
    require_alike(row, tmp_path)


@pytest.mark.attack
@pytest.mark.parametrize("row", DELETIONS.values(), ids=DELETIONS)
def test_ids(tmp_path: Path, row: Row) -> None:
    """A text is a deletion only if it is an id, and of what the state contains."""
    require_alike(row, tmp_path)


@pytest.mark.attack
@pytest.mark.parametrize("row", TEXTS.values(), ids=TEXTS)
def test_malformed_texts(tmp_path: Path, row: Row) -> None:
    """What a strict reader refuses, and what only files may be."""
    require_alike(row, tmp_path)


@pytest.mark.parametrize("row", [pytest.param(row, id=name) for name, row in formats()])
def test_samples_of_formats(tmp_path: Path, row: Row) -> None:
    """None of them is compliant, and nothing made of one is allowed."""
    require_alike(row, tmp_path)


@pytest.mark.parametrize("path", FORMATS, ids=lambda path: path.name)
def test_policies_deny_what_samples_state(path: Path) -> None:
    """Those that are read are denied for what is in them; a file of parameters is no change."""
    found = in_process(lambda: policyeng.load_changes(path))
    assert found == REFUSED if "parameters" in path.name else found.verdict == "denied"


# ---------------------------------------------------------------- Python


@pytest.mark.attack
@pytest.mark.parametrize(
    "change", [None, b"", text(OPENED), 5, object(), Path("x"), "", "x", [b""], {1: 2}, {"id": {1}}]
)
def test_python_refuses_what_is_no_document(change: Any) -> None:
    """With what to do instead, as a change and as one that was made before."""
    with pytest.raises(policyeng.InputError, match=r"json\.loads|load_changes"):
        policyeng.admit(setup().bundle, state(), change)
    with pytest.raises(policyeng.InputError, match=r"json\.loads|load_changes"):
        policyeng.admit(setup().bundle, state(), WORKSPACE, before=change)


@pytest.mark.parametrize(
    "source", [*("", " ", "{}", _OPENED, "[\n", "x" * 5000, "no such file", "-"), b"", {}, [], 5, None]
)
def test_load_changes_refuses_what_is_no_path_and_no_document(source: Any) -> None:
    """With a message of bounded length; the current directory is not read."""
    for loading in (policyeng.load_changes, policyeng.load_snapshot):
        if loading is policyeng.load_snapshot and source in ({}, [], b"", 5, None):
            continue
        with pytest.raises(policyeng.InputError) as raised:
            loading(source)
        assert len(str(raised.value)) < 1000


def test_load_changes_has_the_options_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The format by name, the scope, the workspace and the parameters; and what it excludes."""
    scope = "/subscriptions/s/resourceGroups/g"
    home = f"{scope}/providers/{KIND}/home"
    cluster = ROOT / "samples/formats/azure-cli/cluster.yml"
    [change] = policyeng.load_changes(cluster.read_bytes(), workspace=home)
    assert change.id.startswith(home)
    document: Any = read_text(cluster.read_bytes(), "x.yaml", max_bytes=5000).documents[0][1]
    [changed] = policyeng.load_changes(document, workspace=home)
    assert changed.id == change.id

    template = {
        "$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
        "contentVersion": "1.0.0.0",
        "parameters": {"name": {"type": "string"}},
        "resources": [{"type": KIND, "apiVersion": "2024-10-01", "name": "[parameters('name')]", "properties": {}}],
    }
    [made] = policyeng.load_changes(template, scope=scope, parameters={"Name": "w"})
    assert made.id == f"{scope}/providers/{KIND}/w"
    assert policyeng.load_changes(template, "arm-template", scope=scope)[0].unreadable
    with pytest.raises(policyeng.UsageError, match="unknown format `arm`"):
        policyeng.load_changes(template, "arm")
    with pytest.raises(policyeng.InputError):
        policyeng.load_changes(template, from_="terraform")
    with pytest.raises(policyeng.UsageError, match="not a subscription"):
        policyeng.load_changes(template, scope="g")

    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_bytes(text({**WORKSPACE, "id": f"{ID}-{name}"}))
    assert len(policyeng.load_changes(tmp_path)) == 2
    assert [each.id for each in policyeng.load_changes(tmp_path, exclude=["b.json"])] == [f"{ID}-a"]


def test_what_load_changes_returns_is_the_changes_and_their_warnings() -> None:
    """In order; a decision has the warnings."""
    plan = policyeng.load_changes(ROOT / "samples/formats/plan.json")
    assert [*plan] == [plan[at] for at in range(len(plan))] == list(plan.changes)
    snapshot = {
        "snapshotVersion": 1,
        "resources": [WORKSPACE],
        "approvals": [{"id": "A", "scope": ID, "status": "granted"}],
    }
    read = policyeng.load_changes(snapshot)
    for change in (read, snapshot):
        decision = policyeng.admit(setup().bundle, state(), change, as_of=AS_OF)
        assert "the `approvals` are not changes" in decision.problems[0].message
    assert policyeng.admit(setup().bundle, state(), OPENED, as_of=AS_OF, before=policyeng.load_changes(OPENED)).changes


def test_a_document_alone_is_read_as_among_others() -> None:
    """One resource or changes of ours: the same by the short way as by the way of files."""
    documents = [
        *map(dict, state().resources),
        *(json.loads(row.content) for row in (*VALUES.values(), *DELETIONS.values())),
    ]
    read_shortly = 0
    for document in documents:
        try:
            shortly = read_alone(name_document(document, "change.json"))
        except policyeng.InputError:
            continue
        if shortly is not None:
            read_shortly += 1
            (whole := policyeng.load_changes(text(document)))
            bare = [change.model_copy(update={"origin": None}) for change in whole]
            assert [*shortly] == bare
            assert not whole.problems
    assert read_shortly > len(state().resources)


# ---------------------------------------------------------------- the webhook


def reviewed(document: object, operation: str = "CREATE", old: object = None, **more: object) -> JsonObject:
    """The response to a review of an object."""
    service = service_of(setup(), SnapshotState(state(), datetime.now(UTC)), deadline=60.0)
    shown = workspace_object()
    review = review_of(operation, shown, shown, **more)
    review["request"] |= {"object": document, "oldObject": old}
    if isinstance(document, dict) and isinstance(document.get("apiVersion"), str):
        group, _, version = document["apiVersion"].rpartition("/")
        review["request"]["kind"] = {"group": group, "version": version, "kind": document["kind"]}
    response = send_to(service, "/v1/admission-review", review)
    assert response.status_code == 200
    answer: JsonObject = response.json()["response"]
    assert len(response.content) < 8000
    return answer


@pytest.mark.attack
@pytest.mark.parametrize("row", [*VALUES.values(), *DELETIONS.values()])
def test_no_value_is_allowed_as_an_object(row: Row) -> None:
    """A text, a list, a number, an ARM resource: none is the object that the review is about."""
    assert reviewed(json.loads(row.content))["allowed"] is False


def test_the_webhook_denies_the_objects_that_other_doors_deny() -> None:
    """By the same policies."""
    manifests = read_text((ROOT / "samples/formats/manifests.yaml").read_bytes(), "x.yaml", max_bytes=1 << 20).documents
    for _, document in manifests:
        elsewhere = in_process(lambda document=document: document)  # type: ignore[misc]
        response = reviewed(document)
        denied = frozenset(filter(None, response.get("auditAnnotations", {}).get("denied-policies", "").split(", ")))
        assert elsewhere.policies == denied
        assert response["allowed"] is (elsewhere.verdict in ("allowed", "refused")), document


@pytest.mark.parametrize("spec", [{}, {"publicNetworkAccess": "Disabled"}, {"owner": 5}, None, "x"])
@pytest.mark.parametrize("status", [None, {"id": MISSING}, {"id": "x"}, {"id": 5}])
def test_what_the_cluster_contains_can_be_deleted(spec: Any, status: JsonObject | None) -> None:
    """It exists though it was not collected, or cannot be read; only of what is no resource nothing is decided."""
    old = workspace_object(status=status)
    old["spec"] = {"owner": {"armId": ID[: ID.index("/providers/")]}, **spec} if isinstance(spec, dict) else spec
    response = reviewed(None, "DELETE", old)
    is_known = isinstance(spec, dict) if status is None else status["id"] == MISSING
    if is_known:
        assert response["allowed"], response
    elif not response["allowed"]:
        assert "detach-on-delete" in response["status"]["message"]
