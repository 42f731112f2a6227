"""What a change is to blame for: findings of before and after compared, and what policies look at."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from policyeng.admission import AdmissionOptions, AdmissionSession, changes_of, decided_wholly
from policyeng.admission.attribution import Sorted, sorted_out
from policyeng.bundle import Bundle, load_bundle
from policyeng.models import Blame, Decision, Denial, ExemptionMark, Finding, JsonObject, Outcome, Severity, Snapshot
from policyeng.models import Unknown as Reason
from policyeng.sources import ChangesRead
from tests.bundles import WORKSPACE, deny_when, rego, snapshot, workspace, write

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
MARK = ExemptionMark(id="E", category="waiver", reason="r")
KIND = "Microsoft.MachineLearningServices/workspaces"
FAIL, ERROR, UNKNOWN = Outcome.FAIL, Outcome.ERROR, Outcome.UNKNOWN


def finding(outcome: Outcome, *denials: Denial, resource: str = WORKSPACE, exempt: bool = False) -> Finding:
    """A finding about a workspace."""
    return Finding(
        policy="T-A-1",
        title="t",
        severity=Severity.HIGH,
        resource=resource,
        resource_type=KIND,
        outcome=outcome,
        denials=denials,
        unknowns=() if outcome is FAIL else (Reason(msg="m", path="/x"),),
        exemption=MARK if exempt else None,
    )


def denial(actual: object = 1, path: str = "/properties/x", msg: str = "m", expected: object = 0) -> Denial:
    """A denial."""
    return Denial(msg=msg, path=path, actual=actual, expected=expected)


def compared(
    before: Sequence[Finding], after: Sequence[Finding], *, there: bool = True, touched: bool = False
) -> Sorted:
    """The comparison where the change is of the workspace, or of another one."""
    return sorted_out(before, after, {WORKSPACE.lower()} if there else set(), lambda _: touched)


def lists(sorted_findings: Sorted) -> dict[str, list[Outcome]]:
    """The outcomes in those of its lists that have any."""
    return {name: [one.outcome for one in found] for name, found in sorted_findings._asdict().items() if found}


@pytest.mark.parametrize("outcome", [UNKNOWN, ERROR])
def test_what_cannot_be_decided_is_old_only_where_nothing_that_it_looks_at_changed(outcome: Outcome) -> None:
    """On what is changed and elsewhere; the query about the policy has the finding of before."""
    before, after = [finding(outcome)], [finding(outcome)]

    for there in (True, False):
        assert lists(compared(before, after, there=there, touched=True)) == {"introduced": [outcome]}
    assert lists(compared(before, after)) == {"there": [outcome]}
    assert lists(compared(before, after, there=False)) == ({"elsewhere": [ERROR]} if outcome is ERROR else {})

    queried: list[Finding] = []
    sorted_out(before, after, set(), lambda one: queried.append(one) or True)  # type: ignore[func-returns-value]
    assert queried == before
    assert queried[0] is before[0]


@pytest.mark.parametrize("before", [FAIL, ERROR, UNKNOWN, None])
@pytest.mark.parametrize("after", [FAIL, ERROR, UNKNOWN])
@pytest.mark.parametrize("there", [True, False])
def test_another_outcome_is_new(before: Outcome | None, after: Outcome, there: bool) -> None:
    """As where nothing was found; also where what failed before cannot be decided any more."""
    if before is after:
        return
    earlier = [] if before is None else [finding(before, *([denial()] if before is FAIL else []))]
    later = [finding(after, *([denial()] if after is FAIL else []))]
    ended = before in (FAIL, ERROR) and after is UNKNOWN

    found = lists(compared(earlier, later, there=there))
    assert found == {"introduced": [after], **({"cleared": [before]} if ended else {})}


def test_a_failure_is_old_where_each_of_its_denials_was_there() -> None:
    """With what it found on what is changed; elsewhere by its message and path alone, each as often as before."""
    one, other = denial(1), denial(2)

    def is_old(before: Sequence[Denial], after: Sequence[Denial], *, there: bool) -> bool:
        found = compared([finding(FAIL, *before)], [finding(FAIL, *after)], there=there, touched=True)
        assert found.introduced or found.there or found.elsewhere
        assert not found.cleared
        return not found.introduced

    for there in (True, False):
        assert is_old([one], [one], there=there)
        assert is_old([one, other], [one], there=there)
        assert not is_old([one], [one, one], there=there)
        assert not is_old([one], [denial(1, path="/properties/y")], there=there)
        assert not is_old([one], [denial(1, msg="n")], there=there)
        assert is_old([denial(path="/list/0/x")], [denial(path="/list/3/x")], there=there)
        assert is_old([denial(path="/list/0")], [denial(path="/list/3")], there=there)
        assert not is_old([denial(path="/list/0x")], [denial(path="/list/3x")], there=there)
    assert not is_old([one], [other], there=True)
    assert not is_old([one], [denial(1, expected=5)], there=True)
    assert is_old([one], [other], there=False)
    assert is_old([one], [denial(1, expected=5)], there=False)


def test_denials_of_several_findings_of_before_count_together() -> None:
    """A workload may have the id of the resource that it comes from, and findings do not distinguish the two."""
    before = [finding(FAIL, denial(1)), finding(FAIL, denial(2))]

    assert lists(compared(before, [finding(FAIL, denial(1), denial(2))])) == {"there": [FAIL]}


def test_an_accepted_failure_is_no_reason_to_let_one_through_that_is_not() -> None:
    """And what is accepted still is shown where it is new or on what is changed."""
    accepted, open_ = finding(FAIL, denial(), exempt=True), finding(FAIL, denial())

    assert lists(compared([accepted], [open_])) == {"introduced": [FAIL]}
    assert lists(compared([open_], [accepted])) == {"exempted": [FAIL], "cleared": [FAIL]}
    assert lists(compared([accepted], [accepted])) == {"exempted": [FAIL]}
    assert lists(compared([accepted], [accepted], there=False)) == {}
    assert lists(compared([open_], [accepted], there=False)) == {"cleared": [FAIL]}
    assert lists(compared([], [accepted], there=False)) == {"exempted": [FAIL]}
    assert lists(compared([accepted], [], there=False)) == {}


def test_what_passes_is_in_no_list_and_ends_what_failed() -> None:
    """Failures and errors of before; what could not be decided before is none."""
    passing = finding(Outcome.PASS)

    for outcome, ended in ((FAIL, [FAIL]), (ERROR, [ERROR]), (UNKNOWN, [])):
        found = compared([finding(outcome)], [passing])
        assert lists(found) == ({"cleared": ended} if ended else {})
    assert lists(compared([finding(FAIL)], [])) == {"cleared": [FAIL]}
    other = f"{WORKSPACE}2"
    assert lists(compared([finding(FAIL, resource=other)], [finding(FAIL)])) == {
        "introduced": [FAIL],
        "cleared": [FAIL],
    }


def test_resources_are_distinguished_by_id_without_case_and_by_type() -> None:
    """ARM compares ids so."""
    shouted = finding(FAIL, denial(), resource=WORKSPACE.upper())
    other_type = finding(FAIL, denial()).model_copy(update={"resource_type": "workload"})

    assert lists(compared([finding(FAIL, denial())], [shouted])) == {"there": [FAIL]}
    assert lists(compared([finding(FAIL, denial())], [other_type])) == {"introduced": [FAIL], "cleared": [FAIL]}


# ---------------------------------------------------------------- what a policy looks at

UNDECIDED = (
    f"{deny_when('input.resource.properties.x == -1')}\n"
    'unknown contains {"msg": "cannot tell", "path": "/properties/x"} if endswith(input.resource.id, "/w")'
)
COMPUTE = f"{WORKSPACE}/computes/c"
VM = "Microsoft.Compute/virtualMachines"


def resource(kind: str, name: str, **properties: object) -> JsonObject:
    """A resource of a group."""
    identity = f"/subscriptions/s/resourceGroups/g/providers/{kind}/{name}"
    return {"id": identity, "type": kind, "properties": properties}


HUB = workspace("hub", x=1, up=workspace("top")["id"])
MACHINE = resource(VM, "vm", x=1, of=WORKSPACE)
STATE = snapshot(
    workspace("w", x=1, y=1, hub=HUB["id"]),
    {"id": f"{COMPUTE}", "type": f"{KIND}/computes", "properties": {"x": 1}},
    HUB,
    workspace("top", x=1),
    workspace("other", x=1),
    MACHINE,
)


def patch(target: JsonObject | str, **properties: object) -> JsonObject:
    """A change of some properties."""
    identity = target if isinstance(target, str) else target["id"]
    return {"operation": "patch", "id": identity, "patch": {"properties": properties}}


def bundle_reading(folder: Path, condition: str = "", more: str = "") -> Bundle:
    """A policy that is undecided of one workspace, and reads a condition."""
    body = f"{UNDECIDED}\n{deny_when(condition)}" if condition else UNDECIDED
    return load_bundle(write(folder, {"area/p.rego": rego("p", body, more=more)}))


def decisions(bundle: Bundle, change: Any, before: Any = (), state: Snapshot = STATE, **options: Any) -> Decision:
    """The decision that blames what is introduced; the same from what the change affects and from everything."""
    settings = AdmissionOptions(AS_OF, blame=Blame.INTRODUCED, **options)
    quick = AdmissionSession(bundle, state).decide(change, settings, before)
    assert decided_wholly(bundle, state, changes_of(change), settings, changes_of(before)) == quick
    return quick


HUB_OF = "hub := input.snapshot.by_id[lower(input.resource.properties.hub)]; "
THROUGH = f"{HUB_OF}hub.properties.x == -1"
STEPS = f"{HUB_OF}input.snapshot.by_id[lower(hub.properties.up)].properties.x == -1"
ANY = f'some machine in input.snapshot.by_type["{VM.lower()}"]; machine.properties.x == -1'
NAMING = ANY.replace(";", "; lower(machine.properties.of) == lower(input.resource.id);")
NEAR = (
    f'some key in input.snapshot.by_scope[lower(input.resource.id)]["{KIND.lower()}/computes"]; '
    "input.snapshot.by_id[key].properties.x == -1"
)
WHOLE = 'json.marshal(input.snapshot.resources) == ""'


@pytest.mark.parametrize(
    ("condition", "change", "is_touched"),
    [
        ("", patch(WORKSPACE, x=2), True),
        ("", patch(WORKSPACE, x=1, y=1), False),
        ("", patch(WORKSPACE, y=2), False),
        ("", patch(WORKSPACE.upper(), y=2), False),
        ("", patch(HUB, x=2), False),
        ("", workspace("new", x=2), False),
        (THROUGH, patch(HUB, x=2), True),
        (THROUGH, patch(HUB, y=2), False),
        (THROUGH, patch(workspace("other"), x=2), False),
        (THROUGH, patch(WORKSPACE, hub=None), True),
        (THROUGH, HUB["id"], True),
        (THROUGH, workspace("new", x=2), False),
        (STEPS, patch(workspace("top"), x=2), True),
        (STEPS, patch(HUB, up=None), True),
        (STEPS, patch(HUB, x=2), False),
        (STEPS, patch(workspace("other"), x=2), False),
        (STEPS, patch(workspace("other"), up=None), False),
        (STEPS, patch(workspace("other"), up="/y"), False),
        (NAMING, patch(MACHINE, x=2), True),
        (NAMING, patch(MACHINE, y=2), False),
        (NAMING, patch(MACHINE, of="/x"), True),
        (NAMING, resource(VM, "new", x=2), True),
        (NAMING, resource("Microsoft.Compute/disks", "new", x=2), False),
        (NEAR, patch(COMPUTE, x=2), True),
        (NEAR, patch(COMPUTE, y=2), False),
        (NEAR, {"id": f"{HUB['id']}/computes/c", "type": f"{KIND}/computes"}, False),
        (NEAR, {"id": f"{WORKSPACE}/computes/n", "type": f"{KIND}/computes"}, True),
        (ANY, patch(MACHINE, x=2), True),
        (ANY, patch(MACHINE, y=2), False),
        (WHOLE, patch(MACHINE, z=2), True),
        (WHOLE, ChangesRead(()), False),
    ],
)
def test_an_update_of_what_a_policy_reads_is_never_old(
    tmp_path: Path, condition: str, change: Any, is_touched: bool
) -> None:
    """Whatever was undecided before; and one of anything else is, so that it denies nothing."""
    decision = decisions(bundle_reading(tmp_path, condition), change, strict_unknown=True)

    assert decision.allowed is not is_touched
    assert [one.resource for one in decision.denied] == ([WORKSPACE] if is_touched else [])


@pytest.mark.parametrize(
    ("before", "change", "is_touched"),
    [
        (patch(WORKSPACE, x=2), patch(WORKSPACE, y=2), False),
        (patch(WORKSPACE, x=2), patch(WORKSPACE, x=2), False),
        (patch(WORKSPACE, x=2), patch(WORKSPACE, x=1), True),
        (patch(WORKSPACE, hub=workspace("other")["id"]), patch(HUB, x=2), False),
        (patch(WORKSPACE, hub=workspace("other")["id"]), patch(workspace("other"), x=2), True),
        (HUB["id"], HUB, True),
        ([HUB["id"], HUB], patch(HUB, x=2), True),
    ],
)
def test_what_was_made_already_is_part_of_the_state_before(
    tmp_path: Path, before: Any, change: Any, is_touched: bool
) -> None:
    """What differs is reported from there on."""
    bundle = bundle_reading(tmp_path, THROUGH)

    assert decisions(bundle, change, before, strict_unknown=True).allowed is not is_touched


@pytest.mark.parametrize(("given", "is_touched"), [([], False), (["role"], True)])
def test_what_is_read_only_with_a_parameter_counts_with_it_alone(
    tmp_path: Path, given: list[str], is_touched: bool
) -> None:
    """As the condition has it."""
    more = "parameters: {roles: {type: array, default: []}}"
    bundle = bundle_reading(tmp_path, f"count(input.parameters.roles) > 0; {ANY}", more)
    options = AdmissionOptions(AS_OF, strict_unknown=True, blame=Blame.INTRODUCED)

    basis = AdmissionSession(bundle, STATE, {"T-A-1": {"roles": given}})

    assert basis.decide(patch(MACHINE, x=2), options).allowed is not is_touched


@pytest.mark.parametrize(
    ("change", "is_touched"), [(patch(WORKSPACE, y=2), True), (patch(WORKSPACE, z=2), False), (patch(HUB, y=2), False)]
)
def test_what_is_read_of_a_workspace_counts_for_what_lies_in_it(tmp_path: Path, change: Any, is_touched: bool) -> None:
    """And of no other workspace."""
    body = UNDECIDED.replace('endswith(input.resource.id, "/w")', "input.workspace.properties.y")
    text = rego("p", body)
    bundle = load_bundle(write(tmp_path, {"area/p.rego": text.replace(f"[{KIND}]", f"[{KIND}/computes]")}))

    assert decisions(bundle, change, strict_unknown=True).allowed is not is_touched


def test_a_value_that_is_equal_in_python_alone_is_another(tmp_path: Path) -> None:
    """As 1 and true."""
    bundle = bundle_reading(tmp_path)

    assert not decisions(bundle, patch(WORKSPACE, x=True), strict_unknown=True).allowed


def test_what_can_no_longer_be_read_is_a_difference(tmp_path: Path) -> None:
    """Though the document is the same."""
    bundle = bundle_reading(tmp_path)
    there = STATE.resources[0]
    put = {"operation": "replace", "id": there["id"], "resource": there}

    assert decisions(bundle, put, strict_unknown=True).allowed
    hidden = put | {"unreadable": {"/properties/x": "an expression"}}
    assert not decisions(bundle, hidden, strict_unknown=True).allowed
    assert decisions(bundle, put | {"unreadable": {"/properties/y": "an expression"}}, strict_unknown=True).allowed


def test_what_could_not_be_decided_before_either_is_reported(tmp_path: Path) -> None:
    """Of what is changed, whatever counts as a failure; of anything else the change has nothing to do with it."""
    bundle = bundle_reading(tmp_path)

    for strict in (False, True):
        touched = decisions(bundle, patch(WORKSPACE, y=2), strict_unknown=strict)
        assert (touched.allowed, [one.policy for one in touched.undecided]) == (True, ["T-A-1"])
        assert decisions(bundle, patch(HUB, x=2), strict_unknown=strict).undecided == ()
