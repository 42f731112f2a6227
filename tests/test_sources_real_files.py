"""Real documents: each is read, or refused with the reason that `expected/real_files.json` holds; none raises."""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyeng.errors import InputError
from policyeng.models import JsonObject
from policyeng.sources import FORMATS, load_snapshot, read_inputs
from policyeng.strict.json_text import parse_json

ROOT = Path(__file__).resolve().parents[1]
REAL = ROOT.parent / "shared" / "real"
EXPECTED = Path(__file__).parent / "expected" / "real_files.json"
FOLDERS = ("arm_rest_live", "arm_rest_bodies", "rbac")


@pytest.fixture
def real() -> Path:
    """The real documents, which stand beside the repository and are no part of it."""
    if not REAL.is_dir():
        pytest.skip(f"no real documents at {REAL}")
    return REAL


def files_in(folder: Path) -> list[Path]:
    """Every file below a folder, sorted."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


def outcome(path: Path) -> JsonObject:
    """What comes of one file: its format and resources, or why it is refused."""
    snapshot, problems, *_ = read_inputs([path])
    if problems:
        assert not snapshot.resources
        return {"refused": [problem.message.partition("; ")[0] for problem in problems]}
    document = parse_json(path.read_bytes(), path.name)
    name = next(name for name, reader in FORMATS.items() if reader.detect(document))
    return {"format": name, "resources": len(snapshot.resources)}


def test_every_real_file_is_read_or_refused_as_expected(real: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The list is kept by file; a change in what is read shows as a change of the list."""
    found = {str(path.relative_to(real)): outcome(path) for folder in FOLDERS for path in files_in(real / folder)}
    with capsys.disabled():
        for folder in FOLDERS:
            entries = [entry for name, entry in found.items() if name.startswith(f"{folder}/")]
            read = sum("format" in entry for entry in entries)
            sys.stdout.write(f"\n{folder}: {read} read, {len(entries) - read} refused")

    assert found == json.loads(EXPECTED.read_text(encoding="utf-8"))


def test_a_whole_folder_of_real_files_is_one_run(real: Path) -> None:
    """Refused files do not hide the others: as many resources as the files hold one by one, each id once."""
    expected = json.loads(EXPECTED.read_text(encoding="utf-8"))
    snapshot, problems, files, *_ = read_inputs([real / "arm_rest_live"])
    alone = sum(entry.get("resources", 0) for name, entry in expected.items() if name.startswith("arm_rest_live/"))

    assert len(files) == sum(name.startswith("arm_rest_live/") for name in expected)
    repeated = [problem for problem in problems if "stands twice" in problem.message]
    assert len(snapshot.resources) == alone - len(repeated)
    assert len({resource["id"].lower() for resource in snapshot.resources}) == len(snapshot.resources)


def test_output_of_az_ml_is_never_taken_for_arm(real: Path) -> None:
    """It has other names for the settings, so reading it as ARM would find them all absent."""
    for path in files_in(real / "cli_v2_output"):
        document = parse_json(path.read_bytes(), path.name)
        assert [name for name, reader in FORMATS.items() if reader.detect(document)] == ["az-output"], path


OTHERS = ("arm_template", "terraform_plan_json", "aso", "k8s_azureml", "admission_review")


@pytest.mark.parametrize("folder", OTHERS)
def test_real_files_of_other_formats_are_refused(real: Path, folder: str) -> None:
    """Templates, plans and Kubernetes objects hold no ARM resource as it is."""
    for path in files_in(real / folder):
        snapshot, problems, *_ = read_inputs([path])
        assert not snapshot.resources, path
        assert problems, path


# ---------------------------------------------------------------- documents that are a little wrong


@cache
def documents() -> tuple[bytes, ...]:
    """Real documents where they are to be had, and one of each format in any case."""
    compute = {
        "id": "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w/computes/c",
        "type": "Microsoft.MachineLearningServices/workspaces/computes",
        "properties": {"computeType": "AmlCompute", "properties": None},
    }
    role = {"Name": "R", "IsCustom": True, "Actions": ["*"], "NotActions": [], "AssignableScopes": ["/subscriptions/s"]}
    native = {"snapshotVersion": 1, "takenAt": "2026-01-01T00:00:00Z", "resources": [compute], "workloads": []}
    example = {"parameters": {}, "responses": {"200": {"body": compute}}}
    own = [compute, {"value": [compute], "nextLink": "x"}, [role], native, example]
    real = [path for folder in FOLDERS for path in files_in(REAL / folder) if path.stat().st_size < 4096]
    return (*(json.dumps(document).encode() for document in own), *(path.read_bytes() for path in real))


SCALARS = st.sampled_from([None, True, 0, 1e9, "", "string", "/subscriptions/s", "{x}", "\x00", "é"])
KEYS = st.sampled_from(["id", "type", "properties", "value", "renamed_key"])
JSON_VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=2), max_leaves=4
)


@st.composite
def broken_bytes(draw: st.DrawFn) -> bytes:
    """A document with a slice replaced by other bytes."""
    content = draw(st.sampled_from(documents()))
    start = draw(st.integers(0, len(content)))
    return content[:start] + draw(st.binary(max_size=4)) + content[start + draw(st.integers(0, 8)) :]


@st.composite
def changed_documents(draw: st.DrawFn) -> object:
    """A document in which one place has another value, another key, or nothing."""
    content = draw(st.sampled_from(documents()))
    try:
        document = json.loads(content)
    except ValueError:
        return content.decode()
    holder: dict[str, object] = {"": document}
    place: object = holder
    while isinstance(place, dict | list) and place:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = draw(st.sampled_from(keys))
        inner = place[key]
        if not isinstance(inner, dict | list) or not inner or draw(st.integers(0, 3)) == 0:
            place[key] = draw(JSON_VALUES)
            if isinstance(place, dict) and draw(st.booleans()):
                place[draw(KEYS)] = place.pop(key)
            break
        place = inner
    return holder.get("", holder)


def assert_sound(content: bytes, from_format: str | None) -> None:
    """Reading gives sound resources and problems, and raises nothing."""
    snapshot, problems, *_ = read_inputs(["-"], stdin=content, from_format=from_format)
    for resource in snapshot.resources:
        assert resource["id"].startswith("/")
        assert "/" in resource["type"]
        assert resource["id"].lower() in snapshot.origins
    assert all(problem.place.startswith("<stdin>") and problem.message for problem in problems)


@given(st.binary() | broken_bytes(), st.sampled_from([None, *FORMATS]))
def test_any_bytes_give_a_snapshot_and_problems(content: bytes, from_format: str | None) -> None:
    """Whatever comes in, nothing is raised."""
    assert_sound(content, from_format)


@given(changed_documents() | JSON_VALUES, st.sampled_from([None, *FORMATS]))
def test_any_document_gives_a_snapshot_and_problems(document: object, from_format: str | None) -> None:
    """Whatever JSON says, nothing is raised."""
    assert_sound(json.dumps(document).encode(), from_format)


@given(broken_bytes())
def test_in_process_only_our_errors_are_raised(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    """A program that catches `InputError` catches all there is to catch."""
    path = tmp_path_factory.getbasetemp() / "broken.json"
    path.write_bytes(content)
    try:
        snapshot = load_snapshot(path)
    except InputError as refused:
        message = str(refused)
    else:
        message = f"{path} was read: {len(snapshot.resources)}"
    assert message.startswith(str(path))
