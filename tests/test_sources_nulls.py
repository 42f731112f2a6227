"""Null is "not given": replacing what is absent by null changes no finding, in templates, plans and CLI files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policyeng import evaluate, load_snapshot
from policyeng.errors import InputError
from policyeng.models import JsonObject
from policyeng.parsing.json_pointer import keys_of
from policyeng.sources import azure_cli, read_inputs
from policyeng.sources.discovery import Named
from policyeng.sources.terraform.resolution import KINDS
from policyeng.verify.generators.examples import examples_of
from tests.carriers import SCHEMA, SCOPE, WRAPPINGS
from tests.drawn import AS_OF, BUNDLE
from tests.effort import effort
from tests.writers import WRITERS, arm_template, sayable

HERE = Path(__file__).resolve().parent
SAMPLES = HERE.parent / "samples" / "formats"
SAMPLE = json.loads((SAMPLES / "main.json").read_bytes())
MODULE = json.loads((HERE / "templates" / "verified_module.json").read_bytes())
LAW = settings(
    derandomize=True,
    deadline=None,
    max_examples=effort(60, 600),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@cache
def estates() -> tuple[list[JsonObject], ...]:
    """The resources of estates as `policyeng verify` draws them."""
    return tuple(example.document["resources"] for example in islice(examples_of(BUNDLE, 1), 120))


def read(document: JsonObject, **options: Any) -> object:
    """Everything that findings are made from: the resources, what is not known of them, or why there are none."""
    try:
        snapshot = load_snapshot(document, scope=SCOPE, **options)
    except InputError as error:
        return error.message.partition(" with the keys ")[0]  # which are listed with the one that is null
    return snapshot.resources, snapshot.unreadable, snapshot.carried, snapshot.incomplete


def findings(document: JsonObject, **options: Any) -> list[JsonObject]:
    """Every finding of the built-in policies on a document."""
    return list(evaluate(BUNDLE, load_snapshot(document, scope=SCOPE, **options), as_of=AS_OF).to_dict()["findings"])


# ---------------------------------------------------------------- ARM templates

#: Values that are null, in a template with `OPTIONS`.
NULLS = (
    None,
    "[null()]",
    "[json('null')]",
    "[tryGet(parameters('options'), 'missing')]",
    "[tryGet(parameters('options'), 'missing', 'deeper')]",
    "[if(true(), null(), 'x')]",
    "[if(false(), 'x', null())]",
    "[coalesce(null(), tryGet(parameters('options'), 'missing'))]",
    "[parameters('nothing')]",
    "[parameters('none')]",
    "[variables('nothing')]",
    "[variables('nothings')[0]]",
    "[first(map(createArray(1), lambda('entry', null())))]",
    "[own.nothing()]",
    "[reduce(createArray(1), null(), lambda('so far', 'entry', lambdaVariables('so far')))]",
)
OPTIONS: JsonObject = {
    "parameters": {
        "options": {"type": "object", "defaultValue": {"other": 1}},
        "nothing": {"type": "string", "nullable": True},
        "none": {"$ref": "#/definitions/none"},
    },
    "definitions": {"none": {"type": "string", "nullable": True}},
    "variables": {"nothing": "[null()]", "copy": [{"name": "nothings", "count": 1, "input": "[null()]"}]},
    "functions": [{"namespace": "own", "members": {"nothing": {"output": {"type": "string", "value": "[null()]"}}}}],
}
#: Entries of `parameters` of a deployment that give no value.
ENTRIES: tuple[object, ...] = (
    *({"value": value} for value in NULLS),
    *(None, "[null()]", "[createObject('value', null())]", "[json('{\"value\": null}')]"),
    {"value": None, "reference": None},
)


@st.composite
def templates(draw: st.DrawFn) -> JsonObject:
    """A template of an estate, or one of ours, whose parameters decide conditions, names and counts, too."""
    source = draw(st.integers(0, 9))
    if source > 1:
        estate, first = draw(st.sampled_from(estates())), draw(st.integers(0, 30))
        template: JsonObject = json.loads(arm_template.write(estate[first : first + 8] or estate[:8])["main.json"])
    else:
        template = deepcopy((SAMPLE, MODULE)[source])
    parameters, written = template["parameters"], template["resources"]
    for number, resource in enumerate(written.values() if isinstance(written, dict) else written):
        choice = draw(st.integers(0, 15))
        if choice & 1 and "condition" not in resource:
            parameters[f"deploy{number}"] = {"type": "bool", "defaultValue": choice != 15}
            resource["condition"] = f"[equals(parameters('deploy{number}'), true())]"
            if choice & 2:
                resource["condition"] = f"[parameters('deploy{number}')]"
        if choice & 4 and "copy" not in resource:
            parameters[f"name{number}"] = {"type": "string", "defaultValue": resource["name"]}
            resource["name"] = f"[parameters('name{number}')]"
            if choice & 8:
                parameters[f"count{number}"] = {"type": "int", "defaultValue": choice % 3}
                resource["copy"] = {"name": "each", "count": f"[parameters('count{number}')]"}
                resource["name"] = f"[concat(parameters('name{number}'), copyIndex())]"
        if choice & 3 == 2 and isinstance(resource.get("properties"), dict) and "copy" not in resource["properties"]:
            parameters[f"tag{number}"] = {"type": "string", **draw(st.sampled_from([{}, {"nullable": True}]))}
            resource["properties"]["description"] = f"[parameters('tag{number}')]"
    return template


def deployed(template: JsonObject, entries: Mapping[str, object], *, symbolic: bool) -> JsonObject:
    """A template that deploys a template with entries for its parameters."""
    properties = {
        "mode": "Incremental",
        "expressionEvaluationOptions": {"scope": "inner"},
        "parameters": dict(entries),
        "template": template,
    }
    body = {"type": "Microsoft.Resources/deployments", "apiVersion": "2022-09-01", "name": "inner"}
    deployment = {**body, "properties": properties}
    outer: JsonObject = {"$schema": SCHEMA, "contentVersion": "1.0.0.0", **deepcopy(OPTIONS)}
    version = {"languageVersion": "2.0"} if symbolic else {}
    return {**outer, **version, "resources": {"inner": deployment} if symbolic else [deployment]}


@LAW
@given(st.data())
def test_a_null_parameter_of_a_template_is_an_absent_one(data: st.DataObject) -> None:
    """On every level of deployments, in every form that a null has, and from outside."""
    absent = data.draw(templates(), label="template")
    null = deepcopy(absent)
    for _ in range(data.draw(st.integers(0, 3), label="levels")):
        names = data.draw(some(sorted(absent["parameters"])), label="names")
        entries = {name: data.draw(st.sampled_from(ENTRIES), label=name) for name in names}
        symbolic = data.draw(st.booleans(), label="symbolic")
        absent, null = deployed(absent, {}, symbolic=symbolic), deployed(null, entries, symbolic=symbolic)
    names = data.draw(some(sorted(absent["parameters"])), label="outermost")

    expected = read(absent)
    assert read(null) == expected
    assert read(null, parameters=dict.fromkeys(names)) == expected


def test_findings_of_our_templates_ignore_nulls() -> None:
    """The reading is alike, and so are the findings, of which there are many."""
    for template in (SAMPLE, MODULE):
        nulls = dict.fromkeys(template["parameters"])
        expected = findings(template)
        entries = {name: {"value": "[tryGet(parameters('options'), 'missing')]"} for name in nulls}

        assert len(expected) > 40
        assert findings(template, parameters=nulls) == expected
        assert read(deployed(template, entries, symbolic=True)) == read(deployed(template, {}, symbolic=True))


def test_a_module_that_passes_every_optional_setting_is_read_with_its_defaults() -> None:
    """As those of Azure Verified Modules do: what the caller does not give is null, and no resource is lost."""
    resources = load_snapshot(MODULE, scope=SCOPE).resources
    bodies = {one["id"].rpartition("/providers/")[2].partition("/")[2]: one for one in resources}
    settings = {name: one["properties"].get("properties") for name, one in bodies.items()}

    assert sorted(bodies) == [
        "privateEndpoints/pep-ws-0",
        "privateEndpoints/pep-ws-0/privateDnsZoneGroups/default",
        "workspaces/ws",
        "workspaces/ws/computes/cpu",
        "workspaces/ws/computes/gpu",
    ]
    connections = bodies["workspaces/ws"]["properties"].pop("privateEndpointConnections")
    assert [each["properties"]["privateEndpoint"] for each in connections] == [
        {"id": bodies["privateEndpoints/pep-ws-0"]["id"]}
    ]
    assert bodies["workspaces/ws"]["properties"] == {"hbiWorkspace": False, "publicNetworkAccess": "Disabled"}
    assert "tags" not in bodies["workspaces/ws"]
    scale = {"maxNodeCount": 4, "minNodeCount": 2, "nodeIdleTimeBeforeScaleDown": "PT2M"}
    size = {"vmSize": "Standard_NC24s_v3", "remoteLoginPortPublicAccess": "Enabled"}
    assert settings["workspaces/ws/computes/gpu"] == {**size, "vmPriority": "Dedicated", "scaleSettings": scale}
    assert settings["workspaces/ws/computes/cpu"] == {
        **size,
        "vmPriority": "LowPriority",
        "scaleSettings": {**scale, "minNodeCount": 0},
    }
    assert bodies["workspaces/ws/computes/gpu"]["location"] == "northeurope"


@pytest.mark.attack
@pytest.mark.parametrize("name", WRAPPINGS)
def test_a_null_parameter_is_an_absent_one_in_every_document_that_carries_a_template(name: str) -> None:
    """What a deployment, a stack, a plan or an answer of the service gives to its template, and what is inside."""
    inner = {**template(WORKSPACE), "parameters": {"access": {"type": "string", "defaultValue": "Disabled"}}}
    inner["resources"][0]["properties"] = {"publicNetworkAccess": "[parameters('access')]"}
    absent = WRAPPINGS[name](deployed(inner, {}, symbolic=False), SCOPE).document
    null = WRAPPINGS[name](deployed(inner, {"access": {"value": None}}, symbolic=False), SCOPE).document
    ((access, _),) = workspaces(absent)

    assert access == "Disabled"
    assert workspaces(null) == workspaces(absent)
    given = WRAPPINGS[name](inner, SCOPE).document
    assert workspaces(with_parameters(given, {"access": {"value": None}})) == workspaces(given)


def workspaces(document: JsonObject) -> list[tuple[object, object]]:
    """The network access of each workspace in a document, and what is not known of the workspace."""
    snapshot = load_snapshot(document, scope=SCOPE)
    found = [one for one in snapshot.resources if one["type"] == WORKSPACE["type"]]
    return [(one["properties"].get("publicNetworkAccess"), snapshot.unreadable[one["id"].lower()]) for one in found]


def with_parameters(value: Any, parameters: JsonObject) -> Any:
    """A document in which everything that has a template has parameters for it."""
    if isinstance(value, list):
        return [with_parameters(entry, parameters) for entry in value]
    if not isinstance(value, dict):
        return value
    given = {"parameters": parameters} if isinstance(value.get("template"), dict) else {}
    return {key: with_parameters(inner, parameters) for key, inner in value.items()} | given


PARAMETERS = "https://schema.management.azure.com/schemas/2019-04-01/deploymentParameters.json#"
SECRET = {"keyVault": {"id": "/subscriptions/s"}, "secretName": "s"}


@pytest.mark.parametrize(
    ("declared", "document", "parameters", "expected"),
    [
        ({"defaultValue": "Disabled"}, {"access": {"value": None}}, {}, "Disabled"),
        ({"defaultValue": "Disabled"}, {"ACCESS": {"value": None, "reference": None}}, {}, "Disabled"),
        ({"defaultValue": "Disabled"}, {"access": None}, {}, "Disabled"),
        ({"defaultValue": "Disabled"}, None, {"access": None}, "Disabled"),
        ({"defaultValue": "Disabled"}, {"access": {"value": "Enabled"}}, {"access": None}, "Enabled"),
        ({"defaultValue": "Disabled", "nullable": True}, {"access": {"value": None}}, {}, "Disabled"),
        ({"nullable": True}, {"access": {"value": None}}, {}, None),
        ({"defaultValue": "Disabled"}, {"access": {"value": None, "reference": SECRET}}, {}, "is in a key vault"),
        ({"defaultValue": "Disabled"}, {"access": {}}, {}, "is not in the parameter file"),
        ({}, {"access": {"value": None}}, {}, "the parameter `access` has no value; give `--parameters access=...`"),
        ({"defaultValue": None}, {}, {}, "the parameter `access` has no value; give `--parameters access=...`"),
        ({"defaultValue": "[null()]"}, {}, {}, "the parameter `access` has no value; give `--parameters access=...`"),
        ({"defaultValue": None, "nullable": True}, {}, {}, None),
    ],
)
def test_null_in_a_parameter_file_is_no_value(
    tmp_path: Path, declared: JsonObject, document: object, parameters: JsonObject, expected: object
) -> None:
    """The default applies; without one a nullable parameter is null, and any other is not known and states why."""
    resource = {**WORKSPACE, "properties": {"publicNetworkAccess": "[parameters('access')]"}}
    main = {**template(resource), "parameters": {"access": {"type": "string", **declared}}}
    (tmp_path / "main.json").write_text(json.dumps(main))
    (tmp_path / "main.parameters.json").write_text(json.dumps({"$schema": PARAMETERS, "parameters": document}))
    snapshot = load_snapshot(tmp_path / "main.json", scope=SCOPE, parameters=parameters)
    (body,), (reasons,) = snapshot.resources, snapshot.unreadable.values()

    if expected in (None, "Disabled", "Enabled"):
        assert body["properties"].get("publicNetworkAccess") == expected
        assert "/properties/publicNetworkAccess" not in reasons
    else:
        assert body["properties"] == {}
        assert str(expected) in reasons["/properties/publicNetworkAccess"]


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ({"value": "Disabled"}, "Disabled"),
        ({"value": "Disabled", "condition": None}, "Disabled"),
        ({"value": "Disabled", "condition": "[equals(1, 1)]"}, "Disabled"),
        ({"value": "Disabled", "condition": "[null()]"}, None),
        ({"value": "Disabled", "condition": False}, None),
        ({"value": "[null()]"}, None),
        ({"value": None}, None),
        ({}, None),
    ],
)
def test_an_output_that_is_null_or_not_there_is_not_known(output: JsonObject, expected: object) -> None:
    """To refer to it fails in ARM, so that nothing passes because of it."""
    inner = {**template(), "outputs": {"access": {"type": "string", **output}}}
    first = deployed(inner, {}, symbolic=False)["resources"][0]
    access = "[reference('inner').outputs.access.value]"
    snapshot = load_snapshot(template(first, {**WORKSPACE, "properties": {"publicNetworkAccess": access}}), scope=SCOPE)
    (body,), (reasons,) = snapshot.resources, snapshot.unreadable.values()
    assert body["properties"].get("publicNetworkAccess") == expected
    assert ("/properties/publicNetworkAccess" in reasons) is (expected is None)


WORKSPACE: JsonObject = {
    "type": "Microsoft.MachineLearningServices/workspaces",
    "apiVersion": "2024-10-01",
    "name": "ws",
    "properties": {"publicNetworkAccess": "Enabled"},
}


def template(*resources: JsonObject) -> JsonObject:
    """A template with nulls of every form."""
    return {"$schema": SCHEMA, "contentVersion": "1.0.0.0", **deepcopy(OPTIONS), "resources": list(resources)}


@pytest.mark.parametrize("null", NULLS)
@pytest.mark.parametrize("key", ["location", "tags", "sku", "identity", "kind", "dependsOn", "scope", "comments"])
def test_a_null_member_of_a_resource_is_an_absent_one(key: str, null: object) -> None:
    """ARM takes it as if it was not there: https://github.com/MicrosoftDocs/azure-docs/issues/47401."""
    assert read(template({**WORKSPACE, key: null})) == read(template(WORKSPACE))
    properties = {**WORKSPACE["properties"], key: null, "managedNetwork": {"isolationMode": null}}
    expected = {**WORKSPACE["properties"], "managedNetwork": {}}
    assert read(template({**WORKSPACE, "properties": properties})) == read(
        template({**WORKSPACE, "properties": expected})
    )


