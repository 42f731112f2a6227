"""Azure Policy documents in evaluations: forms, initiatives, assignments, exemptions, effects, and every door."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

import policyeng
from policyeng.admission import AdmissionOptions, AdmissionSession, changes_of, decided_wholly
from policyeng.bundle import Bundle, load_bundle
from policyeng.bundle.assembling import pack_bundle, unpack_bundle
from policyeng.errors import BundleError
from policyeng.models import Evaluation, Finding, Outcome, Severity
from tests.azure_policies import (
    COMPUTE,
    DEFINITIONS,
    GROUP,
    ID,
    WORKSPACE,
    assignment,
    definition,
    diagnostics,
    initiative,
    member,
    of_type,
    public_access,
    setting,
    snapshot,
    workspace,
)
from tests.command import policyeng as run

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
COVERED = ["Microsoft.Insights/diagnosticSettings at /subscriptions/s1"]


def written(folder: Path, *documents: Any) -> Path:
    """Write documents as files of a new folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, document in enumerate(documents):
        (folder / f"d{number}.json").write_bytes(orjson.dumps(document))
    return folder


def bundle_of(folder: Path, *documents: Any) -> Bundle:
    """Load documents as policies."""
    return load_bundle(azure_policy=[written(folder / "policies", *documents)])


def evaluated(folder: Path, documents: Iterable[Any], state: Any, **options: Any) -> Evaluation:
    """Evaluate a snapshot with documents."""
    (folder / "snapshot.json").write_bytes(orjson.dumps(state))
    bundle = bundle_of(folder, *documents)
    return policyeng.evaluate(bundle, policyeng.load_snapshot(folder / "snapshot.json"), as_of=AS_OF, **options)


def outcomes(evaluation: Evaluation) -> dict[str, str]:
    """Return the outcomes by policy."""
    return {finding.policy: str(finding.outcome) for finding in evaluation.findings}


def only(evaluation: Evaluation) -> Finding:
    """Return the only finding."""
    [finding] = evaluation.findings
    return finding


def said(evaluation: Evaluation) -> str:
    """Return the messages of an evaluation."""
    return "\n".join(problem.message for problem in evaluation.problems)


OPEN = snapshot(workspace(publicNetworkAccess="Enabled"))
CLOSED = snapshot(workspace(publicNetworkAccess="disabled"))


def test_a_definition_is_a_policy(tmp_path: Path) -> None:
    """It fails with the field that decided, and passes where it does not hold."""
    finding = only(evaluated(tmp_path, [public_access(default="Deny")], OPEN))
    assert (finding.policy, finding.outcome, finding.severity) == ("public", Outcome.FAIL, Severity.HIGH)
    [denial] = finding.denials
    assert (denial.msg, denial.path) == ("Title of public", "/properties/publicNetworkAccess")
    assert (denial.actual, denial.expected) == ("Enabled", "Disabled")
    assert outcomes(evaluated(tmp_path, [public_access()], CLOSED)) == {"public": "pass"}
    assert only(evaluated(tmp_path, [public_access()], snapshot(workspace()))).denials[0].actual is None


_BODY = public_access()["properties"]
_FORMS: dict[str, Any] = {
    "the resource of ARM": public_access(),
    "the flat output of az": {"name": "public", "id": f"{DEFINITIONS}/public", "policyType": "Custom", **_BODY},
    "a list of az": [{"name": "public", **_BODY}],
    "a list of ARM": {"value": [public_access()]},
    "an id without a name": {"id": f"{DEFINITIONS}/public", "properties": _BODY},
    "a template": {
        "$schema": "https://schema.management.azure.com/schemas/2019-08-01/managementGroupDeploymentTemplate.json#",
        "resources": [
            {
                "type": "Microsoft.Authorization/policyDefinitions",
                "name": "public",
                "properties": orjson.loads(orjson.dumps(_BODY).replace(b'"[parameters', b'"[[parameters')),
            }
        ],
    },
    "a template in a template with symbolic names": {
        "$schema": "https://schema.management.azure.com/schemas/2019-08-01/deploymentTemplate.json#",
        "resources": {
            "nested": {
                "type": "Microsoft.Resources/deployments",
                "properties": {"template": {"resources": [public_access(effect="Audit")]}},
            }
        },
    },
}


