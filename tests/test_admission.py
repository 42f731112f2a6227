"""Admission: what a change is denied for, and what it is not blamed for."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import policyeng
from policyeng.admission import AdmissionOptions, decided_wholly
from policyeng.admission.changes import apply_changes, changes_of
from policyeng.bundle import Bundle, load_bundle
from policyeng.errors import InputError, UsageError
from policyeng.models import Blame, Change, Decision, Enforcement, Exemption, JsonObject, Mode, Operation, Severity
from tests.bundles import WORKSPACE, deny_when, rego, snapshot, workspace, write

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
X = 'object.get(input.resource, ["properties", "x"], 0)'
OPEN = f'deny contains {{"msg": "open", "path": "/properties/x", "actual": {X}}} if {X} > 1'
#: Denies every workspace while there are more than two of them, and reports it for each.
CROWD = (
    'deny contains {"msg": "too many", "path": "/id", "actual": n} if { n := count(input.snapshot.resources); n > 2 }'
)


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    """A policy of one resource, and one that looks at all of them."""
    files = {
        "area/p.rego": rego("p", OPEN, severity="medium"),
        "area/crowd.rego": rego("crowd", CROWD, identity="T-A-2"),
    }
    return load_bundle(write(tmp_path, files))


def admitted(bundle: Bundle, before: list[JsonObject], change: Any, **options: Any) -> Decision:
    """The decision on a change of workspaces, with all existing resources."""
    return policyeng.admit(bundle, snapshot(*before), change, as_of=AS_OF, **{"standing": True, **options})


def policies(decision: Decision, name: str) -> list[tuple[str, str]]:
    """The policies and names of resources of one of its lists."""
    return [(finding.policy, finding.resource.rpartition("/")[2]) for finding in getattr(decision, name)]


def test_a_new_failure_denies(bundle: Bundle) -> None:
    """Of a resource that was not there, and of one that was fine."""
    for before in ([workspace("a")], [workspace("a"), workspace("w", x=1)]):
        decision = admitted(bundle, before, workspace("w", x=2))

        assert (decision.allowed, decision.exit_code) == (False, 1)
        assert policies(decision, "denied") == [("T-A-1", "w")]


def test_nothing_that_was_there_already_is_blamed_on_a_change(bundle: Bundle) -> None:
    """What was made of the state before the change; an error in that denies, because the state is unknown then."""
    state, old, touched = snapshot(workspace("w", x=1)), workspace("w", x=2), workspace("w", x=2, tag="t")
    for before, allowed in ((), False), (old, True), ([old["id"], old], True), (workspace("v"), False):
        decision = policyeng.admit(bundle, state, touched, as_of=AS_OF, before=before, blame=Blame.INTRODUCED)
        assert decision.allowed is allowed

    unknown = {"operation": "patch", "id": f"{WORKSPACE}x", "patch": {}}
    decision = policyeng.admit(bundle, snapshot(old), touched, as_of=AS_OF, before=unknown, blame=Blame.INTRODUCED)
    assert (decision.allowed, decision.exit_code, len(decision.problems)) == (False, 2, 1)


def test_a_compliant_change_is_allowed_and_what_it_fixes_is_reported(bundle: Bundle) -> None:
    """The failure of before is cleared."""
    decision = admitted(bundle, [workspace("w", x=2)], workspace("w", x=1))

    assert (decision.allowed, decision.exit_code) == (True, 0)
    assert policies(decision, "cleared") == [("T-A-1", "w")]


def test_an_old_failure_elsewhere_remains_and_is_not_blamed(bundle: Bundle) -> None:
    """It is reported."""
    decision = admitted(bundle, [workspace("a", x=5), workspace("w")], workspace("w", x=1))

    assert decision.allowed
    assert policies(decision, "standing") == [("T-A-1", "a")]


@pytest.mark.parametrize("blame", Blame)
def test_old_failures_elsewhere_are_listed_only_on_request(bundle: Bundle, blame: Blame) -> None:
    """Neither those of what is not looked at again nor those that are found again; all else stays the same."""
    before = [workspace("a", x=5), workspace("b", x=5), workspace("c")]
    for change in (workspace("c", x=1), workspace("c", x=2), workspace("b", x=5, y=1), workspace("d"), before[0]["id"]):
        full, short = (
            admitted(bundle, before, change, blame=blame, standing=standing).model_dump() for standing in (True, False)
        )
        changed = change if isinstance(change, str) else change["id"]
        own = tuple(one for one in full["standing"] if one["resource"] == changed)
        assert len(full["standing"]) > len(own)
        assert short == {**full, "standing": own}


def test_an_old_failure_on_what_is_changed_denies_unless_only_the_new_is_blamed(bundle: Bundle) -> None:
    """Both ways, and what is worse than before is new either way."""
    before = [workspace("w", x=2)]
    touched, left = (admitted(bundle, before, workspace("w", x=2, y=1), blame=blame) for blame in Blame)
    worse = admitted(bundle, before, workspace("w", x=3), blame=Blame.INTRODUCED)

    assert policies(touched, "denied") == [("T-A-1", "w")]
    assert policies(touched, "standing") == []
    assert left.allowed
    assert policies(left, "standing") == [("T-A-1", "w")]
    assert policies(worse, "denied") == [("T-A-1", "w")]


def test_old_failures_are_in_the_order_of_reports(bundle: Bundle) -> None:
    """Those on what is changed among those elsewhere."""
    before = [workspace(name, x=2) for name in "abc"]
    decision = admitted(bundle, before, workspace("b", x=2, y=1), blame=Blame.INTRODUCED)

    assert policies(decision, "standing") == [
        *(("T-A-1", name) for name in "abc"),
        *(("T-A-2", name) for name in "abc"),
    ]


def test_a_failure_that_a_change_brings_about_elsewhere_denies(bundle: Bundle) -> None:
    """And where it was there before it does not, though more of it is found."""
    first = admitted(bundle, [workspace("a"), workspace("b")], workspace("c"))
    fourth = admitted(bundle, [workspace("a"), workspace("b"), workspace("c")], workspace("d"))

    assert policies(first, "denied") == [("T-A-2", name) for name in "abc"]
    assert policies(fourth, "denied") == [("T-A-2", "d")]
    assert policies(fourth, "standing") == [("T-A-2", name) for name in "abc"]


def test_a_delete_takes_what_lies_below(bundle: Bundle) -> None:
    """By whole segments, and without case."""
    child = workspace("w") | {"id": f"{WORKSPACE}/computes/c"}
    sibling = workspace("w2", x=3)
    after = apply_changes(snapshot(workspace("w"), child, sibling), changes_of(WORKSPACE.upper()))

    assert [resource["id"] for resource in after.snapshot.resources] == [sibling["id"]]
    assert admitted(bundle, [workspace("w", x=2), child, sibling], WORKSPACE).allowed


def test_a_patch_is_over_the_resource_of_before(bundle: Bundle) -> None:
    """A null takes a member away, and what is not there cannot be patched."""
    raising, lowering = ({"operation": "patch", "id": WORKSPACE, "patch": {"properties": {"x": x}}} for x in (2, None))

    assert not admitted(bundle, [workspace("w")], raising).allowed
    assert admitted(bundle, [workspace("w", x=2)], lowering).allowed
    nowhere = admitted(bundle, [workspace("a")], lowering)
    assert (nowhere.allowed, nowhere.exit_code) == (False, 2)
    assert "does not contain the patched resource" in nowhere.problems[0].message


def test_several_changes_are_evaluated_together(bundle: Bundle) -> None:
    """One that takes away what another needs, in any order of two resources."""
    before = [workspace("a"), workspace("b")]

    assert not admitted(bundle, before, workspace("c")).allowed
    assert admitted(bundle, before, [workspace("c"), before[0]["id"]]).allowed
    assert admitted(bundle, before, [before[0]["id"], workspace("c")]).allowed


def test_modes_and_the_gate(bundle: Bundle) -> None:
    """The longest scope counts, then the setting of one policy, then the strictest; below the gate is a warning."""
    bad = workspace("w", x=2)

    def name(*modes: Enforcement, fail_on: Severity = Severity.LOW) -> str:
        decision = admitted(bundle, [], bad, modes=modes, fail_on=fail_on)
        assert decision.allowed is not bool(decision.denied)
        return next(key for key in ("denied", "warned", "shadowed") if getattr(decision, key))

    assert name() == "denied"
    assert name(fail_on=Severity.MEDIUM) == "denied"
    assert name(fail_on=Severity.HIGH) == "warned"
    assert name(Enforcement(mode=Mode.WARN)) == "warned"
    assert name(Enforcement(policy="T-A-1", mode=Mode.SHADOW), Enforcement(mode=Mode.DENY)) == "shadowed"
    assert (
        name(Enforcement(mode=Mode.WARN, scope="/subscriptions/s"), Enforcement(policy="area", mode=Mode.DENY))
        == "warned"
    )
    assert name(Enforcement(mode=Mode.WARN, scope=f"{WORKSPACE}/computes/c")) == "denied"
    assert name(Enforcement(mode=Mode.WARN, scope=WORKSPACE + "2")) == "denied"
    assert name(Enforcement(policy="T-A-1", mode=Mode.WARN), Enforcement(policy="t-a-1", mode=Mode.SHADOW)) == "warned"
    with pytest.raises(UsageError, match="T-A-9"):
        name(Enforcement(policy="T-A-9", mode=Mode.WARN))
    with pytest.raises(UsageError, match="not an ARM id"):
        name(Enforcement(scope="subscriptions", mode=Mode.WARN))


def test_an_exemption_in_force_lets_a_failure_through_and_is_shown(bundle: Bundle) -> None:
    """And one that has lapsed does not."""
    values = {"id": "E", "policy": "T-A-1", "scope": WORKSPACE, "category": "waiver", "reason": "r", "owner": "o"}
    values |= {"approvedBy": "a", "createdAt": "2026-01-01T00:00:00Z", "expiresAt": "2026-06-01T00:00:01Z"}
    in_force = Exemption.model_validate(values)
    lapsed = in_force.model_copy(update={"expires_at": AS_OF})

    decision = admitted(bundle, [], workspace("w", x=2), exemptions=[in_force])
    assert decision.allowed
    assert policies(decision, "exempted") == [("T-A-1", "w")]
    assert not admitted(bundle, [], workspace("w", x=2), exemptions=[lapsed]).allowed


def test_an_error_denies_whatever_the_gate(tmp_path: Path) -> None:
    """Also where the severity is below it."""
    breaking = load_bundle(
        write(tmp_path, {"area/p.rego": rego("p", deny_when("1 / input.resource.properties.x > 0"))})
    )

    decision = admitted(breaking, [], workspace("w", x=0), fail_on=Severity.CRITICAL)
    assert (decision.allowed, decision.exit_code) == (False, 2)


def test_what_cannot_be_evaluated_denies(bundle: Bundle) -> None:
    """A resource that JSON cannot carry is refused with its place."""
    with pytest.raises(InputError, match="not JSON"):
        admitted(bundle, [], workspace("w", x={1}))


def test_a_bundle_that_evaluates_no_resources_allows_nothing(tmp_path: Path) -> None:
    """As of policies of others alone, which evaluate documents; no change would be evaluated."""
    foreign = load_bundle(write(tmp_path, {"main.rego": 'package main\n\ndeny contains "no" if input.kind == "Pod"\n'}))

    decision = admitted(foreign, [workspace("a")], workspace("w"))

    assert (decision.allowed, decision.exit_code) == (False, 2)
    assert "no active policy checks resources" in decision.problems[0].message


def test_the_last_resource_may_go(bundle: Bundle) -> None:
    """Nothing is evaluated after it, which `check` takes for an error; a change that leaves nothing breaks nothing."""
    decision = admitted(bundle, [workspace("w")], WORKSPACE)

    assert (decision.allowed, decision.exit_code) == (True, 0)
    assert decision == decided_wholly(bundle, snapshot(workspace("w")), changes_of(WORKSPACE), AdmissionOptions(AS_OF))


def test_what_could_not_be_evaluated_before_either_denies_its_change(bundle: Bundle) -> None:
    """A patch leaves a resource that cannot be evaluated as it was; a change of another one is not blamed for that."""
    odd = workspace("w", x=-(2**70) * 10**400)

    patched = admitted(bundle, [odd, workspace("a")], {"operation": "patch", "id": odd["id"], "patch": {"tags": {}}})
    other = admitted(bundle, [odd, workspace("a")], workspace("a", x=1))

    assert (patched.allowed, patched.exit_code) == (False, 2)
    assert (other.allowed, other.exit_code) == (True, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"type": "t"}, "`type` but no `id`"),
        ({"id": WORKSPACE, "type": 1}, "but `type` is `1`"),
        ({"operation": "replaced", "id": WORKSPACE}, "did you mean"),
        ({"operation": "delete", "id": WORKSPACE, "patch": {}}, "a delete has no `patch`"),
        ({"operation": "patch", "id": WORKSPACE, "patch": []}, "is a list, not an object"),
        ({"operation": "replace", "id": f"{WORKSPACE}2", "resource": workspace("w")}, "but its resource is"),
        ({"operation": "delete"}, "`id` is missing"),
        (5, "this is not a change"),
    ],
)
def test_what_is_no_change_is_refused_with_its_place(bundle: Bundle, change: Any, message: str) -> None:
    """By name; in a list it denies, and the rest is evaluated."""
    with pytest.raises(InputError, match=message):
        admitted(bundle, [], change)
    decision = admitted(bundle, [], [workspace("w"), change])
    assert (decision.allowed, decision.exit_code) == (False, 2)
    assert any("/1" in problem.message for problem in decision.problems)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (Change(operation=Operation.REPLACE, id=WORKSPACE), "the resource is not an object"),
        (Change(operation=Operation.PATCH, id=WORKSPACE, patch=[]), "is a JSON object"),
        (Change(operation=Operation.PATCH, id=WORKSPACE, patch={"x": math.nan}), "NaN"),
        (Change(operation=Operation.CREATE, id=WORKSPACE, resource={"id": WORKSPACE}), "no string `type`"),
        (Change(operation=Operation.CREATE, id=f"{WORKSPACE}2", resource=workspace("w")), "the id of the change is"),
    ],
)
def test_a_change_that_a_program_made_wrongly_is_refused(bundle: Bundle, change: Change, message: str) -> None:
    """By its position among the others, whatever their form."""
    for listed in ([workspace("a"), change], [Change(operation=Operation.DELETE, id=WORKSPACE), change]):
        with pytest.raises(InputError, match=message) as raised:
            admitted(bundle, [workspace("w")], listed)
        assert raised.value.place[0].startswith("change 2")


def test_changes_and_documents_are_made_in_their_order(bundle: Bundle) -> None:
    """A resource that goes and comes back is there."""
    gone = Change(operation=Operation.DELETE, id=WORKSPACE)

    for listed, left in (([gone, workspace("w", x=2)], "denied"), ([workspace("w", x=2), gone], "cleared")):
        assert policies(admitted(bundle, [workspace("w", x=3)], listed), left) == [("T-A-1", "w")]


def test_where_nothing_changes_nothing_is_denied(bundle: Bundle) -> None:
    """As of a plan that finds all as it should be; what fails already remains."""
    unchanged = policyeng.load_changes({"status": "Succeeded", "changes": []})
    decision = admitted(bundle, [workspace("w", x=2)], unchanged)

    assert (decision.allowed, decision.changes) == (True, ())
    assert policies(decision, "standing") == [("T-A-1", "w")]


def test_a_resource_that_a_format_states_only_in_part_is_undecided(tmp_path: Path) -> None:
    """And denied where that counts as a failure."""
    bundle = load_bundle(
        write(
            tmp_path,
            {
                "area/p.rego": rego(
                    "p", deny_when("input.resource.properties.x"), more="inspects: [/properties/x]\nwhen_absent: fail"
                )
            },
        )
    )
    change = Change(
        operation=Operation.CREATE, id=WORKSPACE, resource=workspace("w"), unreadable={"/properties/x": "an expression"}
    )

    lenient, strict = (admitted(bundle, [], change, strict_unknown=strict) for strict in (False, True))
    assert lenient.allowed
    assert policies(lenient, "undecided") == [("T-A-1", "w")]
    assert policies(strict, "denied") == [("T-A-1", "w")]


def test_a_decision_survives_its_round_trip(bundle: Bundle) -> None:
    """As JSON in camelCase."""
    decision = admitted(bundle, [workspace("a", x=5)], workspace("w", x=2))

    assert Decision.model_validate_json(decision.model_dump_json(by_alias=True)) == decision
