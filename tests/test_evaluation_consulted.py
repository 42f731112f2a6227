"""What a policy consults beside the judged resource: unknown where that cannot be read, and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from policyeng.bundle import Bundle, load_bundle
from policyeng.evaluation import evaluate
from policyeng.evaluation.pointers import overlap, values_at
from policyeng.models import Finding, JsonObject, Snapshot
from policyeng.sources import read_inputs
from policyeng.verify.cases import DEFAULT_AS_OF
from tests.bundles import deny_when, rego, write

SUBSCRIPTION = "/subscriptions/s"
GROUP = f"{SUBSCRIPTION}/resourceGroups/g"
WORKSPACE = f"{GROUP}/providers/Microsoft.MachineLearningServices/workspaces/w"
TYPE = "Microsoft.MachineLearningServices/workspaces"
OTHER = f"{GROUP}/providers/A.B/things/one"
OPEN = "/subscriptions/{subscription}/resourceGroups/{resource-group}"


def policy(folder: Path, consults: str, more: str = "") -> Bundle:
    """A policy on workspaces that consults what is said."""
    text = rego("a", deny_when("input.resource.properties.bad"), more=f"consults: [{consults}]{more}")
    return load_bundle(write(folder, {"a/a/a.rego": text}))


def judged(
    bundle: Bundle,
    *resources: JsonObject,
    lost: dict[str, dict[str, str]] | None = None,
    parameters: JsonObject | None = None,
) -> Finding:
    """The finding of the workspace, which the resources name or lie beside."""
    snapshot = Snapshot.model_validate(
        {"resources": resources, "unreadable": {key.lower(): said for key, said in (lost or {}).items()}}
    )
    given = {"T-A-1": parameters or {}}
    found = evaluate(bundle, snapshot, as_of=DEFAULT_AS_OF, parameters=given).findings
    return next(one for one in found if one.resource == resources[0]["id"])


def home(identity: str = WORKSPACE, **properties: object) -> JsonObject:
    """The judged workspace."""
    return {"id": identity, "type": TYPE, "properties": properties}


def thing(identity: str = OTHER, **properties: object) -> JsonObject:
    """A resource beside it."""
    return {"id": identity, "type": "A.B/things", "properties": properties}


def test_any_resource_of_a_type_counts_and_is_named(tmp_path: Path) -> None:
    """The finding says which field of which resource, with the reason of its format."""
    bundle = policy(tmp_path, "{type: a.b/THINGS, reads: [/properties/x]}")
    found = judged(bundle, home(), thing(), lost={OTHER: {"/properties/x": "nobody says"}})
    assert found.outcome.value == "unknown"
    assert [(one.path, one.msg) for one in found.unknowns] == [(f"{OTHER}:/properties/x", "nobody says")]
    assert judged(bundle, home(), thing(), lost={OTHER: {"/properties/y": "nobody says"}}).outcome.value == "pass"
    assert judged(bundle, home(), thing(), lost={OTHER: {"/properties": "nobody says"}}).outcome.value == "unknown"
    assert judged(bundle, home(bad=True), thing()).outcome.value == "fail"


def test_a_finding_points_at_the_place_in_the_neighbour(tmp_path: Path) -> None:
    """The file, line and column of the field that could not be read are those of the other resource."""
    bundle = policy(tmp_path, "{type: A.B/things, reads: [/properties/x]}")
    text = json.dumps([home(), thing(x=1)], indent=1)
    (tmp_path / "estate.json").write_text(text, encoding="utf-8")
    loaded = read_inputs([str(tmp_path / "estate.json")])
    lost = loaded.snapshot.model_copy(update={"unreadable": {OTHER.lower(): {"/properties/x": "nobody says"}}})
    (found,) = evaluate(bundle, lost, as_of=DEFAULT_AS_OF).findings
    place = found.location.fields[f"{OTHER}:/properties/x"]
    assert text.splitlines()[place.line - 1].strip() == '"x": 1'


@pytest.mark.parametrize(
    ("reference", "outcome"),
    [
        (OTHER, "unknown"),
        (f"{OTHER.upper()}/parts/p", "unknown"),
        (f"{OPEN}/providers/A.B/things/one", "unknown"),
        ("/subscriptions/t/providers/A.B/things/one", "unknown"),
        ("one", "unknown"),
        (OTHER + "2", "pass"),
        ("two", "pass"),
        (7, "pass"),
        (None, "pass"),
    ],
)
def test_only_what_is_named_counts(tmp_path: Path, reference: object, outcome: str) -> None:
    """By what stands below the provider: its subscription may not be stated yet."""
    bundle = policy(tmp_path, "{through: /properties/machine, reads: [/properties/x]}")
    said = judged(bundle, home(machine=reference), thing(), lost={OTHER: {"/properties/x": "?"}})
    assert said.outcome.value == outcome


def test_a_reference_that_cannot_be_read_may_name_anything(tmp_path: Path) -> None:
    """Whether it is that of the judged resource or of one that names it."""
    bundle = policy(tmp_path / "1", "{through: /properties/machine, reads: [/properties/x]}")
    lost = {OTHER: {"/properties/x": "?"}, WORKSPACE: {"/properties/machine": "?"}}
    assert judged(bundle, home(), thing(), lost=lost).outcome.value == "unknown"
    bundle = policy(tmp_path / "2", "{type: A.B/things, naming: /properties/home, reads: [/properties/x]}")
    for named, pointer, outcome in (
        (WORKSPACE, "/properties/x", "unknown"),
        (WORKSPACE, "/properties/y", "pass"),
        (OTHER, "/properties/x", "pass"),
        (None, "/properties/home", "unknown"),
    ):
        said = judged(bundle, home(), thing(home=named), lost={OTHER: {pointer: "?"}})
        assert said.outcome.value == outcome, (named, pointer)


def test_steps_lead_on_and_may_be_lost_on_the_way(tmp_path: Path) -> None:
    """From the judged resource over one to the next; a workspace's own reference counts as well."""
    bundle = policy(tmp_path / "1", "{through: [/properties/next, /properties/next], reads: [/properties/x]}")
    last = thing(f"{GROUP}/providers/A.B/things/last")
    estate = (home(next=OTHER), thing(next=last["id"]), last)
    assert judged(bundle, *estate, lost={last["id"]: {"/properties/x": "?"}}).outcome.value == "unknown"
    assert judged(bundle, *estate, lost={OTHER: {"/properties/x": "?"}}).outcome.value == "pass"
    broken = judged(bundle, home(next=OTHER), thing(), last, lost={OTHER: {"/properties/next": "?"}})
    assert [one.path for one in broken.unknowns] == [f"{OTHER}:/properties/next"]
    bundle = policy(tmp_path / "2", '{through: "workspace:/properties/next", reads: [/properties/x]}')
    assert judged(bundle, *estate, lost={OTHER: {"/properties/x": "?"}}).outcome.value == "unknown"


