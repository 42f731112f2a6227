"""Several inputs in one run: joined into one snapshot, and none of them hidden by another."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from policyeng.errors import InputError, UsageError
from policyeng.models import JsonObject, Origin, Problem
from policyeng.sources import FORMATS, load_snapshot, read_inputs
from policyeng.sources.discovery import Named

GROUP = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-ml"
WORKSPACE = f"{GROUP}/providers/Microsoft.MachineLearningServices/workspaces/ws"


def resource(name: str, **properties: object) -> JsonObject:
    """A compute of the workspace."""
    return {
        "id": f"{WORKSPACE}/computes/{name}",
        "type": "Microsoft.MachineLearningServices/workspaces/computes",
        "properties": properties,
    }


def written(path: Path, document: object) -> Path:
    """A file with a document on lines of its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1), encoding="utf-8")
    return path


def ids(resources: tuple[JsonObject, ...]) -> list[str]:
    """The last segment of each id."""
    return [entry["id"].rpartition("/")[2] for entry in resources]


def test_files_of_several_formats_become_one_snapshot(here: Path) -> None:
    """A workspace, its computes, its roles and what the organisation states belong together."""
    written(here / "computes.json", {"value": [resource("a"), resource("b")], "nextLink": "https://x"})
    written(
        here / "roles.json",
        [{"Name": "R", "Actions": ["*"], "AssignableScopes": [GROUP]}],
    )
    written(
        here / "facts.json",
        {
            "snapshotVersion": 1,
            "scope": GROUP,
            "takenAt": "2026-11-02T00:00:00Z",
            "workloads": [{"id": "W"}],
            "incomplete": ["jobs"],
        },
    )
    written(here / "more.json", {"snapshotVersion": 1, "scope": WORKSPACE, "takenAt": "2026-11-01T00:00:00Z"})
    snapshot, problems, files, *_ = read_inputs(["computes.json", "roles.json", "facts.json", "more.json"])

    assert problems == ()
    assert files == ("computes.json", "roles.json", "facts.json", "more.json")
    assert ids(snapshot.resources) == ["a", "b", "R"]
    assert snapshot.scope == f"{GROUP}, {WORKSPACE}"
    assert str(snapshot.taken_at) == "2026-11-01 00:00:00+00:00"
    assert [workload.id for workload in snapshot.workloads] == ["W"]
    assert snapshot.incomplete == (
        "computes.json: the list continues at its `nextLink`, and the next page is not in the file",
        "jobs",
    )


def test_equal_scopes_are_stated_once(here: Path) -> None:
    """Two files of one scope give that scope."""
    for name in ("a.json", "b.json"):
        written(here / name, {"snapshotVersion": 1, "scope": GROUP})

    assert read_inputs(["a.json", "b.json"]).snapshot.scope == GROUP


def test_every_resource_knows_where_it_was_read(here: Path) -> None:
    """Origins carry the file as the user named it, the pointer, and the line; declared workloads have one too."""
    written(here / "x.json", {"value": [resource("A"), resource("b")]})
    written(here / "n.json", {"snapshotVersion": 1, "workloads": [{"id": "Score"}]})
    snapshot = read_inputs([Path("x.json"), "n.json"]).snapshot

    assert snapshot.origins == {
        f"{WORKSPACE}/computes/a".lower(): Origin(file="x.json", pointer="/value/0", line=3, column=3),
        f"{WORKSPACE}/computes/b".lower(): Origin(file="x.json", pointer="/value/1", line=8, column=3),
        "score": Origin(file="n.json", pointer="/workloads/0", line=4, column=3),
    }


def test_unreadable_pointers_reach_the_snapshot(here: Path) -> None:
    """They are found by the resource's lower-case id, and only where there are some."""
    listed = {"id": f"{WORKSPACE}/computes/A", "type": resource("A")["type"]}
    written(here / "x.json", [listed, resource("b")])

    [(identity, pointers)] = read_inputs(["x.json"]).snapshot.unreadable.items()
    assert identity == f"{WORKSPACE}/computes/a".lower()
    assert list(pointers) == ["/properties"]


def test_standard_input_is_an_input_like_others(here: Path) -> None:
    """`-` means the bytes that were piped in."""
    written(here / "x.json", resource("a"))
    inputs = read_inputs(["-", "x.json"], stdin=json.dumps(resource("b")).encode())

    assert ids(inputs.snapshot.resources) == ["b", "a"]
    assert inputs.files == ("<stdin>", "x.json")
    assert inputs.snapshot.origins[f"{WORKSPACE}/computes/b".lower()].file == "<stdin>"