def errors(document: JsonObject) -> tuple[list[str], list[str]]:
    """The errors of reading a template, and the names of the resources that are read all the same."""
    inputs = read_inputs([Named("main.json", None, content=json.dumps(document).encode())])
    assert {problem.level for problem in inputs.problems} <= {"error"}
    return [problem.message for problem in inputs.problems], [one["name"] for one in inputs.snapshot.resources]


@pytest.mark.parametrize("null", NULLS)
def test_what_cannot_be_null_is_refused(null: object) -> None:
    """Nothing is dropped without a word, and what else is in the template is read."""
    where = "/resources/0"
    other = {**WORKSPACE, "name": "other"}
    kind = "a resource without a `type` such as `Microsoft.MachineLearningServices/workspaces`"
    for broken, expected in (
        ({"name": null}, f"{where}: a resource without a `name`; correct its `type` and `name`"),
        ({"type": null}, f"{where}: {kind}; correct its `type` and `name`"),
        (
            {"copy": {"name": "c", "count": null}},
            f"{where}/copy: the `count` of a copy loop is null; it should be 0 to 800; correct its `count`",
        ),
    ):
        assert errors(template({**WORKSPACE, **broken}, other)) == ([expected], ["other"])


@pytest.mark.attack
@pytest.mark.parametrize("null", NULLS)
def test_a_condition_that_is_null_never_drops_a_resource(null: object) -> None:
    """What is written as null is not there; ARM refuses an expression that makes null, and the resource is judged."""
    refusal = "/resources/0/condition: the `condition` is null where true or false should be; make it true or false"
    assert errors(template({**WORKSPACE, "condition": null})) == ([] if null is None else [refusal], ["ws"])