@pytest.mark.parametrize("form", _FORMS)
def test_every_form_is_read(form: str, tmp_path: Path) -> None:
    """A definition means the same in each form."""
    assert outcomes(evaluated(tmp_path, [_FORMS[form]], OPEN)) == {"public": "fail"}


def test_files_of_libraries_are_read(tmp_path: Path) -> None:
    """Names of landing-zone libraries and comments of EPAC are no obstacle, and other JSON is passed over."""
    folder = written(tmp_path / "p", {"archetypes": []})
    (folder / "public.alz_policy_definition.json").write_bytes(b"\xef\xbb\xbf" + orjson.dumps(public_access("alz")))
    text = orjson.dumps(public_access("epac"), option=orjson.OPT_INDENT_2).decode()
    (folder / "epac.jsonc").write_text(f'// a comment, "[\n{text[:-2]}, /* the end */\n}}', encoding="utf-8")
    assert {policy.id for policy in load_bundle(azure_policy=[folder]).policies} == {"alz", "epac"}
    rule = public_access()["properties"]["policyRule"] | {"then": {"effect": "audit"}}
    (tmp_path / "rule.json").write_bytes(orjson.dumps(rule))
    assert [policy.id for policy in load_bundle(azure_policy=[tmp_path / "rule.json"]).policies] == ["rule"]


def test_what_a_template_computes_is_not_guessed(tmp_path: Path) -> None:
    """A rule with an expression of the template is an error finding."""
    form = orjson.loads(orjson.dumps(_FORMS["a template"]))
    rule = form["resources"][0]["properties"]["policyRule"]
    rule["then"]["effect"] = "[variables('effect')]"
    finding = only(evaluated(tmp_path, [form], OPEN))
    assert finding.outcome is Outcome.ERROR
    assert "the deployment template computes `[variables('effect')]`" in finding.unknowns[0].msg


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "not valid JSON"),
        (b'{"a": 1}', "there is no definition, initiative or assignment"),
        (b'{"type": "Microsoft.Authorization/policyDefinitions", "name": "x"}', "has no `policyRule`"),
    ],
)
def test_other_files_are_refused(content: bytes, message: str, tmp_path: Path) -> None:
    """The message says what is missing."""
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(BundleError) as caught:
        load_bundle(azure_policy=[tmp_path / "x.json"])
    assert message in str(caught.value)
    with pytest.raises(BundleError, match="there is no JSON file"):
        load_bundle(azure_policy=[written(tmp_path / "empty")])
    with pytest.raises(BundleError, match="there is no JSON file"):
        load_bundle(azure_policy=[tmp_path / "none.json"])


def test_initiatives_hand_on_parameters_and_groups(tmp_path: Path) -> None:
    """Members take expressions of the initiative's parameters; groups are controls."""
    parameters = {"access": {"type": "String", "defaultValue": "Deny"}}
    whole = initiative(
        "lz",
        member("public", "first", ("NS-2",), effect="[parameters('access')]"),
        member("public", "second", effect="Disabled"),
        parameters=parameters,
    )
    evaluation = evaluated(tmp_path, [public_access(), whole], OPEN)
    finding = only(evaluation)
    assert (finding.policy, finding.severity, finding.controls) == ("public@lz/first", Severity.HIGH, ("lz:NS-2",))
    assert any("1 Azure policies are disabled by their parameters" in each.message for each in evaluation.problems)


def test_members_that_are_missing_are_errors(tmp_path: Path) -> None:
    """What cannot be evaluated is named, and the run does not end with 0."""
    evaluation = evaluated(tmp_path, [public_access(), initiative("lz", member("public"), member("other"))], CLOSED)
    assert outcomes(evaluation) == {"public": "pass"}
    assert evaluation.exit_code == 2
    assert any(
        "1 definitions of the initiative `lz` are not in the files (other)" in each.message
        for each in evaluation.problems
    )
    evaluation = evaluated(tmp_path, [public_access(), assignment("a", "public"), assignment("b", "none")], CLOSED)
    assert any(
        "the definition `none` of the assignment `b` is not in the files" in each.message
        for each in evaluation.problems
    )


