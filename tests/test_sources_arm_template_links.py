"""Templates that link to others: which file is read, that it is evaluated once, and the places of its findings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyeng import evaluate
from policyeng.bundle import Bundle
from policyeng.models import JsonObject
from policyeng.sources import DocumentContext, Inputs, arm_template, read_inputs
from policyeng.sources.parsed import Surroundings
from policyeng.sources.text import Text

GROUP = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-ml"
SCHEMA = "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#"
ARTIFACTS: JsonObject = {
    "_artifactsLocation": {"type": "string", "defaultValue": "[deployment().properties.templateLink.uri]"},
    "_artifactsLocationSasToken": {"type": "securestring", "defaultValue": ""},
}
#: No resources, outputs, parameters or links.
ODD = st.sampled_from([None, 1, "", "[x(", "[uri(1, 2)]", "{a}/b.json", [None], {"x": [None]}, {"x": {"value": "[x("}}])
ACCESS = {"access": {"type": "string", "defaultValue": "Enabled"}}


def template(*resources: JsonObject, parameters: Mapping[str, object] = ACCESS) -> JsonObject:
    """A template that deploys these."""
    return {"$schema": SCHEMA, "contentVersion": "1.0.0.0", "parameters": parameters, "resources": list(resources)}


def workspace(name: str, access: str = "[parameters('access')]", **more: object) -> JsonObject:
    """A workspace, its access from the parameter."""
    kind = "Microsoft.MachineLearningServices/workspaces"
    return {
        "type": kind,
        "apiVersion": "2024-10-01",
        "name": name,
        "properties": {"publicNetworkAccess": access},
        **more,
    }


def linked(link: JsonObject, access: str = "Disabled", **more: object) -> JsonObject:
    """A deployment of a linked template, with a value for its parameter."""
    properties = {"mode": "Incremental", "templateLink": link, "parameters": {"access": {"value": access}}}
    return {"type": "Microsoft.Resources/deployments", "name": "d", "properties": properties, **more}


def written(folder: Path, files: Mapping[str, JsonObject]) -> list[Path]:
    """Documents as files, one value in a line."""
    paths = [folder / name for name in files]
    for path, document in zip(paths, files.values(), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document, indent=1), encoding="utf-8")
    return paths


def read(paths: Sequence[Path], scope: str = GROUP) -> Inputs:
    """The files, deployed to a resource group that is known."""
    return read_inputs(paths, context=DocumentContext(scope=scope))


def accesses(inputs: Inputs) -> dict[str, object]:
    """The access to each workspace, by the last segment of its id."""
    found = {}
    for resource in inputs.snapshot.resources:
        found[resource["id"].rsplit("/", 1)[-1]] = resource["properties"].get("publicNetworkAccess")
    return found


def skipped(inputs: Inputs, folder: Path) -> dict[str, str]:
    """Why a file is skipped, without the folder."""
    return {
        str(Path(entry.place).relative_to(folder)): entry.reason.replace(f"{folder}/", "") for entry in inputs.ledger
    }


# ---------------------------------------------------------------- once


def test_a_linked_template_is_not_evaluated_alone(tmp_path: Path) -> None:
    """Whichever is named first, and whether it is found or named; alone it is evaluated with its defaults."""
    files = {
        "nested/c.json": template(workspace("inner")),
        "main.json": template(workspace("outer", "Disabled"), linked({"relativePath": "nested/c.json"})),
    }
    paths = written(tmp_path, files)
    for named in (paths, paths[::-1], [tmp_path], [paths[0], tmp_path], paths[1:]):
        inputs = read(named)
        assert accesses(inputs) == {"outer": "Disabled", "inner": "Disabled"}
        assert skipped(inputs, tmp_path) == {"nested/c.json": "read as part of `main.json`"} or named == paths[1:]
        assert [entry.file for entry in inputs.read] == [str(paths[1])]
        assert not [problem for problem in inputs.problems if "given twice" not in problem.message]
    assert accesses(read(paths[:1])) == {"inner": "Enabled"}


def test_files_of_the_directory_belong_to_the_workspace_as_it_is_deployed(tmp_path: Path) -> None:
    """Not to the one that the linked template would make with its defaults."""
    named = template(
        workspace("[parameters('access')]"), parameters={"access": {"type": "string", "defaultValue": "dev"}}
    )
    main = template(linked({"relativePath": "nested/c.json"}, "prod"))
    paths = written(tmp_path, {"main.json": main, "nested/c.json": named})
    compute = tmp_path / "nested" / "cluster.yml"
    compute.write_text(
        "$schema: https://azuremlschemas.azureedge.net/latest/amlCompute.schema.json\nname: c\ntype: amlcompute\n"
    )
    (made,) = (
        entry["id"] for entry in read([*paths, compute]).snapshot.resources if entry["id"].endswith("/computes/c")
    )
    assert made.endswith("/workspaces/prod/computes/c")
    (alone,) = (entry["id"] for entry in read([paths[1], compute]).snapshot.resources if entry["id"].endswith("/c"))
    assert alone.endswith("/workspaces/dev/computes/c")


def test_a_template_left_to_another_leaves_its_own_links(tmp_path: Path) -> None:
    """A file that only a linked template links to, and not as it is deployed, is evaluated alone."""
    parameters = {**ACCESS, "more": {"type": "bool", "defaultValue": True}}
    outer = linked({"relativePath": "b.json"})
    outer["properties"]["parameters"]["more"] = {"value": "[parameters('deep')]"}
    files = {
        "a.json": template(outer, parameters={"deep": {"type": "bool", "defaultValue": False}}),
        "b.json": template(
            workspace("b"), linked({"relativePath": "c.json"}, condition="[parameters('more')]"), parameters=parameters
        ),
        "c.json": template(workspace("c")),
    }
    for paths in permutations(written(tmp_path, files)):
        inputs = read(paths)
        assert accesses(inputs) == {"b": "Disabled", "c": "Enabled"}
        assert skipped(inputs, tmp_path) == {"b.json": "read as part of `a.json`"}
    files["a.json"]["parameters"]["deep"]["defaultValue"] = True
    for paths in permutations(written(tmp_path, files)):
        inputs = read(paths)
        assert accesses(inputs) == {"b": "Disabled", "c": "Disabled"}
        assert skipped(inputs, tmp_path) == dict.fromkeys(("b.json", "c.json"), "read as part of `a.json`")


def test_of_templates_that_link_to_one_another_the_first_by_name_is_evaluated(tmp_path: Path) -> None:
    """So that none is lost, in whichever order they are named; a template that both link to is not evaluated alone."""
    shared = linked({"relativePath": "0.json"}, name="e")
    files = {
        "0.json": template(workspace("shared")),
        "y.json": template(workspace("y", "Disabled"), linked({"relativePath": "x.json"}), shared),
        "x.json": template(workspace("x", "Disabled"), linked({"relativePath": "y.json"})),
    }
    for paths in permutations(written(tmp_path, files)):
        inputs = read(paths)
        assert skipped(inputs, tmp_path) == dict.fromkeys(("0.json", "y.json"), "read as part of `x.json`")
        assert accesses(inputs) == dict.fromkeys(("x", "y", "shared"), "Disabled")


def test_a_module_of_two_templates_is_that_of_both(tmp_path: Path) -> None:
    """The same workspace is evaluated once, with a warning; two different ones are an error that names both."""
    module = {"nested/c.json": template(workspace("inner"))}
    link: JsonObject = {"relativePath": "nested/c.json"}
    paths = written(tmp_path, {"one.json": template(linked(link)), "two.json": template(linked(link)), **module})
    inputs = read(paths)
    (problem,) = inputs.problems
    assert (problem.level, problem.place) == ("warning", str(paths[1]))
    assert f"one entry is also in `{paths[0]}`" in problem.message
    written(tmp_path, {"two.json": template(linked(link, "Enabled"))})
    (problem,) = read(paths).problems
    place = f"{paths[2]}:11"
    assert (problem.level, problem.place) == ("error", place)
    assert f"{place} as part of {paths[0]} and {place} as part of {paths[1]}" in problem.message


# ---------------------------------------------------------------- which file


@pytest.mark.parametrize(
    ("uri", "called"),
    [
        ("[uri(deployment().properties.templateLink.uri,'nested/c.json')]", "nested/c.json"),
        ("[uri(parameters('_artifactsLocation'), concat('nested/c.json', parameters('sas')))]", "nested/c.json"),
        ("[uri(parameters('_artifactsLocation'), concat('nested/c.json', parameters('token')))]", "nested/c.json"),
        ("[concat(parameters('_artifactsLocation'), '/nested/c.json', parameters('sas'))]", "nested/c.json"),
        ("[uri(parameters('_artifactsLocation'), 'nested/deep/c.json')]", "nested/deep/c.json"),
        ("[uri(parameters('_artifactsLocation'), '../shared/c.json')]", "../shared/c.json"),
        ("[uri('https://raw.example/org/repository/main/azuredeploy.json', 'nested/c.json')]", "nested/c.json"),
        ("[uri('https://raw.example/org/nested/main.json', parameters('_artifactsLocation'))]", ""),
        ("[concat('https://raw.example/org/nested/main.json/', parameters('sas'))]", ""),
        ("[concat('https://', parameters('sas'), '.blob.example/x/nested/c.json?sv=1')]", "nested/c.json"),
        ("[concat('https://raw.example/', parameters('sas'), '/../c.json')]", "../c.json"),
        ("https://raw.example/org/../c.json", "c.json"),
    ],
)
def test_the_end_of_a_uri_is_looked_for_in_the_directory(tmp_path: Path, uri: str, called: str) -> None:
    """With the values that the deployment gives; where no file exists, the message names what would be read."""
    parameters = {**ARTIFACTS, "sas": {"type": "securestring"}, "token": ARTIFACTS["_artifactsLocationSasToken"]}
    folder = tmp_path / "templates"
    (main,) = written(folder, {"main.json": template(linked({"uri": uri}), parameters=parameters)})
    (gap,) = read([main]).snapshot.incomplete
    if not called:
        assert gap.endswith("nor links to a local file; compile everything into one template")
        return
    assert f"there is no template `{called}` next to the file; add it at that path" in gap
    written(folder, {called: template(workspace("inner"))})
    inputs = read([main])
    assert (accesses(inputs), inputs.snapshot.incomplete) == ({"inner": "Disabled"}, ())


def test_the_longest_end_of_a_uri_takes_precedence(tmp_path: Path) -> None:
    """A file of the same name in a nearer directory is another one, and so is the template itself."""
    uri = "https://raw.example/org/nested/deep/main.json"
    (main, *_) = written(
        tmp_path,
        {
            "main.json": template(linked({"uri": uri})),
            "deep/main.json": template(workspace("deep")),
            "nested/deep/main.json": template(workspace("nested")),
        },
    )
    assert accesses(read([main])) == {"nested": "Disabled"}
    (tmp_path / "nested/deep/main.json").unlink()
    assert accesses(read([main])) == {"deep": "Disabled"}
    (tmp_path / "deep/main.json").unlink()
    assert "there is no template `deep/main.json` next to the file" in read([main]).snapshot.incomplete[0]


def test_links_inside_a_linked_template_begin_at_its_folder_or_at_the_first(tmp_path: Path) -> None:
    """As `relativePath` does, and as a base does that is passed on."""
    passed = linked({"uri": "[uri(parameters('_artifactsLocation'), 'nested/c.json')]"})
    passed["properties"]["parameters"]["base"] = {"value": "[parameters('_artifactsLocation')]"}
    base = {**ACCESS, "base": {"type": "string"}}
    files = {
        "main.json": template(passed, parameters=ARTIFACTS),
        "nested/c.json": template(
            linked({"relativePath": "deep/d.json"}),
            linked({"uri": "[uri(parameters('base'), 'other/e.json')]"}, name="e"),
            parameters=base,
        ),
        "nested/deep/d.json": template(workspace("d")),
        "other/e.json": template(workspace("e")),
    }
    paths = written(tmp_path, files)
    inputs = read([tmp_path])
    assert accesses(inputs) == {"d": "Disabled", "e": "Disabled"}
    assert skipped(inputs, tmp_path) == dict.fromkeys(list(files)[1:], "read as part of `main.json`")
    assert {origin.file for origin in inputs.snapshot.origins.values()} == {str(path) for path in paths[2:]}


def test_a_file_of_the_directory_that_is_no_template_is_not_taken_for_one(tmp_path: Path) -> None:
    """The template is missing then, and the snapshot states it."""
    (main, _) = written(
        tmp_path, {"main.json": template(linked({"relativePath": "c.json"})), "c.json": {"parameters": {}}}
    )
    assert "there is no template `c.json` next to the file" in read([main]).snapshot.incomplete[0]


@given(odd=st.lists(ODD, max_size=3), outputs=ODD, link=ODD)
def test_any_linked_document_is_read(odd: list[object], outputs: object, link: object) -> None:
    """Nothing is raised, and a fault in a linked file is reported at the deployment that links to it."""
    body = {"resources": [*odd, workspace("inner")], "outputs": outputs, "parameters": outputs}
    text = Text("c.json", (("", body),), lambda pointers: [(1, 1)] * len(pointers))
    referring = workspace("refers", "[reference('d').outputs.x.value]")
    document = template(linked({"relativePath": "c.json", "uri": link}), referring)
    reading = arm_template.read(document, Surroundings(file="main.json", scope=GROUP, neighbor_text=lambda path: text))  # noqa: ARG005  # the one file
    assert [(placed.resource["name"], placed.text) for placed in reading.resources[-2:]] == [
        ("inner", text),
        ("refers", None),
    ]
    faults = [refusal.place for refusal in reading.refusals]
    assert set(faults) <= {"/resources/0/properties/templateLink"}
    assert bool(faults) is bool(odd)


# ---------------------------------------------------------------- where


def test_findings_are_in_the_linked_file(tmp_path: Path, bundle: Bundle) -> None:
    """At the line and column of the field there, also below a nested deployment, in a copy and of the workspace."""
    copied = workspace("[concat('copy', copyIndex())]", copy={"name": "c", "count": 2})
    inline = {"mode": "Incremental", "template": template(workspace("inline", "Enabled"))}
    nested = {"type": "Microsoft.Resources/deployments", "name": "n", "properties": inline}
    paths = written(
        tmp_path,
        {
            "main.json": template(workspace("outer", "Enabled"), linked({"relativePath": "nested/c.json"}, "Enabled")),
            "nested/c.json": template(workspace("inner"), copied, nested),
        },
    )
    snapshot = read([tmp_path]).snapshot
    places = {}
    for finding in evaluate(bundle, snapshot).findings:
        if finding.policy == "AML-NET-001":
            assert finding.outcome == "fail"
            place = finding.location.fields["/properties/publicNetworkAccess"]
            assert finding.location.file == place.file
            places[finding.resource.rsplit("/", 1)[-1]] = (place.file, place.line, place.column)
    expected: dict[str, tuple[str, int, int]] = {}
    for path, names in zip(paths, (["outer"], ["inner", "copy", "inline"]), strict=True):
        lines = path.read_text(encoding="utf-8").splitlines()
        found = [(number, line) for number, line in enumerate(lines, 1) if "publicNetworkAccess" in line]
        for name, (number, line) in zip(names, found, strict=True):
            value = (str(path), number, line.index(": ") + 3)
            expected |= {f"copy{index}": value for index in (0, 1)} if name == "copy" else {name: value}
    assert places == expected


def test_faults_of_a_linked_template_name_its_line(tmp_path: Path) -> None:
    """They are problems of the document, at the deployment that links to it."""
    broken: JsonObject = {"type": "workspaces", "name": "x"}
    (main, other) = written(
        tmp_path,
        {
            "main.json": template(linked({"relativePath": "nested/c.json"})),
            "nested/c.json": template(workspace("inner", tagz={}), broken),
        },
    )
    error, warning = read([main]).problems
    at = next(number for number, line in enumerate(main.read_text().splitlines(), 1) if "templateLink" in line)
    for problem, sought in ((error, '"workspaces"'), (warning, "tagz")):
        lines = other.read_text(encoding="utf-8").splitlines()
        line = next(number for number, text in enumerate(lines, 1) if sought in text)
        place = f"in the linked template at `{other}:{line if sought == 'tagz' else line - 1}`"
        assert problem.place.startswith(f"{main}:{at}")
        assert place in problem.message
    assert "unknown key `tagz`" in warning.message
