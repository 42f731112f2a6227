"""Planning: the pairs found by columns are those that looking at every policy and subject gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from policyeng.bundle import Bundle, Policy, PolicyHeader
from policyeng.evaluation.matching import plan
from policyeng.evaluation.pointers import value_at
from policyeng.evaluation.prepared_snapshot import PreparedSnapshot, estate_of
from policyeng.facts import Facts
from policyeng.models import Resource, Snapshot

TYPES = ["Microsoft.A/a", "microsoft.a/A", "Microsoft.B/b"]
POINTERS = ["/properties/x", "/properties/y", "/properties/list/0", "/a~1b"]
VALUES: st.SearchStrategy[Any] = st.sampled_from(["One", "one", "TWO", True, False, 1, 0, 7, 1.0, None, [], {}, "1"])

wheres = st.dictionaries(
    st.sampled_from(POINTERS),
    st.lists(st.sampled_from(["one", "Two", True, False, 1, 0, 7]), min_size=1, max_size=3),
    max_size=2,
)
evaluated_types = st.lists(
    st.builds(lambda kind, where: {"type": kind, "where": where}, st.sampled_from(TYPES), wheres), min_size=1
)
inspections = st.lists(st.sampled_from([*POINTERS, "/properties", "workspace:/properties/x"]), max_size=2, unique=True)
headers = st.builds(
    lambda evaluated, inspected: PolicyHeader.model_validate(
        {"id": "T-1", "title": "t", "severity": "low", "judges": evaluated, "inspects": inspected}
    ),
    evaluated_types,
    inspections,
)
policies = st.builds(lambda header: Policy(header=header, area="", name="p", file="p.py"), headers)
bodies = st.builds(
    lambda kind, x, y, first, slashed: {
        "type": kind,
        "properties": {"x": x, "y": y, "list": [first]},
        **({} if slashed is None else {"a/b": slashed}),
    },
    st.sampled_from(TYPES),
    VALUES,
    VALUES,
    VALUES,
    VALUES,
)
gaps = st.dictionaries(
    st.sampled_from(["/properties/x", "/properties/*/z", "/properties"]), st.just("lost"), max_size=2
)


def bundle_of(given: list[Policy]) -> Bundle:
    """A bundle of policies and nothing else."""
    return Bundle(name="t", revision="", digest="", policies=tuple(given), modules=(), data={})


def snapshot_of(given: list[tuple[dict[str, Any], dict[str, str]]]) -> Snapshot:
    """Resources with what is unreadable of them."""
    rows = [({"id": f"/r/{index}", **body}, missing) for index, (body, missing) in enumerate(given)]
    unreadable = {str(body["id"]): missing for body, missing in rows if missing}
    return Snapshot.model_validate({"resources": [body for body, _ in rows], "unreadable": unreadable})


def takes(where: Mapping[str, Any], subject: Resource) -> bool:
    """Whether a subject has an allowed value at every pointer; one that is unreadable may have it."""
    return all(is_allowed(subject, pointer, allowed) for pointer, allowed in where.items())


def is_allowed(subject: Resource, pointer: str, allowed: tuple[str | bool | int, ...]) -> bool:
    """Texts compare without case, whole numbers by value, everything else only with itself."""
    if any(overlap(pointer, other) for other in subject.unreadable):
        return True
    value = value_at(subject.document, pointer)
    if isinstance(value, str):
        return value.lower() in [entry.lower() for entry in allowed if isinstance(entry, str)]
    return any(value is entry or (type(value) is int and value == entry) for entry in allowed)


def overlap(pointer: str, other: str) -> bool:
    """Whether one pointer is the other or above it."""
    pairs = zip(pointer.split("/"), other.split("/"), strict=False)
    return all(left == right or "*" in (left, right) for left, right in pairs)


def walked(bundle: Bundle, estate: PreparedSnapshot) -> list[tuple[int, int]]:
    """Every pair, found by trying each policy on each subject."""
    return [
        (number, index)
        for number, policy in enumerate(bundle.policies)
        for index, subject in enumerate(estate.subjects)
        if any(one.type.lower() == subject.target_type and takes(one.where, subject) for one in policy.header.judges)
    ]


@settings(deadline=None)
@given(st.lists(policies, max_size=3), st.lists(st.tuples(bodies, gaps), max_size=6))
def test_columns_give_what_a_walk_gives(given: list[Policy], rows: list[tuple[dict[str, Any], dict[str, str]]]) -> None:
    """The same pairs in the same order; one is unknown where a field that may narrow it out cannot be read."""
    bundle, estate = bundle_of(given), estate_of(snapshot_of(rows), Facts({}))
    planned = list(plan(bundle, estate))
    pairs = [(column.policy, position) for column in planned for position in column.all()]
    assert pairs == walked(bundle, estate)
    undecided = {(column.policy, position) for column in planned for position in column.undecided}
    for policy, position in pairs:
        header, subject = bundle.policies[policy].header, estate.subjects[position]
        mine = [evaluated for evaluated in header.judges if evaluated.type.lower() == subject.target_type]
        is_taken = any(surely_takes(one.where, subject) for one in mine)
        assert ((policy, position) in undecided) is not is_taken


def surely_takes(where: Mapping[str, Any], subject: Resource) -> bool:
    """Whether a subject has an allowed value at every pointer, and all of them can be read."""
    lost = any(overlap(pointer, other) for other in subject.unreadable for pointer in where)
    return not lost and takes(where, subject)