def test_assignments_decide_what_applies_where(tmp_path: Path) -> None:
    """Scope, exclusions, overrides, messages, versions and enforcement are Azure's."""
    old = public_access(version="1.0.0", default="Audit")
    new = public_access(version="2.1.0", default="Deny")
    documents = [old, new, initiative("lz", member("public", "ref"))]

    def finding(**properties: Any) -> Finding | None:
        scope = properties.pop("scope", "/subscriptions/s1")
        target = properties.pop("target", "public")
        evaluation = evaluated(tmp_path, [*documents, assignment("a", target, scope, **properties)], OPEN)
        return next(iter(evaluation.findings), None)

    found = finding()
    assert found is not None
    assert found.severity is Severity.HIGH  # the latest version
    found = finding(definitionVersion="1.*.*")
    assert found is not None
    assert found.severity is Severity.MEDIUM
    assert finding(scope=f"{GROUP}2") is None
    assert finding(scope="/providers/Microsoft.Management/managementGroups/mg") is not None
    assert finding(notScopes=[GROUP.upper()]) is None
    assert finding(notScopes=[f"{GROUP}/providers/{WORKSPACE}/other"]) is not None
    assert finding(parameters={"EFFECT": {"value": "Disabled"}}) is None
    override = {"kind": "policyEffect", "value": "Disabled"}
    assert finding(overrides=[override]) is None
    selectors = [{"kind": "policyDefinitionReferenceId", "in": ["ref"]}]
    assert finding(target="set:lz", overrides=[{**override, "selectors": selectors}]) is None
    others = [{"kind": "policyDefinitionReferenceId", "in": ["other"]}]
    assert finding(target="set:lz", overrides=[{**override, "selectors": others}]) is not None
    messages = [
        {"message": "Access {enforcementMode} be off"},
        {"message": "Off!", "policyDefinitionReferenceId": "REF"},
    ]
    found = finding(nonComplianceMessages=messages, enforcementMode="DoNotEnforce")
    assert found is not None
    assert found.denials[0].msg == "Access should be off"
    found = finding(target="set:lz", nonComplianceMessages=messages)
    assert found is not None
    assert found.denials[0].msg == "Off!"


def test_what_of_an_assignment_is_not_applied_is_said(tmp_path: Path) -> None:
    """Resource selectors, and that Azure does not enforce it."""
    given = assignment(
        "a", "public", enforcementMode="DoNotEnforce", resourceSelectors=[{"name": "s", "selectors": []}]
    )
    messages = [problem.message for problem in evaluated(tmp_path, [public_access(), given], CLOSED).problems]
    assert any("`a` has resource selectors, which are not applied" in message for message in messages)
    assert any("`a` is not enforced in Azure, and evaluated all the same" in message for message in messages)


def test_exemptions_of_azure_mark_failures(tmp_path: Path) -> None:
    """They are of an assignment and a scope, and end."""

    def marked(**properties: Any) -> str:
        body = {"policyAssignmentId": "/subscriptions/s1/providers/Microsoft.Authorization/policyAssignments/A"}
        body |= {"exemptionCategory": "Mitigated", "description": "behind a firewall", **properties}
        exemption = {
            "id": f"{GROUP}/providers/Microsoft.Authorization/policyExemptions/e",
            "name": "e",
            "properties": body,
        }
        documents = [public_access(), initiative("lz", member("public", "ref")), assignment("a", "set:lz"), exemption]
        mark = only(evaluated(tmp_path, documents, OPEN)).exemption
        return f"{mark.id} {mark.category} {mark.reason}" if mark else ""

    assert marked() == "e mitigated behind a firewall"
    assert marked(expiresOn="2026-06-01T00:00:01Z") != ""
    assert marked(expiresOn="2026-06-01T00:00:00Z") == ""
    assert marked(policyDefinitionReferenceIds=["REF"]) != ""
    assert marked(policyDefinitionReferenceIds=["other"]) == ""
    assert marked(policyAssignmentId="x/other") == ""
    exemption = {"name": "e", "properties": {"policyAssignmentId": "x/other"}}
    evaluation = evaluated(tmp_path, [public_access(), assignment("a", "public"), exemption], OPEN)
    assert "the exemption `e` is not applied: its assignment `other` is not in the files" in said(evaluation)