def test_what_names_the_same_counts(tmp_path: Path) -> None:
    """Two that sit in one subnet are neighbours."""
    bundle = policy(
        tmp_path, "{type: A.B/things, through: /properties/at, naming: /properties/at, reads: [/properties/x]}"
    )
    for at, outcome in ((f"{GROUP}/providers/N/nets/n/subnets/s", "unknown"), (f"{GROUP}/providers/N/nets/m", "pass")):
        estate = (home(at=f"{GROUP}/providers/N/nets/n/subnets/s"), thing(at=at))
        assert judged(bundle, *estate, lost={OTHER: {"/properties/x": "?"}}).outcome.value == outcome


@pytest.mark.parametrize(
    ("within", "identity", "outcome"),
    [
        ("resource", f"{WORKSPACE}/things/one", "unknown"),
        ("resource", f"{WORKSPACE}2/things/one", "pass"),
        ("resource", OTHER, "pass"),
        ("subscription", OTHER, "unknown"),
        ("subscription", f"{SUBSCRIPTION}2/providers/A.B/things/one", "pass"),
        ("subscription", f"{OPEN}/providers/A.B/things/one", "unknown"),
        ("resource", f"{WORKSPACE.replace(GROUP, OPEN)}/things/one", "unknown"),
        ("resource", f"{WORKSPACE.replace(GROUP, OPEN)}2/things/one", "pass"),
    ],
)
def test_a_scope_bounds_what_counts(tmp_path: Path, within: str, identity: str, outcome: str) -> None:
    """What is not placed yet may lie in every scope."""
    bundle = policy(tmp_path, f"{{type: A.B/things, within: {within}, reads: [/properties/x]}}")
    said = judged(bundle, home(), thing(identity), lost={identity: {"/properties/x": "?"}})
    assert said.outcome.value == outcome


