"""Extension resources are looked up on what they extend, and are unknown where their list was not read."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from policyeng import evaluate
from policyeng.admission import AdmissionOptions, decided_wholly
from policyeng.admission.changes import changes_of
from policyeng.admission.session import AdmissionSession
from policyeng.bundle import load_bundle
from policyeng.bundle.cases import Baselines, Case, estate
from policyeng.errors import BundleError
from policyeng.facts.ids import extended_by
from policyeng.models import JsonObject
from policyeng.sources import read_inputs
from tests.bundles import deny_when, rego, write

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
ROOT = "/subscriptions/11111111-1111-1111-1111-111111111111"
ML = "Microsoft.MachineLearningServices"
HOME = f"{ROOT}/resourceGroups/g/providers/{ML}/workspaces/w"
SETTINGS = "Microsoft.Insights/diagnosticSettings"
FOLDED = SETTINGS.lower()
KINDS = {
    "workspaces": HOME,
    "registries": f"{ROOT}/resourceGroups/g/providers/{ML}/registries/r",
    "workspaces/onlineEndpoints": f"{HOME}/onlineEndpoints/e",
}
FORMS = (
    f'not input.snapshot.by_extended[lower(input.resource.id)]["{FOLDED}"]',
    f'count(object.get(input.snapshot.by_extended, [lower(input.resource.id), "{FOLDED}"], [])) == 0',
    f'count([1 | some key in input.snapshot.by_extended[lower(input.resource.id)]["{FOLDED}"]]) == 0',
)


def setting_on(arm_id: str) -> JsonObject:
    """A diagnostic setting of a resource."""
    return {"id": f"{arm_id}/providers/{SETTINGS}/s", "type": SETTINGS, "name": "s", "properties": {}}


def evaluating(kind: str, condition: str) -> str:
    """A policy that denies resources of a type on a condition."""
    return rego("a", deny_when(condition)).replace(f"[{ML}/workspaces]", f"[{kind}]")


def outcome(tmp_path: Path, form: str, kind: str, further: list[JsonObject], **stated: object) -> str:
    """The outcome of a policy that fails where a resource has no diagnostic setting."""
    evaluated = {"id": KINDS[kind], "type": f"{ML}/{kind}", "name": "x", "properties": {}}
    workspace = {"id": HOME, "type": f"{ML}/workspaces", "name": "w", "properties": {}}
    resources = [evaluated, *further] if evaluated["id"] == HOME else [workspace, evaluated, *further]
    bundle = load_bundle(write(tmp_path, {"a/a/a.rego": evaluating(f"{ML}/{kind}", form)}))
    document = json.dumps({"snapshotVersion": 1, "resources": resources, **stated}).encode()
    evaluation = evaluate(bundle, read_inputs(["-"], stdin=document).snapshot, as_of=AS_OF)
    [finding] = [one for one in evaluation.findings if one.resource == KINDS[kind]]
    return str(finding.outcome.value)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_on_a_resource_is_found(tmp_path: Path, form: str, kind: str) -> None:
    """Only what extends exactly this resource counts."""
    assert outcome(tmp_path, form, kind, [setting_on(KINDS[kind].upper())]) == "pass"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("further", "stated", "expected"),
    [
        ([], {}, "unknown"),
        ([], {"covers": [f"{SETTINGS} at {ROOT}"]}, "fail"),
        ([], {"covers": [f"{SETTINGS} at {ROOT.upper()}/resourceGroups/G"]}, "fail"),
        ([], {"covers": [f"{SETTINGS} at {ROOT}/resourceGroups/g2"]}, "unknown"),
        ([setting_on(f"{ROOT}/resourceGroups/other/providers/Microsoft.Storage/storageAccounts/a")], {}, "fail"),
        ([setting_on(f"{KINDS['workspaces']}2")], {}, "fail"),
    ],
)
def test_what_is_absent_fails_where_the_list_was_read(
    tmp_path: Path, form: str, kind: str, further: list[JsonObject], stated: dict[str, object], expected: str
) -> None:
    """A list was read where `covers` states it, or where the subscription has a resource of the type."""
    assert outcome(tmp_path, form, kind, further, **stated) == expected


@pytest.mark.parametrize(
    ("arm_id", "extended"),
    [
        (f"{HOME}/providers/{SETTINGS}/s", HOME),
        (f"{ROOT}/providers/Microsoft.Authorization/locks/l", ROOT),
        ("/providers/Microsoft.Authorization/roleAssignments/a", "/"),
        (HOME, ""),
        (f"{HOME}/computes/c", ""),
        ("", ""),
    ],
)
def test_extended_resources(arm_id: str, extended: str) -> None:
    """An extension resource names what it extends before its last provider."""
    assert extended_by(arm_id) == extended.lower()


def test_a_change_of_an_extension_affects_what_it_extends(tmp_path: Path) -> None:
    """Admission evaluates the workspace again whose setting is removed."""
    bundle = load_bundle(write(tmp_path, {"a/a/a.rego": evaluating(f"{ML}/workspaces", FORMS[0])}))
    workspace = {"id": HOME, "type": f"{ML}/workspaces", "properties": {}}
    resources = [workspace, setting_on(HOME)]
    document = json.dumps({"snapshotVersion": 1, "resources": resources, "covers": [f"{SETTINGS} at {ROOT}"]}).encode()
    snapshot = read_inputs(["-"], stdin=document).snapshot
    removed = [{"operation": "delete", "id": setting_on(HOME)["id"]}]
    options = AdmissionOptions(as_of=AS_OF)
    decision = AdmissionSession(bundle, snapshot).decide(removed, options)
    assert not decision.allowed
    assert decision == decided_wholly(bundle, snapshot, changes_of(removed), options)


ASSIGNMENTS = "Microsoft.Authorization/roleAssignments"
INHERITED = f"/providers/Microsoft.Management/managementGroups/m/providers/{ASSIGNMENTS}/a"
#: Fails where nothing is assigned above subscriptions.
ABOVE = f'not input.snapshot.by_scope["/"]["{ASSIGNMENTS.lower()}"]'


@pytest.mark.parametrize(
    ("inherited", "stated", "expected"),
    [
        (True, {}, "pass"),
        (False, {}, "fail"),
        (False, {"covers": [f"{ASSIGNMENTS} at {ROOT}"]}, "fail"),
        (False, {"covers": []}, "unknown"),
        (False, {"incomplete": [f"{ASSIGNMENTS} at {ROOT}: forbidden"]}, "unknown"),
        (False, {"incomplete": [f"{ASSIGNMENTS} at /: forbidden"]}, "unknown"),
        (False, {"incomplete": [f"{ASSIGNMENTS} at {ROOT}/resourceGroups/other: forbidden"]}, "fail"),
        (False, {"incomplete": [f"{ASSIGNMENTS} at {ROOT}x: forbidden"]}, "fail"),
    ],
)
def test_what_no_subscription_has(tmp_path: Path, inherited: bool, stated: dict[str, object], expected: str) -> None:
    """The scope `/` has it, and the lists of subscriptions decide whether that is all."""
    further = [{"id": INHERITED, "type": ASSIGNMENTS, "name": "a", "properties": {}}] if inherited else []
    assert outcome(tmp_path, ABOVE, "workspaces", further, **stated) == expected


@pytest.mark.parametrize(
    ("gap", "expected"),
    [
        ("/", "unknown"),
        (ROOT, "unknown"),
        (f"{ROOT}/providers/{ASSIGNMENTS}/a", "unknown"),
        (f"{ROOT}/resourceGroups/other", "fail"),
        (HOME, "fail"),
    ],
)
def test_what_extends_exactly_a_subscription(tmp_path: Path, gap: str, expected: str) -> None:
    """A list below the subscription does not have what extends the subscription itself."""
    condition = f'not input.snapshot.by_extended["{ROOT.lower()}"]["{ASSIGNMENTS.lower()}"]'
    assert outcome(tmp_path, condition, "workspaces", [], incomplete=[f"{ASSIGNMENTS} at {gap}: forbidden"]) == expected


@pytest.mark.parametrize("above", ["/", "/providers/Microsoft.Management/managementGroups/m"])
@pytest.mark.parametrize(("covered", "expected"), [("/", "fail"), (ROOT, "unknown")])
def test_what_extends_scopes_above_subscriptions(tmp_path: Path, above: str, covered: str, expected: str) -> None:
    """The lists of subscriptions do not have it, so only an entry of `covers` states that there is no more."""
    condition = f'not input.snapshot.by_extended["{above.lower()}"]["{FOLDED}"]'
    inherited = {"id": f"{above.rstrip('/')}/providers/{ASSIGNMENTS}/a", "type": ASSIGNMENTS, "name": "a"}
    further = [{**inherited, "properties": {}}, setting_on(f"{HOME}2")]
    stated = {"covers": [f"{SETTINGS} at {covered}", f"{ASSIGNMENTS} at /"]}
    assert outcome(tmp_path, condition, "workspaces", further, **stated) == expected


@pytest.mark.parametrize(
    ("covers", "further", "expected"),
    [
        (None, [], "fail"),
        ([], [], "unknown"),
        ([f"{SETTINGS} at {ROOT}"], [], "fail"),
        ([], [setting_on(f"{HOME}2")], "fail"),
    ],
)
def test_cases_state_what_they_cover(
    tmp_path: Path, covers: list[str] | None, further: list[JsonObject], expected: str
) -> None:
    """Without `covers`, the estate of a case has everything."""
    workspace = {"id": HOME, "type": f"{ML}/workspaces", "name": "w", "properties": {}}
    baselines = Baselines({"workspace": workspace, **{f"further{at}": one for at, one in enumerate(further)}})
    snapshot = estate(baselines, Case(baseline="workspace", covers=covers), "here")
    bundle = load_bundle(write(tmp_path, {"a/a/a.rego": evaluating(f"{ML}/workspaces", FORMS[0])}))
    [finding] = evaluate(bundle, snapshot, as_of=AS_OF).findings
    assert finding.outcome.value == expected


def test_a_case_with_an_entry_that_covers_nothing() -> None:
    """It is refused by name."""
    with pytest.raises(BundleError, match="`locks` in `covers` is not `TYPE at ID`"):
        estate(Baselines({}), Case(covers=["locks"]), "here")


LOCKS = "Microsoft.Authorization/locks"


@pytest.mark.parametrize(
    ("covers", "expected"),
    [
        ([f"{LOCKS} at {ROOT}"], "fail"),
        ([f"{LOCKS} at {ROOT}/resourceGroups/g"], "unknown"),
        ([f"{LOCKS} at {HOME}", f"{LOCKS} at {HOME}/computes/c"], "unknown"),
        ([f"{LOCKS} at {ROOT}/resourceGroups/other"], "unknown"),
        ([], "unknown"),
    ],
)
def test_a_list_of_locks_says_nothing_of_the_scopes_above(tmp_path: Path, covers: list[str], expected: str) -> None:
    """Only a line at or above each scope does."""
    look = "; ".join(
        f'not input.snapshot.by_extended["{scope.lower()}"]["{LOCKS.lower()}"]'
        for scope in (HOME, f"{ROOT}/resourceGroups/g", ROOT)
    )
    assert outcome(tmp_path, look, "workspaces", [], covers=covers) == expected