def test_related_resources_are_looked_for_under_coverage(tmp_path: Path) -> None:
    """One that meets the condition passes; none fails if all were read, and is not known otherwise."""

    def outcome(*others: Any, covers: list[str] | None = None, **details: Any) -> str:
        state = snapshot(workspace(), *others) | ({"covers": covers} if covers is not None else {})
        return str(only(evaluated(tmp_path, [diagnostics(**details)], state)).outcome)

    assert outcome(setting(False, True)) == "pass"
    assert outcome() == "unknown"
    assert outcome(covers=COVERED) == "fail"
    assert outcome(setting(False), covers=COVERED) == "fail"
    assert outcome(setting(True, of=f"{ID}2"), covers=COVERED) == "fail"
    assert outcome(setting(True), covers=COVERED, name="D") == "pass"
    assert outcome(setting(True), covers=COVERED, name="[concat(field('name'), '-d')]") == "fail"
    assert outcome(setting(True, name="w-d"), covers=COVERED, name="[concat(field('name'), '-d')]") == "pass"
    own = {"field": "name", "equals": "[concat('d', '-', field('name'))]"}
    assert outcome(setting(True, name="d-w"), covers=COVERED, existenceCondition=own) == "pass"


def test_inline_connections_are_related_resources(tmp_path: Path) -> None:
    """A workspace states its private endpoint connections, which Azure lists as children."""
    status = f"{WORKSPACE}/privateEndpointConnections/privateLinkServiceConnectionState.status"
    details = {
        "type": f"{WORKSPACE}/privateEndpointConnections",
        "existenceCondition": {"field": status, "equals": "Approved"},
    }
    given = definition("link", of_type(WORKSPACE), default="AuditIfNotExists", details=details)
    approved = {"name": "c", "properties": {"privateLinkServiceConnectionState": {"status": "Approved"}}}
    assert (
        only(evaluated(tmp_path, [given], snapshot(workspace(privateEndpointConnections=[approved])))).outcome == "pass"
    )
    assert only(evaluated(tmp_path, [given], snapshot(workspace(privateEndpointConnections=[])))).outcome == "fail"


@pytest.mark.parametrize(
    ("effect", "expected"),
    [
        ("Audit", "fail"),
        ("deny", "fail"),
        ("Modify", "fail"),
        ("append", "fail"),
        ("Disabled", None),
        ("DenyAction", "unknown"),
        ("Manual", "unknown"),
        ("[parameters('none')]", "error"),
        ("Audited", "error"),
    ],
)
def test_effects(effect: str, expected: str | None, tmp_path: Path) -> None:
    """Each effect has its outcome, and one that does not exist is an error."""
    evaluation = evaluated(tmp_path, [public_access(effect=effect)], OPEN)
    assert [str(finding.outcome) for finding in evaluation.findings] == ([expected] if expected else [])


def test_a_parameter_without_a_value_is_unknown_and_can_be_configured(tmp_path: Path) -> None:
    """The configuration sets it by the name that the definition declares."""
    condition = of_type(WORKSPACE, {"field": "location", "notIn": "[parameters('allowed')]"})
    given = definition("places", condition, parameters={"allowed": {"type": "Array"}})
    finding = only(evaluated(tmp_path, [given], OPEN))
    assert (finding.outcome, finding.unknowns[0].msg) == ("unknown", "the parameter `allowed` has no value")
    for allowed, expected in ((["West Europe"], "pass"), (["eastus"], "fail")):
        evaluation = evaluated(tmp_path, [given], OPEN, parameters={"places": {"allowed": allowed}})
        assert only(evaluation).outcome == expected