def test_what_is_not_placed_yet_may_share_its_scope_with_anything(tmp_path: Path) -> None:
    """The judged resource itself may lie anywhere, too."""
    bundle = policy(tmp_path, "{type: A.B/things, within: subscription, reads: [/properties/x]}")
    unplaced = home(WORKSPACE.replace(GROUP, OPEN))
    assert judged(bundle, unplaced, thing(), lost={OTHER: {"/properties/x": "?"}}).outcome.value == "unknown"


def test_the_workspace_of_a_neighbour_is_read_as_its_own(tmp_path: Path) -> None:
    """`workspace:/...` among the fields."""
    bundle = policy(tmp_path, '{type: A.B/things, naming: /properties/home, reads: ["workspace:/properties/x"]}')
    other = f"{WORKSPACE}-2"
    estate = (home(), home(other), thing(f"{other}/things/one", home=WORKSPACE))
    found = judged(bundle, *estate, lost={other: {"/properties/x": "?"}})
    assert [one.path for one in found.unknowns] == [f"{other}:/properties/x"]
    assert judged(bundle, *estate, lost={WORKSPACE: {"/properties/x": "?"}}).outcome.value == "pass"


def test_an_entry_holds_for_a_type_or_a_parameter_only(tmp_path: Path) -> None:
    """What the policy does not look at then leaves its findings alone."""
    lost = {OTHER: {"/properties/x": "?"}}
    bundle = policy(tmp_path / "1", "{type: A.B/things, judging: A.B/others, reads: [/properties/x]}")
    assert judged(bundle, home(), thing(), lost=lost).outcome.value == "pass"
    bundle = policy(tmp_path / "2", f"{{type: A.B/things, judging: {TYPE.upper()}, reads: [/properties/x]}}")
    assert judged(bundle, home(), thing(), lost=lost).outcome.value == "unknown"
    more = "\nparameters: {names: {type: array, default: []}}"
    bundle = policy(tmp_path / "3", "{type: A.B/things, parameter: names, reads: [/properties/x]}", more)
    assert judged(bundle, home(), thing(), lost=lost).outcome.value == "pass"
    assert judged(bundle, home(), thing(), lost=lost, parameters={"names": ["a"]}).outcome.value == "unknown"


def test_a_thousand_lost_fields_are_not_listed_all(tmp_path: Path) -> None:
    """A finding stays readable, and names the same ones each time."""
    bundle = policy(tmp_path, "{type: A.B/things, reads: [/properties/x]}")
    things = [thing(f"{OTHER}{number}") for number in range(1000)]
    lost = {str(one["id"]): {"/properties/x": "?"} for one in things}
    found = judged(bundle, home(), *things, lost=lost)
    assert 0 < len(found.unknowns) < 10
    assert found.unknowns == judged(bundle, home(), *reversed(things), lost=lost).unknowns


def test_keys_of_pointers_overlap_without_case_and_with_stars() -> None:
    """Azure has no case in the names of tags."""
    assert overlap("/tags/Owner", "/tags/owner")
    assert overlap("/tags", "/tags/owner/name")
    assert overlap("/properties/*/x", "/properties/0")
    assert not overlap("/tags/owner", "/tags/own")
    assert list(values_at({"a": [{"x": 1}, {"x": 2}, 3], "*": 4}, "/a/*/x")) == [1, 2]
    assert list(values_at({"*": 4, "b": 5}, "/*")) == [4]
