"""Examples as documents: a stored example is read back unchanged, and other documents are refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from policyeng.bundle import Bundle, load_bundle
from policyeng.bundle.cases import DEFAULT_AS_OF
from policyeng.models import Exemption, JsonObject
from policyeng.sources import load_snapshot
from policyeng.verify.example_documents import document_of, drop_unreadable, example_of, read, snapshot_text, text_of
from policyeng.verify.generators.examples import Example
from policyeng.verify.generators.json_mutations import Json
from tests.bundles import write

AT = datetime(2026, 3, 1, 12, 0, 0, 1, tzinfo=UTC)
EXEMPTION = Exemption(
    id="E-1",
    policy="T-A-1",
    scope="/subscriptions/s",
    category="waiver",
    reason="r",
    owner="o",
    approved_by="a",
    created_at=AT - timedelta(days=1),
    expires_at=AT + timedelta(microseconds=1),
)
#: Texts of unusual letters, and a number beyond 64 bits: random estates contain both.
ODD: JsonObject = {"resources": [{"id": "x\u0130", "number": 2**70, "text": "\u2028"}]}


@pytest.mark.parametrize("exemptions", [(), (EXEMPTION,)])
def test_a_kept_example_is_read_back_whole(exemptions: tuple[Exemption, ...]) -> None:
    """Its estate, parameters, clock to the microsecond, and exemptions."""
    example = Example(ODD, {"T-A-1": {"days": 3}}, AT, exemptions)

    assert example_of(json.loads(text_of(document_of(example)))) == example


def test_what_is_left_out_of_a_document_is_the_usual() -> None:
    """No parameters, no exemptions, and the clock of cases."""
    assert example_of({"snapshot": {"resources": []}}) == Example({"resources": []}, {}, DEFAULT_AS_OF)


@pytest.mark.parametrize(
    "document",
    [
        [],
        {"snapshot": {"resources": ["text"]}},
        {"snapshot": {"resources": []}, "asOf": "2026-01-01"},
        {"snapshot": {"resources": []}, "exemptions": [{"id": "E-1"}]},
        {"snapshot": {"resources": []}, "exemptions": [None]},
    ],
)
def test_other_documents_than_examples_are_refused(document: JsonObject) -> None:
    """With an error that the search for smaller examples, and the reader of kept failures, expect."""
    with pytest.raises((AttributeError, KeyError, TypeError, ValueError)):
        example_of(document)


@pytest.fixture
def of_documents(tmp_path: Path) -> Bundle:
    """Policies in the form of Conftest."""
    return load_bundle(write(tmp_path, {"policy/a.rego": "package main\nimport rego.v1\ndeny contains `no`\n"}))


@pytest.mark.parametrize("contents", [[{"a": 1}], [{"a": 1}, "text"], [[1, 2]], [None], [[], {}]])
def test_the_file_of_documents_is_read_as_they_were(tmp_path: Path, of_documents: Bundle, contents: list[Json]) -> None:
    """One is written as it is, several and a list itself as the elements of a list."""
    documents = [{"file": f"{number}.json", "content": content} for number, content in enumerate(contents)]
    document: JsonObject = {"resources": [], "documents": documents}
    file = tmp_path / "example.json"
    file.write_text(snapshot_text(Example(document, {}, AT)), encoding="utf-8")

    loaded, here = load_snapshot(file, **of_documents.wanted), read(document, of_documents)

    assert here is not None
    assert [entry.content for entry in loaded.documents] == contents
    assert [entry.content for entry in here.documents] == contents


def test_documents_and_resources_at_once_are_no_file(of_documents: Bundle) -> None:
    """Each alone is one; a native snapshot is itself a document where policies evaluate such."""
    resource = {"id": "/subscriptions/s", "type": "t"}
    document: JsonObject = {"resources": [resource], "documents": [{"file": "a", "content": {}}]}

    assert read(document, of_documents) is None
    *_, documents, resources = (each["snapshot"] for each in drop_unreadable({"snapshot": document}))
    assert documents == {"resources": [], "documents": document["documents"]}
    alone = read(resources, of_documents)
    assert alone is not None
    assert [entry.content for entry in alone.documents] == [{"snapshotVersion": 1, "resources": resources["resources"]}]
