"""What policies say with nothing in sight but what their headers declare."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import pytest

import policyeng
from policyeng.bundle import Policy
from policyeng.bundle.parameters import parameters_of
from policyeng.facts.ids import workspace_of
from policyeng.models import JsonObject, lowered
from policyeng.verify.case_runs import Prepared, prepared_cases
from policyeng.verify.cases import baselines_of, required_cases
from policyeng.verify.drawing.examples import Example
from policyeng.verify.laws.declared import Shown, said_by, unlike_declared
from policyeng.verify.laws.law import Grounds, Trial, Violation
from tests.bundles import deny_when, rego, workspace, write

BUNDLE = policyeng.load_bundle()
BASELINES = baselines_of(BUNDLE)
#: Of a policy that consults nothing every so many-th case is judged.
EVERY = 5
AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
GROUP = "/subscriptions/s/resourceGroups/g/providers"
MACHINE = f"{GROUP}/Microsoft.Compute/virtualMachines/vm"
READS_MACHINE = 'not input.snapshot.by_id[lower(input.resource.properties.machine)].properties.licence == "x"'
THROUGH = "type: Microsoft.Compute/virtualMachines, through: /properties/machine"


def differing(policy: Policy, case: Prepared) -> Iterator[str]:
    """What a policy reads undeclared, if in a case it says something else when it is shown only what it declares."""
    parameters = parameters_of(BUNDLE, {policy.id: case.case.parameters})
    shown = Shown.of(BUNDLE, case.snapshot, parameters, case.as_of)
    pairs = [pair for pair in shown.pairs(policy) if is_of(shown, pair.subject, case.identity)]
    for pair, judgement in zip(pairs, shown.with_all(pairs), strict=True):
        if said_by(judgement) != said_by(shown.with_declared(pair)):
            yield f"{case.name}: {', '.join(shown.undeclared(pair))}"


def is_of(shown: Shown, index: int, identity: str) -> bool:
    """Whether a subject is what the finding of a case is about."""
    return lowered(shown.estate.subjects[index].reported_id) == lowered(identity)


@pytest.mark.parametrize("policy", BUNDLE.policies, ids=lambda policy: policy.id)
def test_in_no_case_a_policy_reads_what_it_does_not_declare(policy: Policy) -> None:
    """Each case of what consults other resources, and some of what does not, is judged with all else out of sight."""
    cases = prepared_cases(policy, required_cases(policy), BASELINES)
    for case in islice(cases, None, None, 1 if policy.header.consults else EVERY):
        assert list(differing(policy, case)) == []


@pytest.mark.parametrize(
    "policy", [one for one in BUNDLE.policies if one.header.consults], ids=lambda policy: policy.id
)
def test_what_is_declared_is_all_that_is_read_of_odd_neighbours(policy: Policy) -> None:
    """Neither of what has another type than `consults` names, nor of members that Azure knows not, anything is read."""
    for case in islice(prepared_cases(policy, required_cases(policy), BASELINES), None, None, EVERY):
        near = {lowered(case.identity), workspace_of(case.identity)}
        for odd in (retyped, tagged_within):
            resources = [one if lowered(one["id"]) in near else odd(one) for one in case.snapshot.resources]
            snapshot = case.snapshot.model_copy(update={"resources": tuple(resources)})
            assert list(differing(policy, replace(case, snapshot=snapshot))) == [], f"{case.name}, {odd.__name__}"


def retyped(resource: JsonObject) -> JsonObject:
    """A resource of a type that no policy knows."""
    return {**resource, "type": "Microsoft.Other/things"}


def tagged_within(resource: JsonObject) -> JsonObject:
    """A resource with tags where only jobs and other assets have some."""
    stated = resource.get("properties")
    tags = {"data-classification": "regulated", "environment": "dev"}
    return {**resource, "properties": {**(stated if isinstance(stated, dict) else {}), "tags": tags}}


def violation(folder: Path, consults: str, condition: str = READS_MACHINE) -> Violation | None:
    """What is wrong with a policy about a workspace that names a machine."""
    text = rego("a", deny_when(condition), more=f"inspects: [/properties/machine]\nconsults: [{consults}]")
    bundle = policyeng.load_bundle(write(folder, {"area/a/a.rego": text}))
    machine = {"type": "Microsoft.Compute/virtualMachines", "properties": {"licence": "x", "disks": [{"size": 1}]}}
    resources = [workspace(machine=MACHINE), {"id": MACHINE, **machine}, {"id": f"{MACHINE}2", **machine}]
    return unlike_declared(Trial(Grounds(bundle), Example({"resources": resources}, {}, AS_OF)))


def test_a_resource_that_is_not_declared_is_named(tmp_path: Path) -> None:
    """The machine is, and the other one, which no policy reads, is not."""
    found = violation(tmp_path, "")

    assert found is not None
    assert found.policy == "T-A-1"
    assert found.lines[0] == f"it reads: {lowered(MACHINE)}"
    assert found.lines[1:] == ("shown all:          pass", "shown the declared: fail: m (/properties/x)")


def test_a_field_that_is_not_declared_is_out_of_sight(tmp_path: Path) -> None:
    """Of a resource that is declared there are only the fields that are."""
    assert violation(tmp_path / "a", f"{{{THROUGH}, reads: [/properties/disks]}}") is not None
    assert violation(tmp_path / "b", f"{{{THROUGH}, reads: [/properties/LICENCE]}}") is None
    assert violation(tmp_path / "c", f"{{{THROUGH}, reads: [/properties]}}") is None


def test_members_of_lists_keep_their_places(tmp_path: Path) -> None:
    """Of a list of objects, those fields are in sight that are declared with `*`."""
    size = "not input.snapshot.by_id[lower(input.resource.properties.machine)].properties.disks[0].size == 1"

    assert violation(tmp_path / "a", f'{{{THROUGH}, reads: ["/properties/disks/*/name"]}}', size) is not None
    assert violation(tmp_path / "b", f'{{{THROUGH}, reads: ["/properties/disks/*/size"]}}', size) is None
    assert violation(tmp_path / "c", f'{{{THROUGH}, reads: ["/properties/disks/0/size"]}}', size) is None


def test_resources_are_declared_by_whom_they_name(tmp_path: Path) -> None:
    """With `naming` those that name the judged resource are in sight, and others are not."""
    counts = 'count(input.snapshot.by_type["x/notes"]) != 1'
    text = rego("a", deny_when(counts), more="consults: [{type: x/notes, naming: /properties/of, reads: [/type]}]")
    bundle = policyeng.load_bundle(write(tmp_path, {"area/a/a.rego": text}))
    about = workspace()
    note = {"id": f"{GROUP}/x/notes/n", "type": "x/notes", "properties": {"of": about["id"]}}
    other = {**note, "id": f"{GROUP}/x/notes/m", "properties": {"of": "else"}}

    for resources, holds in (([about, note], True), ([about, note, other], False)):
        trial = Trial(Grounds(bundle), Example({"resources": resources}, {}, AS_OF))
        assert (unlike_declared(trial) is None) is holds


@pytest.mark.parametrize(("types", "holds"), [("", True), ('["x/notes"]', False)])
def test_subscriptions_stay_though_their_resources_go(tmp_path: Path, types: str, holds: bool) -> None:
    """Which subscriptions the snapshot takes in is no neighbour's matter; what lies in them is."""
    elsewhere = {"id": "/subscriptions/other/resourceGroups/g/providers/x/notes/n", "type": "x/notes"}
    text = rego("a", deny_when(f'not input.snapshot.by_scope["/subscriptions/other"]{types}'))
    bundle = policyeng.load_bundle(write(tmp_path, {"area/a/a.rego": text}))
    example = Example({"resources": [workspace(), elsewhere]}, {}, AS_OF)

    assert (unlike_declared(Trial(Grounds(bundle), example)) is None) is holds