def test_modes_that_configure_a_service_are_named(tmp_path: Path) -> None:
    """They are listed, and an error only if nothing else is evaluated."""
    service = public_access("service", mode="Microsoft.MachineLearningServices.Data")
    evaluation = evaluated(tmp_path, [service, public_access()], CLOSED)
    assert outcomes(evaluation) == {"public": "pass"}
    assert evaluation.exit_code == 0
    assert any("1 Azure policies configure the service" in each.message for each in evaluation.problems)
    with pytest.raises(BundleError, match="no policy was found"):
        bundle_of(tmp_path / "alone", service)


def test_definitions_without_a_type_are_of_every_resource(tmp_path: Path) -> None:
    """With the mode Indexed, of those with a location; workloads are no resources."""
    given = definition("tagged", {"field": "tags[owner]", "exists": False})
    compute = {"id": f"{ID}/computes/c", "name": "c", "type": COMPUTE, "location": "x", "tags": {"Owner": "a"}}
    lock = {
        "id": f"{ID}/providers/Microsoft.Authorization/locks/l",
        "name": "l",
        "type": "Microsoft.Authorization/locks",
    }
    state = snapshot(workspace(), {**compute, "properties": {"computeType": "AmlCompute"}}, lock)
    evaluation = evaluated(tmp_path, [given], state)
    assert {finding.resource.rpartition("/")[2]: str(finding.outcome) for finding in evaluation.findings} == {
        "w": "fail",
        "c": "pass",
    }
    given["properties"]["mode"] = "All"
    assert len(evaluated(tmp_path, [given], state).findings) == 3


def test_models_of_deployments_have_their_registry(tmp_path: Path) -> None:
    """The mode of version 2 is about online and batch deployments; who publishes a model is not known."""
    kind = "Microsoft.MachineLearningServices.v2.Data/workspaces/deployments"
    condition = of_type(kind, {"field": f"{kind}/model.registryName", "notIn": ["azureml"]})
    mode = "Microsoft.MachineLearningServices.v2.Data"
    given = definition("registry", condition, default="Deny", mode=mode)
    endpoint = f"{ID}/onlineEndpoints/e"
    model = "azureml://registries/other/models/m/versions/1"
    deployment = {
        "id": f"{endpoint}/deployments/d",
        "name": "d",
        "type": f"{WORKSPACE}/onlineEndpoints/deployments",
        "properties": {"model": model, "endpointComputeType": "Managed"},
    }
    assert only(evaluated(tmp_path, [given], snapshot(workspace(), deployment))).outcome == "fail"
    condition["allOf"][1] = {"field": f"{kind}/model.publisher", "equals": "x"}
    assert only(evaluated(tmp_path, [given], snapshot(workspace(), deployment))).outcome == "unknown"


def test_refusals_are_errors_of_the_resources_concerned(tmp_path: Path) -> None:
    """One names the alias with the nearest; resources of other types have no finding."""
    field = {"field": f"{WORKSPACE}/publicNetworkAcces", "equals": "x"}
    finding = only(evaluated(tmp_path, [definition("typo", of_type(WORKSPACE, field))], OPEN))
    assert finding.outcome is Outcome.ERROR
    assert f"did you mean `{WORKSPACE}/publicNetworkAccess`, at /if/allOf/1/field" in finding.unknowns[0].msg
    evaluation = evaluated(tmp_path, [definition("typo", of_type(COMPUTE, field)), public_access()], CLOSED)
    assert outcomes(evaluation) == {"public": "pass"}