def test_a_directory_means_its_json_files(here: Path) -> None:
    """All of them, at any depth, sorted by path; other files are not looked at."""
    written(here / "d/z.json", resource("z"))
    written(here / "d/a/b.JSON", resource("ab"))
    written(here / "d/a/a.json", resource("aa"))
    (here / "d/readme.md").write_text("no")
    inputs = read_inputs(["d"])

    assert inputs.files == ("d/a/a.json", "d/a/b.JSON", "d/z.json")
    assert inputs.problems == ()


def test_an_unreadable_input_hides_no_other(here: Path) -> None:
    """What can be read is evaluated; each of the others is an error with file, place and remedy."""
    written(here / "good.json", resource("a"))
    (here / "broken.json").write_text('{"a":\n 1,}')
    written(here / "unknown.json", {"version": "1.2", "planned": {}})
    written(here / "error.json", {"error": {"code": "Forbidden"}})
    (here / "empty").mkdir()
    inputs = read_inputs(
        ["missing.json", "broken.json", "unknown.json", "error.json", "empty", "a\0b", "-", "good.json"]
    )

    assert ids(inputs.snapshot.resources) == ["a"]
    assert inputs.files == ("error.json", "good.json")
    assert {problem.level for problem in inputs.problems} == {"error"}
    assert [problem.place for problem in inputs.problems] == [
        "missing.json",
        "broken.json:2:4",
        "unknown.json",
        "error.json:1",
        "empty",
        "a\0b",
        "<stdin>",
    ]
    messages = [problem.message for problem in inputs.problems]
    assert messages[0] == "cannot be read (no such file or directory); give a file that exists and that you can read"
    assert messages[1] == "/a: not valid JSON; correct the syntax there"
    assert messages[2].startswith("unsupported format: an object with the keys `version`, `planned`; ")
    assert messages[2].endswith("; `policyeng check --from` lists the formats")
    assert messages[3] == "an error response (`Forbidden`), not a resource; fix the request and save its response again"
    assert messages[4].startswith("the directory contains no `*.json` or `*.jsonc` or ")
    assert messages[4].endswith(" file; give a directory with JSON or YAML documents, or a file")
    assert messages[5] == "cannot be read (embedded null byte); give a file that exists and that you can read"
    assert messages[6] == "there is no standard input; pipe a document to it, or give a file"


def test_messages_of_the_system_are_passed_on(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file or a directory that may not be read is refused with the system's reason."""
    written(here / "d/x.json", {})

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "d")

    monkeypatch.setattr(Path, "open", refuse)
    assert read_inputs(["d/x.json"]).problems[0].message.startswith("cannot be read (permission denied); give a file")
    monkeypatch.setattr(os, "scandir", refuse)
    [problem] = read_inputs(["d"]).problems
    assert (problem.place, problem.message[:34]) == ("d", "cannot be read (permission denied)")


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"nodes": []}, "unsupported format: an object with the keys `nodes`"),
        ({}, "unsupported format: an empty object"),
        ([[1]], "unsupported format: a list that begins with a list that begins with a number"),
        ("x", "unsupported format: a string"),
        ({"primaryKey": "x"}, "a response with keys or tokens, not a resource"),
    ],
)
def test_a_found_file_without_resources_is_skipped(here: Path, document: object, reason: str) -> None:
    """A file that is not named is left out with the reason. Named, it is an error."""
    written(here / "d/a.json", resource("a"))
    written(here / "d/other.json", document)

    inputs = read_inputs(["d"])
    [named] = read_inputs(["d/other.json"]).problems
    assert inputs.problems == ()
    [skipped] = inputs.ledger
    assert skipped.place == "d/other.json"
    assert named.level == "error"
    assert named.message.startswith(skipped.reason)
    assert skipped.reason.startswith(reason)


def test_a_found_file_that_is_broken_is_an_error(here: Path) -> None:
    """It may have contained resources."""
    written(here / "d/a.json", {"error": {"code": "x"}})
    (here / "d/b.json").write_text('{"id": "/subscriptions/s')
    (here / "d/c.yaml").write_text("{")
    (here / "d/d.yaml").write_text("$schema: https://azuremlschemas.azureedge.net/latest/workspace.schema.json\na: {")

    inputs = read_inputs(["d"])

    assert [(problem.level, problem.place.split(":")[0]) for problem in inputs.problems] == [
        ("error", "d/a.json"),
        ("error", "d/b.json"),
        ("error", "d/d.yaml"),
    ]
    assert [skipped.place for skipped in inputs.ledger] == ["d/c.yaml"]


