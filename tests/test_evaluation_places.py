"""The places of failing fields: line and column in the file that they came from, whatever they are called there."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from policyeng import evaluate
from policyeng.bundle import Bundle, load_bundle
from policyeng.models import Origin, Place, Snapshot
from policyeng.sources import load_snapshot, read_inputs
from policyeng.sources.merge import joined
from policyeng.sources.parsed import Loaded, ParsedDocument, Placed
from policyeng.sources.text import read_text
from tests.bundles import rego, workspace, write

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
COMPUTE = "Microsoft.MachineLearningServices/workspaces/computes"
#: One denial and one unknown, each with a path.
BOTH = """deny contains {"msg": "m", "path": "/properties/x/0", "actual": 1, "expected": 2}
unknown contains {"msg": "u", "path": "/properties/nothing/at/all"}"""
OF_WORKSPACE = 'deny contains {"msg": "m", "path": "workspace:/properties/x", "actual": 1, "expected": 2}'


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    """A policy of workspaces, and one of computes that denies a setting of their workspace."""
    of_computes = rego("c", OF_WORKSPACE, identity="T-A-2").replace("workspaces]", "workspaces/computes]")
    return load_bundle(write(tmp_path / "p", {"area/b/b.rego": rego("b", BOTH), "area/c/c.rego": of_computes}))


def placed(bundle: Bundle, snapshot: Snapshot) -> dict[str, dict[str, tuple[str, int, int]]]:
    """By policy, the places of the fields that its finding speaks of."""
    found = evaluate(bundle, snapshot, as_of=AS_OF).findings
    return {
        finding.policy: {
            path: (place.file, place.line, place.column) for path, place in finding.location.fields.items()
        }
        for finding in found
    }


def test_fields_have_their_places_in_the_file(bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An absent field has the place of what is nearest above it; one of a workspace in the workspace's file."""
    monkeypatch.chdir(tmp_path)
    compute = {"id": workspace()["id"] + "/computes/c", "type": COMPUTE, "properties": {}}
    Path("w.json").write_text(json.dumps([workspace(x=[7])], indent=1), encoding="utf-8")
    Path("c.json").write_text(json.dumps(compute), encoding="utf-8")
    snapshot = read_inputs(["c.json", "w.json"]).snapshot

    assert Path("w.json").read_text().splitlines()[5:7] == ['   "x": [', "    7"]
    assert placed(bundle, snapshot) == {
        "T-A-1": {"/properties/x/0": ("w.json", 7, 5), "/properties/nothing/at/all": ("w.json", 5, 17)},
        "T-A-2": {"workspace:/properties/x": ("w.json", 6, 9)},
    }


def test_fields_are_found_under_the_names_of_their_format(bundle: Bundle) -> None:
    """The longest pointer that the format moved counts, with what lies below; the second document of a stream too."""
    content = b"a: 1\n---\nname: w\nsettings:\n  ex:\n    - 7\n"
    text = read_text(content, "w.yaml", max_bytes=1000)
    moved = {"/properties": "/1/settings", "/properties/x": "/1/settings/ex"}
    reading = ParsedDocument(resources=(Placed(workspace(x=[7]), "/1", fields=moved),))
    snapshot, _ = joined([Loaded("w.yaml", reading, text)])

    assert placed(bundle, snapshot)["T-A-1"] == {
        "/properties/x/0": ("w.yaml", 6, 7),
        "/properties/nothing/at/all": ("w.yaml", 4, 1),
    }


def test_what_came_from_no_file_has_no_places(bundle: Bundle) -> None:
    """A snapshot that a program made, and one whose texts are gone."""
    made = Snapshot(resources=(workspace(x=[7]),))
    origins = {workspace()["id"].lower(): Origin(file="gone.json")}

    assert placed(bundle, made) == placed(bundle, made.model_copy(update={"origins": origins})) == {"T-A-1": {}}


def test_texts_are_no_part_of_the_content_of_a_snapshot(tmp_path: Path) -> None:
    """Neither its JSON nor its digest changes with them."""
    (tmp_path / "w.json").write_text(json.dumps(workspace()), encoding="utf-8")
    snapshot = load_snapshot(tmp_path / "w.json")

    assert snapshot.texts
    assert "texts" not in snapshot.model_dump(mode="json", by_alias=True)
    assert Place(file="x", line=1, column=2).model_dump() == {"file": "x", "line": 1, "column": 2, "address": ""}