def test_modify_has_a_patch_if_it_is_known(tmp_path: Path) -> None:
    """Operations whose values parameters decide are the remedy; one that reads the resource or the request is not."""

    def patch(**operation: Any) -> Any:
        steps = [
            {"operation": "addOrReplace", "field": f"{WORKSPACE}/publicNetworkAccess", "value": "Disabled"} | operation
        ]
        given = public_access(default="Modify", details={"operations": steps})
        remediation = bundle_of(tmp_path, given).policies[0].header.remediation
        return remediation and remediation.patches[0].patch[0]

    assert patch() == {"op": "add", "path": "/properties/publicNetworkAccess", "value": "Disabled"}
    assert patch(operation="remove") == {"op": "remove", "path": "/properties/publicNetworkAccess"}
    assert patch(field="[concat('tags[', parameters('effect'), ']')]", value="x") == {
        "op": "add",
        "path": "/tags/Modify",
        "value": "x",
    }
    assert patch(condition="[greaterOrEquals(requestContext().apiVersion, '2021-10-01')]") is None
    assert patch(value="[field('name')]") is None


def test_the_bundle_is_carried_whole(tmp_path: Path) -> None:
    """The digest is of every file, and the packed form gives the same findings."""
    bundle = bundle_of(tmp_path, public_access(), assignment("a", "public"))
    assert bundle.digest != bundle_of(tmp_path / "other", public_access()).digest
    carried = unpack_bundle(pack_bundle(bundle))
    assert (carried.digest, [policy.id for policy in carried.policies]) == (bundle.digest, ["public"])
    (tmp_path / "s.json").write_bytes(orjson.dumps(OPEN))
    state = policyeng.load_snapshot(tmp_path / "s.json")
    assert policyeng.evaluate(carried, state, as_of=AS_OF) == policyeng.evaluate(bundle, state, as_of=AS_OF)


def test_doors_decide_alike(tmp_path: Path) -> None:
    """The command, a configuration, the decision and Python take the same definitions."""
    path = str(written(tmp_path / "p", public_access(default="Deny")) / "d0.json")
    for name, state in (("open", OPEN), ("closed", CLOSED)):
        (tmp_path / f"{name}.json").write_bytes(orjson.dumps(state))
    ran = run("check", "open.json", "--azure-policy", path, "--format", "json", folder=tmp_path)
    assert ran.returncode == 1, ran.stderr
    [finding] = orjson.loads(ran.stdout)["findings"]
    assert (finding["policy"], finding["outcome"]) == ("public", "fail")
    ran = run("check", "closed.json", "--azure-policy", path, folder=tmp_path)
    assert ran.returncode == 0, ran.stderr + ran.stdout
    resource = orjson.dumps(workspace(publicNetworkAccess="Enabled"))
    (tmp_path / "change.json").write_bytes(resource)
    ran = run("admit", "change.json", "--snapshot", "closed.json", "--azure-policy", path, folder=tmp_path)
    assert ran.returncode == 1, ran.stderr + ran.stdout
    # Next to a policy that is named, and in a configuration, both are evaluated.
    ran = run(
        "check", "open.json", "--azure-policy", path, "--policy", "policyeng", "--format", "json", folder=tmp_path
    )
    policies = {finding["policy"] for finding in orjson.loads(ran.stdout)["findings"]}
    assert {"public", "AML-NET-001"} <= policies
    (tmp_path / "policyeng.toml").write_text('azure_policy = ["p"]\n', encoding="utf-8")
    ran = run("check", "open.json", "--format", "json", folder=tmp_path)
    assert {"public", "AML-NET-001"} <= {finding["policy"] for finding in orjson.loads(ran.stdout)["findings"]}
    ran = run("check", "open.json", "--select", "azure-policy", "--format", "json", folder=tmp_path)
    assert {finding["policy"] for finding in orjson.loads(ran.stdout)["findings"]} == {"public"}
    (tmp_path / "policyeng.toml").write_text('aliases = "p/d0.json"\n', encoding="utf-8")
    ran = run("check", "open.json", folder=tmp_path)
    assert ran.returncode == 3
    assert "`aliases` without Azure policies" in ran.stderr


