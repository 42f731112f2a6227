"""A change of a resource that carries a template is also the changes of the template's resources."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

import policyeng
from policyeng.admission import AdmissionOptions, changes_of, decided_wholly
from policyeng.admission.changes import apply_changes
from policyeng.bundle import Bundle
from policyeng.bundle.policy_selection import selected
from policyeng.models import Decision, JsonObject, Operation, Snapshot
from policyeng.sources import normalize_context, parse_changes
from tests.carriers import SCOPE, SUBSCRIPTION, inner_deployment, plan, resource, template

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
ML = "Microsoft.MachineLearningServices/workspaces"
DEPLOYMENT = "Microsoft.Resources/deployments"
STACK = "Microsoft.Resources/deploymentStacks"
TWICE = {"publicNetworkAccess": "Disabled", "PublicNetworkAccess": "Enabled"}


@pytest.fixture(name="access", scope="module")
def _access(bundle: Bundle) -> Bundle:
    """The policy on public access."""
    return selected(bundle, ["AML-NET-001"])


def workspace(name: str, access: str, scope: str = SCOPE) -> JsonObject:
    """A workspace as the REST API has it."""
    return {"id": f"{scope}/providers/{ML}/{name}", "type": ML, "properties": {"publicNetworkAccess": access}}


def declared(name: str, access: str) -> JsonObject:
    """A workspace of a template."""
    return {"type": ML, "apiVersion": "2025-12-01", "name": name, "properties": {"PublicNetworkAccess": access}}


def decided(bundle: Bundle, change: object, *before: JsonObject, strict: bool = False) -> Decision:
    """The decision in process, which is the one of evaluating everything before and after the change."""
    snapshot = Snapshot(resources=before)
    decision = policyeng.admit(bundle, snapshot, change, as_of=AS_OF, strict_unknown=strict)  # type: ignore[arg-type]
    options = AdmissionOptions(AS_OF, strict_unknown=strict)
    wholly = decided_wholly(bundle, snapshot, changes_of(change, bundle.spellings), options)  # type: ignore[arg-type]
    assert wholly.model_dump() == decision.model_dump()
    return decision


def denied(decision: Decision) -> list[str]:
    """The names of the workspaces for which a change is denied."""
    return [finding.resource.rpartition("/")[2] for finding in decision.denied]


def left(change: JsonObject, *before: JsonObject) -> list[str]:
    """The names of the resources that are there after a change."""
    after = apply_changes(Snapshot(resources=before), changes_of(change))
    return sorted(one["id"].rpartition("/")[2] for one in after.snapshot.resources if one["type"] == ML)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("arm_type", [DEPLOYMENT, STACK, "microsoft.resources/DEPLOYMENTS"])
def test_what_a_template_deploys_is_denied(access: Bundle, arm_type: str, *, strict: bool) -> None:
    """As a create, a replace, a resource alone and a patch of what is there; among resources that may be."""
    body = inner_deployment(template(declared("good", "Disabled"), declared("bad", "Enabled")))
    carrier = resource(arm_type, {"template": body})
    empty = resource(arm_type, {"template": template()})
    patch = {"operation": "patch", "id": carrier["id"], "patch": {"properties": {"template": body}}}
    for change in (carrier, {"operation": "create", "resource": carrier}, patch):
        decision = decided(access, change, empty, strict=strict)
        assert (decision.exit_code, denied(decision)) == (1, ["bad"])


def test_a_carrier_changes_what_is_there(access: Bundle) -> None:
    """It replaces a resource, which can also repair one; a later change goes before it."""
    bad, good = (resource(DEPLOYMENT, {"template": template(declared("w", word))}) for word in ("Enabled", "Disabled"))
    assert denied(decided(access, bad, workspace("w", "Disabled"))) == ["w"]
    assert decided(access, good, workspace("w", "Enabled")).cleared
    assert decided(access, [bad, workspace("w", "Disabled")]).allowed
    assert denied(decided(access, [workspace("w", "Disabled"), bad])) == ["w"]


@pytest.mark.parametrize(
    "carrier",
    [
        resource(DEPLOYMENT, {"provisioningState": "Succeeded"}),
        resource(DEPLOYMENT, {"templateLink": {"uri": "https://x.example/t.json"}}),
        resource("Microsoft.Resources/deploymentScripts", {"provisioningState": "Succeeded"}),
        resource("Microsoft.Resources/templateSpecs/versions", {}),
        resource("Microsoft.Solutions/applications", {}),
        resource(DEPLOYMENT, {"template": template({**declared("x", "Enabled"), "properties": TWICE})}),
    ],
)
def test_a_carrier_that_cannot_be_read_is_not_allowed(access: Bundle, carrier: JsonObject) -> None:
    """Also where it claims to have been deployed already: a change is about to be made."""
    decision = decided(access, carrier, workspace("w", "Disabled"))
    assert (decision.allowed, decision.exit_code) == (False, 2)
    assert decision.problems[0].place is not None


def test_what_a_change_does_not_know_of_a_template_is_not_allowed(access: Bundle) -> None:
    """As a reader of a plan states it."""
    carrier = resource(DEPLOYMENT, {"template": template(declared("w", "Disabled"))})
    change = {"operation": "replace", "id": carrier["id"], "resource": carrier}
    assert decided(access, {**change, "unreadable": {"/properties/template": "it is known later"}}).exit_code == 2
    place = "/properties/template/resources/0/properties/publicNetworkAccess"
    decision = decided(access, {**change, "unreadable": {place: "it is known later"}}, strict=True)
    assert (decision.exit_code, denied(decision)) == (1, ["w"])


def test_a_patch_of_other_members_deploys_nothing(access: Bundle) -> None:
    """Such as one of tags."""
    existing = resource(STACK, {"provisioningState": "Succeeded"})
    assert decided(
        access, {"operation": "patch", "id": existing["id"], "patch": {"tags": {"a": "b"}}}, existing
    ).allowed


def test_complete_mode_deletes_what_the_template_does_not_name() -> None:
    """Of its resource group: not parts of what it names, what is elsewhere, records of deployments and budgets."""
    other = f"{SUBSCRIPTION}/resourceGroups/other"
    compute = {"id": f"{SCOPE}/providers/{ML}/kept/computes/c", "type": f"{ML}/computes", "properties": {}}
    old = resource(DEPLOYMENT, {"provisioningState": "Succeeded"})
    budget = resource("Microsoft.Consumption/budgets", {})
    before = (workspace("kept", "x"), workspace("gone", "x"), workspace("away", "x", other), compute)
    properties = {"template": template(declared("kept", "x"), declared("new", "x"))}
    change = resource(DEPLOYMENT, {**properties, "Mode": "complete"})
    assert left(change, *before) == ["away", "kept", "new"]
    assert left(resource(DEPLOYMENT, {**properties, "mode": "Incremental"}), *before) == ["away", "gone", "kept", "new"]
    after = apply_changes(Snapshot(resources=(*before, old, budget)), changes_of(change)).snapshot.resources
    assert {old["id"], budget["id"], compute["id"]} <= {one["id"] for one in after}


def test_complete_mode_is_not_allowed_where_it_is_not_known_what_it_deletes(access: Bundle) -> None:
    """A template that is not read whole, a name that is not known, and a mode that is not."""
    unknown = template(declared("[parameters('x')]", "Disabled"), parameters={"x": {"type": "string"}})
    script = template({"type": "Microsoft.Resources/deploymentScripts", "name": "s", "properties": {}})
    for body in (unknown, script):
        decision = decided(access, resource(DEPLOYMENT, {"mode": "Complete", "template": body}))
        assert any("mode `Complete`" in problem.message for problem in decision.problems)
        assert decision.exit_code == 2
    carrier = resource(DEPLOYMENT, {"template": template(declared("w", "Disabled"))})
    change = {"operation": "replace", "id": carrier["id"], "resource": carrier}
    assert decided(access, {**change, "unreadable": {"/properties/mode": "it is known later"}}).exit_code == 2


def test_a_stack_deletes_what_it_had(access: Bundle) -> None:
    """Where it is to, and the state has the list; a warning where that is not known, and where a stack goes."""
    properties = {"actionOnUnmanage": {"resources": "delete"}, "template": template(declared("kept", "Disabled"))}
    stack, had = resource(STACK, properties), [workspace(name, "Disabled") for name in ("kept", "gone", "other")]
    existing = resource(STACK, {"resources": [{"id": one["id"].upper()} for one in had[:2]]})
    assert left(stack, existing, *had) == ["kept", "other"]
    detaching = resource(STACK, {**properties, "actionOnUnmanage": {"resources": "detach"}})
    assert left(detaching, existing, *had) == ["gone", "kept", "other"]
    assert not decided(access, detaching, existing).problems
    for change in (stack, stack["id"]):
        decision = decided(access, change, *had, *([existing] if change is not stack else []))
        assert (decision.allowed, [problem.level for problem in decision.problems]) == (True, ["warning"])


def test_a_plan_that_destroys_a_deployment_deletes_what_it_deployed() -> None:
    """As the provider does by default."""
    content = json.dumps(template(declared("w", "Enabled")))
    values = {"name": "x", "resource_group_name": "rg-ml", "template_content": content}
    document = plan("azurerm_resource_group_template_deployment", {})
    document["planned_values"] = {"root_module": {}}
    document["resource_changes"][0]["change"] = {"actions": ["delete"], "before": values, "after": None}
    read = parse_changes(json.dumps(document).encode(), "plan.json", context=normalize_context(SCOPE, "", {}))
    assert [(change.operation, change.id.rpartition("/")[2]) for change in read.changes] == [(Operation.DELETE, "w")]


@pytest.mark.parametrize("actions", [["update"], ["create"]])
def test_the_template_of_a_plan_is_evaluated_where_the_deployment_changes(access: Bundle, actions: list[str]) -> None:
    """One that stays as it is changes nothing."""
    values = {
        "name": "x",
        "resource_group_name": "rg-ml",
        "template_content": json.dumps(template(declared("w", "Enabled"))),
    }
    for made, code in ((actions, 1), (["no-op"], 0)):
        document = plan("azurerm_resource_group_template_deployment", values, tuple(made))
        document["resource_changes"][0]["change"]["before"] = values if made == ["no-op"] else {**values, "tags": {}}
        read = parse_changes(json.dumps(document).encode(), "plan.json", context=normalize_context(SCOPE, "", {}))
        assert policyeng.admit(access, Snapshot(), read, as_of=AS_OF).exit_code == code
