"""Law 3: a policy reads what its header says, of whatever stands beside what it judges."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import policyeng
from policyeng.bundle import Bundle
from policyeng.verify.drawing.examples import Example, examples_of
from policyeng.verify.laws.law import Grounds, Trial, Violation
from policyeng.verify.laws.neighbours import LAW
from tests.bundles import deny_when, rego, workspace, write

BROKEN = Path(__file__).parent / "broken" / "neighbours"
MACHINE = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/vm"
#: Denies a workspace whose machine states another licence, or none.
READS_MACHINE = 'not input.snapshot.by_id[lower(input.resource.properties.machine)].properties.licence == "x"'
THROUGH = "through: /properties/machine"


def found(bundle: Bundle, examples: int, seed: int = 3) -> list[Violation]:
    """What the law finds wrong with a bundle in so many drawn examples."""
    drawn = enumerate(islice(examples_of(bundle, seed), examples))
    grounds = Grounds(bundle)
    violations = (LAW.violated(Trial(grounds, example, chance=f"{seed}/{number}")) for number, example in drawn)
    return [violation for violation in violations if violation]


def found_beside_a_machine(folder: Path, consults: str, condition: str = READS_MACHINE) -> set[str]:
    """What is done to neighbours in the violations of a policy that states what it consults, in 200 chances."""
    text = rego("a", deny_when(condition), more=f"inspects: [/properties/machine]\nconsults: [{consults}]")
    grounds = Grounds(policyeng.load_bundle(write(folder, {"area/a/a.rego": text})))
    machine = {"type": "Microsoft.Compute/virtualMachines", "properties": {"licence": "x", "size": "s"}}
    resources = [workspace(machine=MACHINE), {"id": MACHINE, **machine}, {"id": f"{MACHINE}2", **machine}]
    example = Example({"resources": resources}, {}, datetime(2026, 6, 1, tzinfo=UTC))
    violations = (LAW.violated(Trial(grounds, example, chance=str(number))) for number in range(200))
    return {
        line.replace(MACHINE.lower(), "vm") for violation in violations if violation for line in violation.lines[:-2]
    }


def test_a_neighbour_that_is_declared_may_change_the_finding(tmp_path: Path) -> None:
    """What a header says that the policy reads is its reach, and no violation."""
    assert found_beside_a_machine(tmp_path, f"{{{THROUGH}, reads: [/properties/licence]}}") == set()


def test_a_neighbour_that_is_not_declared_is_named(tmp_path: Path) -> None:
    """Taken away or changed, the machine is named, and nothing else is, however much was changed at once."""
    undeclared = found_beside_a_machine(tmp_path, "")

    assert "taken away: vm" in undeclared
    assert "changed: vm:/properties/licence" in undeclared
    assert all(line.partition(": ")[2].partition(":")[0] == "vm" for line in undeclared)


def test_every_field_that_is_read_is_declared(tmp_path: Path) -> None:
    """Of a neighbour that is declared, another field than those of `reads` may not change the finding."""
    other_field = found_beside_a_machine(tmp_path, f"{{{THROUGH}, reads: [/properties/size]}}")

    assert other_field
    assert all(line.startswith(("changed: vm:/properties", "it reads: vm")) for line in other_field)


def test_a_type_alone_is_every_resource_of_it(tmp_path: Path) -> None:
    """Such an entry takes in what lies in other subscriptions; without it, an estate there is seen to matter."""
    counts = 'count(input.snapshot.by_type["microsoft.compute/virtualmachines"]) > 2'
    declared = "{type: Microsoft.Compute/virtualMachines, reads: [/type]}"

    assert found_beside_a_machine(tmp_path / "a", declared, counts) == set()
    assert any("-beside`" in line for line in found_beside_a_machine(tmp_path / "b", "", counts))


def test_our_policies_read_what_they_declare() -> None:
    """On a few examples."""
    assert found(policyeng.load_bundle(), 25) == []


def test_resources_that_are_counted_without_being_declared_are_found() -> None:
    """The policy is blamed, and the lines name what was done to which neighbour."""
    violations = found(policyeng.load_bundle(BROKEN), 60)

    assert {violation.policy for violation in violations} == {"BROKEN-NEIGHBOURS-001"}
    assert all("under `consults`" in violation.message for violation in violations)
    assert all(violation.lines[0].startswith(("added: ", "taken away: ", "it reads: ")) for violation in violations)