def test_one_id_twice_in_a_file_is_an_error_that_names_both_places(here: Path) -> None:
    """Even when the two are equal; ids compare without case, and only the first is checked."""
    again = resource("a")
    again["id"] = again["id"].upper()
    written(here / "x.json", [resource("a", n=1), resource("b"), again])
    inputs = read_inputs(["x.json"])

    assert ids(inputs.snapshot.resources) == ["a", "b"]
    assert inputs.snapshot.resources[0]["properties"] == {"n": 1}
    assert inputs.problems == (
        Problem(
            level="error",
            message=f"duplicate resource `{again['id']}`: x.json:2 and x.json:14; only the first is checked, "
            "so remove one of them",
            place="x.json:14",
        ),
    )


def test_one_id_with_two_bodies_in_two_files_is_an_error(here: Path) -> None:
    """Both places are named, and only the first is checked."""
    written(here / "x.json", resource("a", n=1))
    written(here / "y.json", [resource("a", n=2)])
    inputs = read_inputs(["x.json", "y.json"])

    assert [entry["properties"] for entry in inputs.snapshot.resources] == [{"n": 1}]
    [problem] = inputs.problems
    assert (problem.level, problem.place) == ("error", "y.json:2")
    assert "x.json:1 and y.json:2; only the first is checked" in problem.message


def test_the_same_resources_in_two_files_are_evaluated_once(here: Path) -> None:
    """One warning for each pair of files states it."""
    written(here / "x.json", [resource("a"), resource("b")])
    written(here / "y.json", [resource("b"), resource("a"), resource("c")])
    inputs = read_inputs(["x.json", "y.json"])

    assert ids(inputs.snapshot.resources) == ["a", "b", "c"]
    assert inputs.problems == (
        Problem(
            level="warning",
            message="2 entries are also in `x.json`, with the same content; each is checked once",
            place="y.json",
        ),
    )


def test_stated_facts_are_joined_and_their_ids_are_unique(here: Path) -> None:
    """Approvals, workloads and principals are known by their ids; quotas and metrics are just listed."""
    quota = {"scope": GROUP, "region": "eastus", "family": "f", "limitVCpus": 1}
    workloads = [{"id": "w", "cadence": "continuous"}, {"id": "w", "cadence": "sporadic"}]
    written(here / "x.json", {"snapshotVersion": 1, "workloads": workloads, "quotas": [quota, quota]})
    written(here / "y.json", {"snapshotVersion": 1, "workloads": workloads[:1], "quotas": [quota]})
    inputs = read_inputs(["x.json", "y.json"])

    assert [workload.cadence for workload in inputs.snapshot.workloads] == ["continuous"]
    assert len(inputs.snapshot.quotas) == 3
    assert [(problem.level, problem.place) for problem in inputs.problems] == [
        ("error", "x.json:8"),
        ("warning", "y.json"),
    ]


def test_a_file_named_twice_is_read_once(here: Path) -> None:
    """Also through its directory, and it is reported."""
    written(here / "d/x.json", resource("a"))
    inputs = read_inputs(["d/x.json", "d", "-", "-"], stdin=b"[]")

    assert inputs.files == ("d/x.json", "<stdin>")
    assert inputs.problems == tuple(
        Problem(level="warning", message="given twice; it is read once", place=place)
        for place in ("d/x.json", "<stdin>")
    )


def test_from_insists_on_a_format(here: Path) -> None:
    """A file that does not fit is refused as that format, whatever its content looks like."""
    written(here / "x.json", {"snapshotVersion": 1})

    [problem] = read_inputs(["x.json"], from_format="arm-rest").problems
    assert problem.message.startswith("not a resource, because it has neither `id` nor `type`: `snapshotVersion`")
    assert read_inputs(["x.json"], from_format="native").problems == ()


@pytest.mark.parametrize(
    ("name", "hint"), [("arm_rest", "; did you mean `arm-rest`; the formats are "), ("zzz", "; the formats are ")]
)
def test_an_unknown_format_is_a_usage_error(name: str, hint: str) -> None:
    """It names the nearest format, and all of them."""
    with pytest.raises(UsageError) as refused:
        read_inputs([], from_format=name)

    assert str(refused.value) == f"unknown format `{name}`{hint}" + ", ".join(f"`{known}`" for known in FORMATS)