def test_coverage_says_what_is_evaluated(tmp_path: Path) -> None:
    """It lists each policy with its status and the reason, as text and JSON."""
    typo = definition(
        "typo", of_type(WORKSPACE, {"field": f"{WORKSPACE}/x", "equals": "[parameters('a')]"}), parameters={"a": {}}
    )
    service = public_access("service", mode="Microsoft.Kubernetes.Data")
    written(tmp_path / "p", public_access(), public_access("off", default="Disabled"), typo, service)
    ran = run("azure-policy", "coverage", "p", folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "evaluated  Audit              Title of public  [public]" in ran.stdout
    assert "disabled   Disabled           Title of off  [off]" in ran.stdout
    assert "without a value: a" in ran.stdout
    assert "4 policies: 1 evaluated, 1 disabled, 2 refused" in ran.stdout
    ran = run("azure-policy", "coverage", "p", "--format", "json", folder=tmp_path)
    rows = {row["id"]: row for row in orjson.loads(ran.stdout)["policies"]}
    assert rows["typo"]["refusalKind"] == "unknown alias"
    assert (
        rows["service"]["refusal"]
        == "the mode `Microsoft.Kubernetes.Data` configures the service, and publishes no condition"
    )
    assert rows["public"]["types"] == [WORKSPACE]
    aliases = [{"name": f"{WORKSPACE}/x", "defaultPath": "properties.x"}]
    kinds = [{"resourceType": "workspaces", "aliases": aliases}]
    provider = [{"namespace": "Microsoft.MachineLearningServices", "resourceTypes": kinds}]
    (tmp_path / "aliases.json").write_bytes(orjson.dumps(provider))
    ran = run("azure-policy", "coverage", "p", "--aliases", "aliases.json", folder=tmp_path)
    assert "4 policies: 2 evaluated, 1 disabled, 1 refused" in ran.stdout


def test_a_session_decides_as_a_whole_evaluation(tmp_path: Path) -> None:
    """What the recorded reads leave out changes nothing: related resources and resources of any type are among them."""
    tagged = definition("tagged", {"field": "tags[owner]", "exists": False}, default="Deny")
    bundle = bundle_of(tmp_path, public_access(default="Deny"), diagnostics(), tagged)
    (tmp_path / "s.json").write_bytes(orjson.dumps(snapshot(workspace(), setting(True)) | {"covers": COVERED}))
    state, options = policyeng.load_snapshot(tmp_path / "s.json"), AdmissionOptions(AS_OF)
    compute = {"id": f"{ID}/computes/c", "name": "c", "type": COMPUTE, "location": "x"}
    changes: list[Any] = [
        workspace(publicNetworkAccess="Disabled") | {"tags": {"owner": "a"}},
        workspace(publicNetworkAccess="Enabled"),
        setting(False),
        setting(True)["id"],
        compute | {"properties": {"computeType": "AmlCompute"}},
        compute | {"properties": {"computeType": "AmlCompute"}, "tags": {"owner": "a"}},
    ]
    session = AdmissionSession(bundle, state)
    decisions = [session.decide(change, options) for change in changes]
    whole = [decided_wholly(bundle, state, changes_of(change), options) for change in changes]
    assert [decision.model_dump_json() for decision in decisions] == [each.model_dump_json() for each in whole]
    assert [decision.allowed for decision in decisions] == [True, False, False, False, False, True]


def test_trees_of_epac_are_assignments(tmp_path: Path) -> None:
    """A node hands its scope and parameters on to those below it."""
    tree = {
        "nodeName": "/root",
        "scope": {"dev": ["/subscriptions/s1"], "prod": ["/subscriptions/s2"]},
        "parameters": {"effect": "Deny"},
        "children": [
            {
                "nodeName": "/public",
                "assignment": {"name": "pna", "displayName": "No public access"},
                "definitionEntry": {"policyName": "public"},
            },
            {
                "nodeName": "/set",
                "assignment": {"name": "set"},
                "definitionEntry": {"policySetName": "lz"},
                "parameters": {"access": "Disabled"},
            },
        ],
    }
    whole = initiative(
        "lz", member("public", effect="[parameters('access')]"), parameters={"access": {"defaultValue": "Audit"}}
    )
    finding = only(evaluated(tmp_path, [public_access(), whole, tree], OPEN))
    assert (finding.policy, finding.severity) == ("public@pna", Severity.HIGH)