@pytest.mark.attack
@pytest.mark.parametrize("null", NULLS)
def test_what_depends_on_null_is_not_known(null: object) -> None:
    """The number of entries of a list, a name in an object, an id, a text, and what `union` does with null."""
    argument = "null()" if null is None else str(null)[1:-1]
    properties = {
        "copy": [{"name": "ipAllowlist", "count": null, "input": "1.2.3.4"}],
        "keyVault": f"[resourceId('Microsoft.KeyVault/vaults', {argument})]",
        "storageAccount": f"[extensionResourceId({argument}, 'Microsoft.Storage/storageAccounts', 'st')]",
        "description": f"[format('a{{0}}', {argument})]",
        "friendlyName": f"[concat('a', {argument})]",
        "imageBuildCompute": f"[string({argument})]",
        "publicNetworkAccess": f"[union(createObject('a', 'Disabled'), createObject('a', {argument})).a]",
        "hbiWorkspace": f"[and(true(), {argument})]",
        "v1LegacyMode": f"[if({argument}, true(), false())]",
        "primaryUserAssignedIdentity": f"[contains({argument}, 'a')]",
    }
    identity = {"type": "UserAssigned", "userAssignedIdentities": {f"[{argument}]": {}}}
    snapshot = load_snapshot(template({**WORKSPACE, "identity": identity, "properties": properties}), scope=SCOPE)
    (body,), (reasons,) = snapshot.resources, snapshot.unreadable.values()

    assert body.get("identity") == {"type": "UserAssigned"}
    assert body["properties"] == {}
    assert "/identity/userAssignedIdentities" in reasons
    assert {f"/properties/{name}" for name in properties if name != "copy"} <= reasons.keys()
    assert "the `count` of a copy loop is null" in reasons["/properties/ipAllowlist"]