def test_the_size_limit_applies_to_files_and_standard_input(here: Path) -> None:
    """A file over the limit is not read to its end."""
    written(here / "x.json", [])
    inputs = read_inputs(["x.json", "-"], stdin=b"[ ]", max_bytes=1)

    assert [problem.message for problem in inputs.problems] == [
        "larger than the limit of 1 bytes; split it, or raise the limit"
    ] * 2


def test_names_that_are_not_text_can_be_reported(here: Path) -> None:
    """A file name that is not UTF-8 is shown escaped."""
    name = os.fsdecode(b"d\xff.json")
    written(here / name, resource("a"))

    assert read_inputs([name]).files == ("d\\xff.json",)


def test_resources_are_not_copied() -> None:
    """A resource in ARM shape is the very value that was parsed, so that large snapshots cost nothing more."""
    document = [resource("a")]
    [placed] = FORMATS["arm-rest"].read(document).resources

    assert placed.resource is document[0]


def test_load_snapshot_gives_all_or_nothing(here: Path) -> None:
    """For programs: the snapshot, or one error with the first fault, how many more there are, place and remedy."""
    written(here / "good.json", resource("a"))
    written(here / "bad.json", {"snapshotVersion": 1, "scope": 1, "quota": []})

    assert ids(load_snapshot(here / "good.json").resources) == ["a"]
    with pytest.raises(InputError) as refused:
        load_snapshot("bad.json")
    assert str(refused.value).startswith(
        "bad.json:4: /quota: unknown key `quota`; did you mean `quotas`; the known keys are"
    )
    assert str(refused.value).endswith(" (and 1 more)")


def test_load_snapshot_lets_warnings_pass(here: Path) -> None:
    """An empty file in a directory changes nothing."""
    written(here / "d/a.json", resource("a"))
    written(here / "d/other.json", {"nodes": []})

    assert ids(load_snapshot("d").resources) == ["a"]


def test_a_document_that_is_no_file_is_read_under_its_name(here: Path) -> None:
    """As the file of that name is; only its directory does not count."""
    document = [resource("a", vmSize="x"), {"id": 1}]
    path = written(here / "computes.json", document)

    read, file = read_inputs([Named("computes.json", None)], stdin=path.read_bytes()), read_inputs(["computes.json"])

    assert read.problems == file.problems != ()
    assert read.read == file.read
    assert read.snapshot.model_dump() == file.snapshot.model_dump()
    assert read_inputs([Named("computes.yaml", None)], stdin=b"- a: b").problems[0].place == "computes.yaml"


def test_a_document_that_is_no_file_has_a_limit() -> None:
    """As one that is."""
    read = read_inputs([Named("row 7", None)], stdin=b"[" + b" " * 100 + b"]", max_bytes=100)

    assert not read.snapshot.resources
    assert [(problem.level, problem.place) for problem in read.problems] == [("error", "row 7")]
    assert "larger than the limit of 100 bytes" in read.problems[0].message


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", ["w.json", "w.yaml"])
def test_files_written_by_windows_are_read(here: Path, encoding: str, name: str) -> None:
    """With or without a byte order mark; places are those that an editor shows."""
    text = json.dumps([resource("größe", a=1), resource("b")], ensure_ascii=False, indent=1)
    text = text if name == "w.json" else f"# größe\nsnapshotVersion: 1\nresources: {text}\n"
    plain, other = here / "plain", here / "other"
    for folder, content in ((plain, text.encode()), (other, text.encode(encoding))):
        folder.mkdir()
        (folder / name).write_bytes(content)
    expected = read_inputs([plain])
    assert len(expected.snapshot.resources) == 2

    for read in (
        read_inputs([other]),
        read_inputs([other / name]),
        read_inputs(["-"], stdin=(other / name).read_bytes()),
    ):
        assert (read.problems, read.ledger) == ((), ())
        assert read.snapshot.resources == expected.snapshot.resources
        places = [(origin.line, origin.column) for origin in read.snapshot.origins.values()]
        assert places == [(origin.line, origin.column) for origin in expected.snapshot.origins.values()]


