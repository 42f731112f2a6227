"""Names of members as ARM spells them, known wherever policies or workloads look at them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from policyeng.bundle import load_bundle
from policyeng.bundle.cases import baselines_of
from policyeng.facts.arm_casing import as_arm_reads

ML = "Microsoft.MachineLearningServices/workspaces"


def members(value: object, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of all members of a document."""
    if isinstance(value, list):
        yield from (path for inner in value[:1] for path in members(inner, (*above, "0")))
    if isinstance(value, dict):
        for name, inner in value.items():
            yield (*above, name)
            yield from members(inner, (*above, name))


def with_other_letters(value: object, path: tuple[str, ...]) -> object:
    """The document with the last name of a path in other letters."""
    first, *rest = path
    if isinstance(value, list):
        return [with_other_letters(value[0], tuple(rest)), *value[1:]]
    assert isinstance(value, dict)
    name = first if rest else first.swapcase()
    return {
        name if key == first else key: with_other_letters(inner, tuple(rest)) if key == first and rest else inner
        for key, inner in value.items()
    }


def test_every_name_of_the_baselines_is_known() -> None:
    """A member in other letters is read, wherever it is; tags and other maps have names of the user."""
    users, count = Counter[str](), 0
    for resource in baselines_of(load_bundle()).resources.values():
        for path in {*members({"properties": resource["properties"]})}:
            above, name = path[:-1], path[-1]
            if name.swapcase() == name:
                continue
            document = with_other_letters(resource, path)
            assert isinstance(document, dict)
            if as_arm_reads(document, resource["type"]).part == resource:
                count += 1
            else:
                users[f"{resource['type'].partition('/')[2]}/{'/'.join(above)}"] += 1

    assert count > 500
    assert dict(users) == {}


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