# ---------------------------------------------------------------- plans and files of the Azure CLI

#: The keys and indexes that lead to a member.
Place = tuple[str | int, ...]


def members(value: object, above: Place = ()) -> Iterator[Place]:
    """Every member of every object in a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in inner:
        if isinstance(key, str):
            yield (*above, key)
        yield from members(entry, (*above, key))


def without_member(value: Any, path: Place) -> Any:
    """A value without one of its members."""
    return changed(value, path, None, absent=True)


def changed(value: Any, path: Place, to: object, *, absent: bool = False) -> Any:
    """A value with another member, or without it."""
    key, *rest = path
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    if rest:
        copy[key] = changed(copy[key], tuple(rest), to, absent=absent)
    elif absent:
        del copy[key]
    else:
        copy[key] = to
    return copy


def some(entries: Sequence[Any]) -> st.SearchStrategy[list[Any]]:
    """Some of several entries; none if there are none."""
    return st.lists(st.sampled_from(entries), max_size=6, unique=True) if entries else st.just([])


def missing(value: object, pointers: Iterable[str]) -> Iterator[Place]:
    """The members that an object does not have of those that a table reads, where it has what they are in."""
    for pointer in pointers:
        path: list[str | int] = []
        here = value
        for key in keys_of(pointer):
            if isinstance(here, list) and key.isdigit() and int(key) < len(here):
                path, here = [*path, int(key)], here[int(key)]
            elif isinstance(here, dict):
                path.append(key)
                if key not in here:
                    yield tuple(path)
                    break
                here = here[key]
            else:
                break


@cache
def cli_documents() -> tuple[JsonObject, ...]:
    """The files of our samples, and those of estates."""
    ours = [yaml.safe_load(path.read_bytes()) for path in sorted((SAMPLES / "azure-cli").iterdir())]
    for estate in estates()[:20]:
        for writer in WRITERS["azure-cli"]:
            written = writer.write([one for one in estate if sayable(writer, one)])
            ours += [yaml.safe_load(content) for content in written.values()]
    return tuple(ours)


@LAW
@given(st.data())
def test_a_null_key_of_a_cli_file_is_an_absent_one(data: st.DataObject) -> None:
    """The CLI refuses most nulls ("Field may not be null."), and takes others, such as of a tag, for nothing."""
    document = data.draw(st.sampled_from(cli_documents()), label="document")
    kind = azure_cli.kind_of_file(document)
    assert kind is not None
    rows = kind.shape.rows if kind.shape else ()
    known = [row.source for row in rows] + [f"{above}/{key}" for above, keys in kind.known.items() for key in keys]
    for path in data.draw(some(sorted(set(missing(document, known)), key=str)), label="absent"):
        assert read(changed(document, path, None)) == read(document), path
    for path in data.draw(some(list(members(document))), label="stated"):
        assert read(changed(document, path, None)) == read(without_member(document, path)), path


@cache
def plans() -> tuple[JsonObject, ...]:
    """The plan of our samples, and those of estates, as plans and as the states after them."""
    (terraform,) = WRITERS["terraform"]
    documents = [json.loads((SAMPLES / "plan.json").read_bytes())]
    for estate in estates()[:40]:
        resources = [one for one in estate if sayable(terraform, one)]
        documents += [json.loads(terraform.write(resources[at : at + 6])["plan.json"]) for at in (0, 6)]
    states = [{"format_version": "1.0", "values": plan["planned_values"]} for plan in documents]
    return (*documents, *states)


def planned(document: JsonObject) -> Iterator[tuple[Place, Place]]:
    """Where the resources of a plan or a state have their attributes, and the plan has what it changes."""
    key = "planned_values" if "planned_values" in document else "values"
    changes = [entry["address"] for entry in document.get("resource_changes", ())]
    for number, entry in enumerate(document[key]["root_module"].get("resources", ())):
        place = (key, "root_module", "resources", number, "values")
        known = entry["address"] in changes
        yield place, ("resource_changes", changes.index(entry["address"]), "change", "after") if known else place


@LAW
@given(st.data())
def test_a_null_argument_of_terraform_is_an_absent_one(data: st.DataObject) -> None:
    """A plan has null for what is not set: "Terraform behaves as though you had completely omitted it"."""
    document = data.draw(st.sampled_from(plans()), label="document")
    places = list(planned(document))
    for place, change in data.draw(some(places), label="resources"):
        *_, number, last = place
        resource = document[place[0]]["root_module"]["resources"][number]
        kind = KINDS.get(resource["type"])
        known = [row.source for row in kind.table] if kind else ["/location", "/tags", "/identity", "/body", "/output"]
        assert last == "values"
        for path in data.draw(some(sorted(set(missing(resource["values"], known)), key=str)), label="absent"):
            null = changed(changed(document, (*place, *path), None), (*change, *path), None)
            assert read(null) == read(document), path
        for path in data.draw(some(list(members(resource["values"]))), label="stated"):
            null = changed(changed(document, (*place, *path), None), (*change, *path), None)
            less = without_member(document, (*place, *path))
            less = without_member(less, (*change, *path)) if change != place else less
            assert read(null) == read(less), path