@pytest.mark.parametrize("encoding", ["utf-32", "utf-32-le"])
@pytest.mark.parametrize("name", ["w.json", "w.yaml"])
def test_an_encoding_that_is_not_read_is_an_error_in_a_directory(here: Path, encoding: str, name: str) -> None:
    """It may contain what would fail, so it is not skipped; text of something else is."""
    text = json.dumps(resource("a"))
    (here / name).write_bytes(text.encode(encoding))
    (here / "cut.json").write_bytes(text.encode("utf-16")[:-1])
    (here / "other.json").write_bytes('{"a": 1}'.encode(encoding))
    read = read_inputs(["."])

    message = "encoded as UTF-16 or UTF-32; save it as UTF-8"
    assert [problem.place for problem in read.problems if message in problem.message] == ["cut.json:1:1", f"{name}:1:1"]
    assert [skipped.place for skipped in read.ledger] == ["other.json"]


def test_a_directory_of_a_repository_is_read_without_its_other_files(here: Path) -> None:
    """Unrelated files, and documents of policyeng, are skipped; each is named with the reason."""
    written(here / "a.json", resource("a"))
    provider = "Microsoft.MachineLearningServices/workspaces"
    rule = {"if": {"field": "type", "equals": provider}, "then": {"effect": "deny"}}
    other: dict[str, object] = {
        "assignment.json": {
            "name": "n",
            "type": "Microsoft.Authorization/policyDefinitions",
            "properties": {"x": rule},
        },
        "dashboard.json": {"type": "Microsoft.Portal/dashboards", "properties": {"lenses": [provider]}},
        "decision.json": {"decisionVersion": 1, "allowed": True, "asOf": "x", "bundle": {}, "changes": []},
        "exemptions.json": {"exemptions": []},
        "identity.json": {"identity": {"type": "SystemAssigned"}},
        "notes.json": {"todo": f"look at {provider}"},
        "policy.json": {"properties": {"policyRule": rule, "displayName": provider}},
        "report.json": {"reportVersion": 1, "findings": []},
        "role.json": {"roleName": "r", "actions": ["*"], "assignableScopes": ["${current_scope_resource_id}"]},
        "sarif.json": {"version": "2.1.0", "runs": [{"results": [{"id": f"/subscriptions/s/{provider}"}]}]},
        "bom.json": {"bomFormat": "CycloneDX", "components": []},
        "template.json": {
            "$schema": "https://schema.management.azure.com/schemas/2021-01-01/tenantDeploymentTemplate.json#",
            "resources": [{"type": "Microsoft.Subscription/aliases", "apiVersion": "2021-10-01", "name": ""}],
        },
    }
    for name, document in other.items():
        written(here / name, document)
    texts = {
        "azure-pipelines.yml": f"trigger: none\nsteps:\n- script: az rest # {provider}\n",
        "cases.yaml": f"baseline: workspace\npass:\n  x: {{patch: {{type: {provider}}}}}\n",
        "mkdocs.yml": f"nav: [{provider}]\nextension: !!python/name:x.y z\n",
        "planned.yaml": "# $schema: https://azuremlschemas.azureedge.net/latest/workspace.schema.json\n",
        "workflow.yml": "name: build\non: push\njobs:\n  test: {runs-on: ubuntu-latest}\n",
    }
    for name, text in texts.items():
        (here / name).write_text(text, encoding="utf-8")
    read = read_inputs(["."])

    assert ids(read.snapshot.resources) == ["a"]
    assert read.problems == ()
    assert sorted(skipped.place for skipped in read.ledger) == sorted([*other, *texts])


@pytest.mark.parametrize(
    "text",
    [
        '{"id": "/subscriptions/s", "properties": {',
        '{"type": "Microsoft.MachineLearningServices/workspaces/computes", "properties": {}}',
        '{"properties": {"computeType": "AmlCompute"}}',
        '{"snapshotVersion": 1, "resources": [{"id": "x"}]}',
        '[{"ResourceId": "/subscriptions/s/providers/Microsoft.MachineLearningServices/workspaces/w"}]',
    ],
)
def test_a_broken_file_of_machine_learning_is_an_error_in_a_directory(here: Path, text: str) -> None:
    """Its structure is that of a format, so it may contain what would fail."""
    written(here / "a.json", resource("a"))
    (here / "b.json").write_text(text, encoding="utf-8")
    read = read_inputs(["."])

    assert [problem.level for problem in read.problems] == ["error"]
    assert str(read.problems[0].place).startswith("b.json")


def test_a_key_of_a_report_hides_no_resource(here: Path) -> None:
    """A document of a format is read, whatever else is in it."""
    written(here / "a.json", {"snapshotVersion": 1, "resources": [resource("a")], "exemptions": [], "bomFormat": "x"})

    assert ids(read_inputs(["."]).snapshot.resources) == ["a"]
