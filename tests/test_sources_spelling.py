"""Names of members as ARM spells them, known wherever policies or workloads look at them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from policyeng.bundle import load_bundle
from policyeng.bundle.cases import baselines_of
from policyeng.facts.arm_casing import as_arm_reads
from policyeng.models import lowered
from tests.conftest import ROOT

ML = "Microsoft.MachineLearningServices/workspaces"
#: Objects with names of the user in baselines.
_USERS = {"tags", "kvTags", "environmentVariables", "inputs", "outputs", "jobs", "traffic", "instanceTypes"}


def members(value: object, above: str = "") -> Iterator[str]:
    """The names of all members of a document, those of the user aside."""
    if isinstance(value, list):
        yield from (name for inner in value for name in members(inner, above))
    if isinstance(value, dict):
        for name, inner in value.items():
            if above not in _USERS:
                yield name
            yield from members(inner, name)


def test_every_name_that_policies_look_at_is_known() -> None:
    """A name of a baseline that is used in a policy or in deriving workloads is read in other letters, too."""
    paths = [*(ROOT / "policies").rglob("*.rego"), *(ROOT / "policies").rglob("*.py")]
    paths += [*(ROOT / "policyeng" / "workloads").glob("*.py"), *(ROOT / "policyeng" / "facts").glob("*.py")]
    code = "".join(
        path.read_text(encoding="utf-8") for path in paths if not path.stem.endswith(("_test", "arm_casing"))
    )
    words = set(re.findall(r"\w+", code))
    unknown = set()
    for resource in baselines_of(load_bundle()).resources.values():
        for name in {*members(resource["properties"])} & words:
            spelled = as_arm_reads({"properties": {name.swapcase(): 1}}, resource["type"]).part
            if name not in spelled["properties"] and name != lowered(name):
                unknown.add((resource["type"], name))

    assert not unknown


def test_places_in_the_document_are_kept() -> None:
    """Those with another name there, with their children."""
    spelled = as_arm_reads({"Properties": {"PublicNetworkAccess": " a "}, "tags": {"VmSize": " b "}}, ML)

    assert spelled.part == {"properties": {"publicNetworkAccess": "a"}, "tags": {"VmSize": " b "}}
    assert spelled.fields["/properties"] == "/Properties"
    assert spelled.fields["/properties/publicNetworkAccess"] == "/Properties/PublicNetworkAccess"


def test_a_document_in_the_spelling_of_arm_is_the_same_object() -> None:
    """So that it costs nothing; names of users, and unknown ones, are left as they are."""
    part = {"properties": {"VMSIZES": 1, "jobs": {"VmSize": {}, "vmsize": {}}, "A": 1, "a": 2}}
    assert as_arm_reads(part, ML).part is part
    assert not as_arm_reads(part, ML).twice
