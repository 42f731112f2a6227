"""Azure Resource Graph: rows in every form, what a projection leaves out, and what the service does not list."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policyeng
from policyeng import evaluate
from policyeng.bundle import Bundle
from policyeng.models import JsonObject
from policyeng.sources import FORMATS, arm_rest, read_inputs, resource_graph
from policyeng.sources.parsed import Placed
from policyeng.testing.observed_reads import observe
from tests.writers import resource_graph as writer

GROUP = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-ml"
WORKSPACE: JsonObject = {
    "id": f"{GROUP}/providers/Microsoft.MachineLearningServices/workspaces/ws",
    "name": "ws",
    "type": "Microsoft.MachineLearningServices/workspaces",
    "location": "westeurope",
    "tags": {"owner": "a"},
    "properties": {"publicNetworkAccess": "Enabled"},
}
MACHINE: JsonObject = {
    "id": f"{GROUP}/providers/Microsoft.Compute/virtualMachines/vm",
    "name": "vm",
    "type": "Microsoft.Compute/virtualMachines",
    "location": "westeurope",
    "properties": {"hardwareProfile": {"vmSize": "Standard_A1_v2"}},
}
REAL = Path(__file__).resolve().parents[2] / "shared" / "real" / "resource_graph"
PROJECT = "| project id, name, type, location, tags, identity, sku, kind, properties"


def rows(*resources: JsonObject) -> list[JsonObject]:
    """The rows of resources, as the service gives them."""
    response = json.loads(writer.write(list(resources))["graph.json"])
    return [dict(row) for row in response["data"]]


def rest(data: object, **more: object) -> JsonObject:
    """A response of the REST API."""
    return {"totalRecords": 1, "count": 1, "resultTruncated": "false", "facets": [], "data": data, **more}


def table(entries: list[JsonObject]) -> JsonObject:
    """Rows in the form of a table."""
    columns = list(entries[0])
    return {
        "columns": [{"name": name, "type": "object"} for name in columns],
        "rows": [[entry[name] for name in columns] for entry in entries],
    }


FORMS = [
    (rest(rows(WORKSPACE)), "/data/0"),
    (rest(table(rows(WORKSPACE))), "/data/rows/0"),
    ({"count": 1, "data": rows(WORKSPACE), "skip_token": None, "total_records": 1}, "/data/0"),
    (rows(WORKSPACE), "/0"),
    ({"parameters": {}, "responses": {"200": {"body": rest(rows(WORKSPACE))}}}, "/responses/200/body/data/0"),
]


@pytest.mark.parametrize(("document", "pointer"), FORMS)
def test_every_form_gives_the_resource(document: object, pointer: str) -> None:
    """Types stay in lower case; blank columns are absent; nothing is unreadable."""
    reading = resource_graph.read(document)
    [placed] = reading.resources

    assert next(name for name, reader in FORMATS.items() if reader.detect(document)) == "resource-graph"
    assert placed.pointer == pointer
    expected = {**WORKSPACE, "type": WORKSPACE["type"].lower()}
    assert {key: placed.resource[key] for key in expected} == expected
    assert not {"kind", "sku", "managedBy", "identity"} & placed.resource.keys()
    assert (placed.unreadable, reading.truncated, reading.refusals) == ({}, "", ())


def test_a_summary_of_computes_is_unknown(tmp_path: Path, bundle: Bundle) -> None:
    """A workspace without its computes fits every quota only perhaps."""
    file = tmp_path / "graph.json"
    file.write_text(json.dumps(rest(rows(WORKSPACE))), encoding="utf-8")
    evaluation = evaluate(bundle, read_inputs([file]).snapshot, as_of=datetime(2026, 6, 1, tzinfo=UTC))
    [finding] = [each for each in evaluation.findings if each.policy == "AML-SKU-105"]

    assert finding.outcome == "unknown"
    assert "not all computes were collected" in finding.unknowns[0].msg


@pytest.mark.parametrize(
    "more",
    [
        {"resultTruncated": "true"},
        {"resultTruncated": True},
        {"skip_token": "x"},
        {"$skipToken": "x"},
        {"totalRecords": 2},
        {"total_records": 2, "totalRecords": 2},
    ],
)
def test_a_truncated_result_is_reported(more: JsonObject) -> None:
    """With how to page on."""
    assert "--skip-token" in resource_graph.read(rest(rows(MACHINE), **more)).truncated
    assert "--skip-token" in resource_graph.read(rest([], **more)).truncated


def only(row: JsonObject) -> Placed:
    """The one resource of a response of one row."""
    reading = resource_graph.read(rest([row]))
    assert reading.refusals == ()
    [placed] = reading.resources
    return placed


def test_columns_that_a_query_left_out_cannot_be_read() -> None:
    """They may be set in Azure; those that are there and blank are not."""
    [row] = rows(WORKSPACE)
    projected = {key: row[key] for key in ("id", "name", "type", "location", "sku")} | {"access": "Enabled", "a_b": 1}
    placed = only(projected)

    assert set(placed.unreadable) == {"/identity", "/kind", "/properties", "/tags"}
    assert all(PROJECT in why for why in placed.unreadable.values())
    assert placed.resource["name"] == "ws"
    assert not {"access", "a_b", "sku"} & placed.resource.keys()


def test_columns_of_json_text_are_objects() -> None:
    """As a CSV export of the portal has them; text that is no JSON is refused."""
    [row] = rows(WORKSPACE)
    exported = {key: json.dumps(value) if isinstance(value, dict) else value for key, value in row.items()}
    [refusal] = resource_graph.read(rest([{**row, "properties": "{x"}])).refusals

    assert only(exported).resource["properties"] == WORKSPACE["properties"]
    assert only(exported).resource["tags"] == WORKSPACE["tags"]
    assert refusal.message == "`properties` is a string, not an object"


def test_rows_of_no_resource_are_refused_with_the_query_to_write() -> None:
    """Neighbours are one refusal; the other rows are read."""
    [row] = rows(MACHINE)
    summary = {"location": "we", "count_": 3}
    reading = resource_graph.read(rest([summary, summary, row, 3], totalRecords=4))

    assert [refusal.message for refusal in reading.refusals] == [
        "a row without `id`, so its resource is not known: `location`, `count_` (same for the next one)",
        "not a row of a query: a number where an object, or as many cells as columns, should be",
    ]
    assert PROJECT in reading.refusals[0].remedy
    assert len(reading.resources) == 1


def test_cells_that_are_no_row_are_refused() -> None:
    """Too few, too many, and columns without a name."""
    bad = table(rows(MACHINE))
    bad["rows"] += [["x"], 3]
    nameless = {"columns": [{"type": "string"}], "rows": [["x"]]}

    assert len(resource_graph.read(rest(bad, totalRecords=3)).refusals) == 2
    assert len(resource_graph.read(rest(nameless)).refusals) == 1


CHANGE = {"changeId": "x", "beforeSnapshot": {}, "afterSnapshot": {}}
OPERATION = {"name": "Microsoft.ResourceGraph/operations/read", "display": {}}


@pytest.mark.parametrize(
    ("document", "nothing"),
    [
        ({"changes": [CHANGE]}, "changes to resources"),
        ([CHANGE], "changes to resources"),
        (CHANGE, "changes to resources"),
        ({"count": 1, "snapshots": {"columns": [], "rows": []}}, "the history of resources"),
        ({"value": [OPERATION]}, "the operations of Azure Resource Graph"),
        ({"query": "", "status": {"category": "Failed"}}, "a query that Azure Resource Graph generated"),
        (rest([], totalRecords=0), "a query without results"),
        (rest({"columns": [], "rows": []}), "a query without results"),
    ],
)
def test_responses_without_resources(document: object, nothing: str) -> None:
    """They are understood, and have nothing to evaluate."""
    reading = resource_graph.read(document)

    assert resource_graph.detect(document)
    assert reading.nothing.startswith(nothing)
    assert (reading.resources, reading.refusals) == ((), ())


QUERY = {
    "id": f"{GROUP}/providers/Microsoft.ResourceGraph/queries/q",
    "type": "Microsoft.ResourceGraph/queries",
    "properties": {"query": "Resources"},
}


@pytest.mark.parametrize(
    "document",
    [
        None,
        3,
        [],
        {},
        {"data": []},
        {"data": {"a": 1}, "kind": "ConfigMap"},
        {"value": [WORKSPACE], "count": 1},
        [WORKSPACE],
        QUERY,
        {"value": [QUERY]},
        {"value": []},
        {"query": "x", "status": "Succeeded"},
        [{"location": "we"}],
    ],
)
def test_other_documents_are_not_taken(document: object) -> None:
    """ARM's own lists stay ARM's."""
    assert not resource_graph.detect(document)


def test_saved_queries_are_plain_arm() -> None:
    """They are resources."""
    assert arm_rest.detect(QUERY)


def test_findings_are_in_their_cell(tmp_path: Path) -> None:
    """Line and column of the failing field, also where it is in a table."""
    for name, document in {"rows.json": rest(rows(WORKSPACE)), "table.json": rest(table(rows(WORKSPACE)))}.items():
        file = tmp_path / name
        file.write_text(json.dumps(document, indent=2))
        evaluation = policyeng.evaluate(policyeng.load_bundle(), read_inputs([file]).snapshot)
        [place] = {
            (place.line, place.column)
            for finding in evaluation.findings
            if finding.location is not None
            for path, place in (finding.location.fields or {}).items()
            if path == "/properties/publicNetworkAccess"
        }
        assert '"publicNetworkAccess": "Enabled"' in file.read_text().splitlines()[place[0] - 1]


def test_a_whole_response_leaves_no_gap() -> None:
    """Every column of a resource is a column of a row."""
    bundle = policyeng.load_bundle()
    for policy in bundle.policies:
        for pointer in observe(bundle, policy).pointers:
            top = f"/{pointer.removeprefix('workspace:').split('/')[1]}"
            assert top not in only(rows(WORKSPACE)[0]).unreadable
    assert not writer.expressible({"type": "Microsoft.MachineLearningServices/workspaces/computes"})


SCALARS = st.sampled_from([None, True, 1, "x", "", "{", '{"a": 1}'])
MEMBERS = st.dictionaries(st.sampled_from(["a", "kind", "id"]), SCALARS, max_size=3)


@settings(deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries(
            {"properties": MEMBERS},
            optional={
                "location": st.just("we"),
                "tags": st.dictionaries(st.text(max_size=3), st.text(max_size=3), min_size=1, max_size=2),
                "identity": st.just({"type": "SystemAssigned"}),
                "sku": st.just({"name": "Basic"}),
                "kind": st.just("Hub"),
            },
        ),
        min_size=1,
        max_size=4,
    )
)
def test_every_estate_comes_back(bodies: list[JsonObject]) -> None:
    """All that the service lists, but for the case of the type."""
    estate = [
        {**WORKSPACE, "tags": None, **body, "id": f"{WORKSPACE['id']}{index}"} for index, body in enumerate(bodies)
    ]
    [content] = writer.write(estate).values()
    found = resource_graph.read(json.loads(content)).resources

    for resource, placed in zip(estate, found, strict=True):
        assert all(
            placed.resource[key] == value for key, value in resource.items() if value and key not in ("type", "name")
        )
        assert placed.resource["type"] == resource["type"].lower()
        assert placed.unreadable == {}


VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["data", "columns", "rows", "name", "id", "type", "properties", "value", "changes"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@settings(deadline=None)
@given(VALUES, st.booleans())
def test_no_value_raises(value: object, wrapped: bool) -> None:
    """A response may have any content."""
    document = rest(value) if wrapped else value
    resource_graph.detect(document)
    reading = resource_graph.read(document)
    assert reading.resources or reading.refusals or reading.nothing


def test_real_files() -> None:
    """Every response of the service's own examples: read, understood as nothing, or refused with the query to write."""
    if not REAL.is_dir():
        pytest.skip(f"no real documents at {REAL}")
    every = [read_inputs([path]) for path in sorted(REAL.rglob("*")) if path.is_file()]

    assert len(every) == 61
    assert sum(bool(each.snapshot.resources) for each in every) == 32
    assert sum(bool(each.ledger) for each in every) == 9
    refused = [problem.message for each in every for problem in each.problems if not each.snapshot.resources]
    assert sum("a row without `id`" in message for message in refused) == 10
    assert sum("an example of the REST API whose responses have no body" in message for message in refused) == 3
    assert sum("is not the full ARM id" in message for message in refused) == 7
    assert len(refused) == 20
