"""AML-RBAC-101: the Rego policy and its Python twin agree on random roles, and are right about published ones."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyeng.bundle import Bundle, load_bundle
from policyeng.bundle.parameters import parameters_of
from policyeng.engines import Judgement, evaluate_pairs
from policyeng.engines.python import PythonEvaluator
from policyeng.evaluation.context import request_evaluation
from policyeng.evaluation.matching import plan
from policyeng.evaluation.prepared_snapshot import estate_of
from policyeng.models import JsonObject, Snapshot
from tests.effort import effort

SHARED = Path(__file__).resolve().parents[2] / "shared" / "real" / "rbac" / "custom_roles_docs"
WS = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.MachineLearningServices/workspaces/ws"
COMPUTES = "Microsoft.MachineLearningServices/workspaces/computes"
ROLES = "/providers/Microsoft.Authorization/roleDefinitions/"


@pytest.fixture(scope="module")
def alone() -> Bundle:
    """The built-in bundle with this policy alone active."""
    whole = load_bundle()
    return whole.only([policy for policy in whole.policies if policy.id == "AML-RBAC-101"])


def evaluated(alone: Bundle, *resources: JsonObject, **parameters: object) -> list[tuple[Judgement, Judgement]]:
    """The judgements of Rego and its twin on every assignment."""
    estate = estate_of(Snapshot(resources=resources), alone.facts)
    given = parameters_of(alone, {"AML-RBAC-101": parameters})
    work = request_evaluation(alone, estate, plan(alone, estate), given, datetime(2026, 6, 1, tzinfo=UTC))
    [in_rego] = evaluate_pairs(work).values()
    twin = PythonEvaluator(work)
    return [(judgement, twin.evaluate(pair)) for judgement, pair in zip(in_rego, work.pairs, strict=True)]


def assignment(name: str, **properties: object) -> JsonObject:
    """An assignment at the workspace, unless stated otherwise."""
    body = {"scope": WS, "roleDefinitionId": f"{ROLES}r", **properties}
    arm_id = f"{WS}/providers/Microsoft.Authorization/roleAssignments/{name}"
    return {"id": arm_id, "type": "Microsoft.Authorization/roleAssignments", "properties": body}


def definition(permissions: object, name: object = "Role") -> JsonObject:
    """A custom role of the subscription."""
    body = {"type": "CustomRole", "roleName": name, "permissions": permissions}
    return {"id": f"/subscriptions/s{ROLES}R", "type": "Microsoft.Authorization/roleDefinitions", "properties": body}


def comparable(judgement: Judgement) -> object:
    """A judgement without the order of its parts; nothing else counts where the policy does not apply."""
    denials = {json.dumps(denial.model_dump(), sort_keys=True) for denial in judgement.denials}
    return (
        (judgement.error, denials, set(judgement.unknowns))
        if judgement.applies
        else (judgement.error, judgement.applies)
    )


PIECES = st.sampled_from(["*", "*/", "/*", "/*/", "/*/*/", "**", "/", ".", "X", "[", "\\", "(?", "^", "é", ""])
WHOLE = st.sampled_from(
    ["*", "*/write", "*/action", "*/*", f"{COMPUTES}/*", f"{COMPUTES}/*/write", "*/*/*/start/action"]
)


@st.composite
def patterns(draw: st.DrawFn) -> str:
    """A known wildcard, or a compute action of which pieces were replaced."""
    text = draw(
        st.sampled_from([f"{COMPUTES}/{end}" for end in ("write", "delete", "start/action", "listKeys/action")])
    )
    for _ in range(draw(st.integers(0, 3))):
        start, length = draw(st.integers(0, len(text))), draw(st.sampled_from([0, 0, 1, 3, 10, 30]))
        text = text[:start] + draw(PIECES) + text[start + length :]
    return draw(st.sampled_from([text, text.upper(), draw(WHOLE)]))


LISTS = st.lists(patterns(), max_size=3)
ODD: st.SearchStrategy[object] = st.sampled_from([None, "*", 1, 0, False, "", {}, ["*", None], [["*"]]])
CONDITIONS: st.SearchStrategy[object] = st.sampled_from([None, None, None, "", " ", "x", 0, False, {}])
BLOCKS = st.fixed_dictionaries(
    {},
    optional={"actions": LISTS | ODD, "notActions": LISTS | ODD, "dataActions": LISTS | ODD, "condition": CONDITIONS},
)
PERMISSIONS = st.lists(st.fixed_dictionaries({"actions": LISTS, "notActions": LISTS}), max_size=3)
SCOPES = st.sampled_from(
    [None, "", " ", WS, WS.upper(), f"{WS}/", f"{WS}/computes/c", f"{WS}2", "/", "//", "x", 5, "/a/b"]
)
LISTED = st.lists(st.sampled_from(["role", " ROLE ", "r", f"{ROLES}R", "AzureML Compute Operator", "/"]), max_size=2)


@settings(deadline=None, max_examples=effort(60, 300))
@given(
    permissions=PERMISSIONS | st.lists(BLOCKS | ODD, max_size=3) | ODD,
    name=st.sampled_from(["Role", " role", "", None, 5]),
    scope=SCOPES,
    condition=CONDITIONS,
    role=st.sampled_from([f"{ROLES}r", f"/subscriptions/t{ROLES}R/", "r", "R", "", None, 7, f"{ROLES}nobody"]),
    listed=LISTED,
    homed=st.booleans(),
)
def test_the_twins_agree(
    alone: Bundle,
    permissions: object,
    name: object,
    scope: object,
    condition: object,
    role: object,
    listed: list[str],
    homed: bool,
) -> None:
    """Whatever the role, the scope, the condition and the parameter are, both decide the same for the same reasons."""
    given_roles = assignment("a", scope=scope, condition=condition, roleDefinitionId=role)
    plain = assignment("b")
    home = [{"id": WS, "type": "Microsoft.MachineLearningServices/workspaces", "properties": {}}] if homed else []
    pairs = evaluated(alone, given_roles, plain, definition(permissions, name), *home, compute_manager_roles=listed)
    assert len(pairs) == 2
    for rego, python in pairs:
        assert comparable(rego) == comparable(python)
        assert rego.error is None


@pytest.mark.parametrize(
    ("file", "granted"),
    [
        ("custom_role_01", ["start/action", "stop/action"]),
        ("custom_role_02", ["start/action", "stop/action"]),
        ("custom_role_03", ["start/action", "stop/action"]),
        ("custom_role_04", []),
        ("custom_role_05", []),
        ("custom_role_06", ["write", "delete", "start/action", "stop/action"]),
        ("custom_role_07", []),
        ("custom_role_08", []),
    ],
)
@pytest.mark.skipif(not SHARED.is_dir(), reason="the real role definitions next to the checkout are missing")
def test_published_custom_roles(alone: Bundle, file: str, granted: list[str]) -> None:
    """Exactly the compute actions that a role of Microsoft's documentation grants are named, by both."""
    role = json.loads((SHARED / f"{file}.json").read_text(encoding="utf-8"))
    blocks = role.get("properties", {}).get("permissions") or [
        {"actions": role["Actions"], "notActions": role["NotActions"]}
    ]
    for judgement in evaluated(alone, assignment("a"), definition(blocks))[0]:
        found = [denial.actual["actions"] for denial in judgement.denials]
        assert found == ([[f"{COMPUTES}/{end}" for end in granted]] if granted else [])


def test_the_built_in_roles_that_manage_compute(alone: Bundle) -> None:
    """Of the catalogue's roles, the operator passes and the ones known to manage compute do not."""
    names = {guid: row["name"] for guid, row in alone.facts.document["roles"].items()}
    listed = [assignment(guid, roleDefinitionId=f"{ROLES}{guid}") for guid in sorted(names)]
    failing = {denial.actual["role"] for rego, _ in evaluated(alone, *listed) for denial in rego.denials}
    assert {"Owner", "Contributor", "AzureML Data Scientist"} <= failing
    assert not failing & {"AzureML Compute Operator", "Reader", "AzureML Metrics Writer (preview)"}
