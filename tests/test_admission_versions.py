"""Objects of Azure Service Operator in every version that it serves: none is a way around a policy."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from copy import deepcopy
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import policyeng
from policyeng.admission import AdmissionOptions
from policyeng.admission.changes import apply_changes
from policyeng.bundle import Bundle, Policy
from policyeng.bundle.cases import baselines_of, read_cases
from policyeng.bundle.policy_selection import selected
from policyeng.cli import run
from policyeng.evaluation import EvaluationOptions, evaluate_prepared, prepare
from policyeng.models import Blame, Change, Decision, JsonObject, Operation, Snapshot, lowered
from policyeng.server.admission_review import review
from policyeng.sources import parse_changes, read_inputs
from policyeng.sources.kubernetes.objects import KINDS
from policyeng.sources.kubernetes.single_object import BesideSnapshot
from policyeng.sources.parsed import Placed
from policyeng.testing.runner import prepared_cases
from tests.cluster import GROUP, object_of_resource, review_of, workspace_object
from tests.cluster import READ_KINDS as READ
from tests.effort import sweep

#: The rank of an outcome; what is not evaluated has the lowest.
RANK = {"not_judged": 0, "pass": 0, "unknown": 1, "fail": 2, "error": 2}
OLD, NEW = KINDS["machinelearningservices.azure.com", "workspace"].versions


@cache
def built_in() -> Bundle:
    """The policies that come with it."""
    return policyeng.load_bundle()


# ---------------------------------------------------------------- every kind, version and policy


def without_unknown_keys(document: JsonObject, supplied: BesideSnapshot, identity: str) -> JsonObject:
    """An object with the keys that its version has."""
    stripped = deepcopy(document)
    for remark in supplied.read(document, identity).remarks:
        if remark.message.startswith("unknown key"):
            *above, last = remark.place.split("/")[1:]
            here = stripped
            for key in above:
                here = here[key]
            here.pop(last, None)
    return stripped


@cache
def read_in(text: str, version: str) -> tuple[Change, Change] | None:
    """A resource, as JSON, read from objects with the same content: in the newest version, and in another one."""
    resource = json.loads(text)
    group, name, kind = READ[lowered(str(resource["type"]))]
    identity, supplied = str(resource["id"]), BesideSnapshot(Snapshot.model_validate({"resources": [resource]}))
    document = object_of_resource(resource, group, name, kind, version)
    document = without_unknown_keys(document, supplied, identity)
    latest = {**document, "apiVersion": f"{group}/{kind.versions[-1]}"}
    newest, older = (supplied.read(each, identity).entry for each in (latest, document))
    if not (isinstance(newest, Placed) and isinstance(older, Placed)):
        return None
    return replaced(newest), replaced(older)


def read_at(snapshot: Snapshot, age: int) -> tuple[Snapshot, Snapshot, set[str]] | None:
    """A snapshot whose resources are read from objects: in the newest version, and so many versions earlier.

    Returns:
        both snapshots, of objects with the same content, and the kinds of which there is an earlier version; None where
        some object is no object.
    """
    newest, older, aged = list[Change](), list[Change](), set[str]()
    for resource in snapshot.resources:
        if lowered(str(resource["type"])) not in READ:
            continue
        _, name, kind = READ[lowered(str(resource["type"]))]
        version = kind.versions[max(len(kind.versions) - 1 - age, 0)]
        read = read_in(json.dumps(resource), version)
        if read is None:
            return None
        newest.append(read[0])
        older.append(read[1])
        if len(kind.versions) > age:
            aged.add(name)
    first, second = (apply_changes(snapshot, changes).snapshot for changes in (newest, older))
    return first, second, aged


def reading(snapshot: Snapshot) -> object:
    """What policies can read of a snapshot; not why something cannot be read, which names the version."""
    carried = {key: sorted(entry.pointers) for key, entry in snapshot.carried.items()}
    unread = {key: sorted(notes) for key, notes in snapshot.unreadable.items()}
    return json.dumps([snapshot.resources, unread, carried], sort_keys=True)


def replaced(entry: Placed) -> Change:
    """The change that puts what was read."""
    return Change(
        operation=Operation.REPLACE,
        id=entry.resource["id"],
        resource=entry.resource,
        unreadable=entry.unreadable,
        carried=entry.carried,
    )


def outcome(policy: Policy, snapshot: Snapshot, identity: str, case: Any) -> str:
    """The outcome of one policy for a resource."""
    alone = selected(built_in(), [policy.id])
    prepared = prepare(alone, snapshot, {policy.id: case.case.parameters})
    found = evaluate_prepared(prepared, EvaluationOptions(case.as_of)).findings
    return next((one.outcome.value for one in found if lowered(one.resource) == lowered(identity)), "not_judged")


@cache
def baselines() -> Any:
    """What the cases of the built-in policies are patches of."""
    return baselines_of(built_in())


def failing_cases(policy: Policy) -> Iterator[Any]:
    """The cases of a policy that fail, of what an object can request."""
    file = read_cases(policy)
    for case in prepared_cases(policy, file, baselines()) if file else ():
        kinds = {
            lowered(str(one["type"])) for one in case.snapshot.resources if lowered(one["id"]) == lowered(case.identity)
        }
        if case.expected == "fail" and kinds & READ.keys():
            yield case


POLICIES = list(policyeng.load_bundle().policies)


@pytest.mark.parametrize("policy", sweep(POLICIES, 8, lambda policy: policy.id))
def test_a_violation_in_any_version_is_never_weaker_than_in_the_newest(policy: Policy) -> None:
    """Of the policy's own failing cases, with all that lies around them read in that version, too."""
    seen = 0
    for case in failing_cases(policy):
        for age in range(1, max(len(kind.versions) for _, _, kind in READ.values())):
            sides = read_at(case.snapshot, age)
            if sides is None or not sides[2]:
                break
            seen += 1
            if reading(sides[0]) != reading(sides[1]):  # what reads alike is evaluated alike
                newest, older = (outcome(policy, side, case.identity, case) for side in sides[:2])
                assert RANK[older] >= RANK[newest], (case.name, age, newest, older)
    if any(lowered(entry.type) in READ for entry in policy.header.judges) and any(True for _ in failing_cases(policy)):
        assert seen, "no case of the policy was tried"


@pytest.mark.slow
def test_violations_are_failures_in_the_newest_version_too() -> None:
    """So that the comparison is of failures, for every kind that a policy evaluates."""
    failing: dict[str, set[str]] = {}
    for policy in POLICIES:
        for case in failing_cases(policy):
            kind = lowered(
                next(
                    str(one["type"]) for one in case.snapshot.resources if lowered(one["id"]) == lowered(case.identity)
                )
            )
            if policy.id in failing.get(kind, ()):
                continue
            sides = read_at(case.snapshot, 0)
            if sides is not None and outcome(policy, sides[0], case.identity, case) == "fail":
                failing.setdefault(kind, set()).add(policy.id)

    evaluated = {
        lowered(one.type)
        for policy in POLICIES
        if any(True for _ in failing_cases(policy))
        for one in policy.header.judges
    }
    assert failing.keys() == evaluated & READ.keys()
    assert len(failing["microsoft.machinelearningservices/workspaces"]) > 2
    assert len(failing["microsoft.machinelearningservices/workspaces/computes"]) > 10


def test_every_kind_that_is_read_has_its_versions() -> None:
    """Each once, by their dates."""
    for _, _, kind in READ.values():
        assert list(kind.versions) == sorted(set(kind.versions))
        assert kind.versions


# ---------------------------------------------------------------- the gate


def workspace(version: str, access: str, **spec: Any) -> JsonObject:
    """A workspace in a version."""
    document = workspace_object(publicNetworkAccess=access, azureName="ws", **spec)
    document["spec"]["owner"] = {"armId": GROUP}
    return {**document, "apiVersion": f"machinelearningservices.azure.com/{version}"}


def decided(document: JsonObject, *, strict: bool = False) -> tuple[bool, list[str]]:
    """Whether a review is allowed with an empty state, and the policies that deny it."""
    state = Snapshot()
    bundle = selected(built_in(), ["AML-NET-001"])
    denied: list[str] = []

    def admit(prior: Sequence[Change], changes: Sequence[Change]) -> Decision:
        options = {"strict_unknown": strict, "blame": Blame.INTRODUCED}
        settings = AdmissionOptions(datetime(2026, 6, 1, tzinfo=UTC), **options)  # type: ignore[arg-type]  # of one each
        decision = policyeng.admit(
            bundle, state, changes, as_of=settings.as_of, before=prior, strict_unknown=strict, blame=settings.blame
        )
        denied.extend(finding.policy for finding in decision.denied)
        return decision

    response = review(document, BesideSnapshot(state), admit).answer["response"]
    return response["allowed"], denied


@pytest.mark.attack
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("version", [OLD, NEW, "v1beta20210701", f"{OLD}storage", "v20990101"])
def test_an_open_workspace_is_refused_in_every_version_and_a_closed_one_is_not(version: str, strict: bool) -> None:
    """When it is made, and when it is changed from one in any version; also where an update hides what it was."""
    opened, closed = workspace(version, "Enabled"), workspace(version, "Disabled")

    assert decided(review_of("CREATE", opened), strict=strict) == (False, ["AML-NET-001"])
    assert decided(review_of("UPDATE", opened, closed), strict=strict) == (False, ["AML-NET-001"])
    assert decided(review_of("CREATE", closed), strict=strict) == (True, [])
    assert decided(review_of("UPDATE", closed, opened), strict=strict) == (True, [])
    assert decided(
        review_of("UPDATE", {**opened, "metadata": {**opened["metadata"], "labels": {"a": "b"}}}, opened)
    ) == (True, [])


def test_a_field_that_a_version_does_not_have_is_not_read_in_it() -> None:
    """A project is not evaluated, and an old version cannot make one: the API server removes what it does not know."""
    assert decided(review_of("CREATE", workspace(NEW, "Enabled", kind="Project"))) == (True, [])
    assert decided(review_of("CREATE", workspace(OLD, "Enabled", kind="Project"))) == (False, ["AML-NET-001"])


@pytest.mark.attack
def test_only_an_update_of_the_status_is_not_looked_at() -> None:
    """It leaves the object as it is; a creation does not, whatever it claims to be of."""
    opened, closed = workspace(NEW, "Enabled"), workspace(NEW, "Disabled")

    assert decided(review_of("UPDATE", opened, opened, subResource="status")) == (True, [])
    for document in (
        review_of("CREATE", opened, subResource="status"),
        review_of("UPDATE", opened, closed, subResource="scale"),
    ):
        assert decided(document) == (False, ["AML-NET-001"])


PLACEHOLDERS = ["${X}", "{{x}}", "<x>", "$X", "__X__", "$(X)"]


@pytest.mark.attack
@pytest.mark.parametrize("text", PLACEHOLDERS)
def test_objects_of_the_api_server_have_no_placeholders(text: str) -> None:
    """Text is text; in a file it is filled in by a tool, and the value is unknown."""
    opened = workspace(NEW, text)

    assert decided(review_of("CREATE", opened)) == (False, ["AML-NET-001"])
    assert decided(review_of("UPDATE", opened, workspace(NEW, "Disabled"))) == (False, ["AML-NET-001"])
    assert decided(review_of("CREATE", {**opened, "spec": {**opened["spec"], "azureName": text}})) == (
        False,
        ["AML-NET-001"],
    )
    [change] = parse_changes(json.dumps(opened).encode(), "change.json").changes
    assert change.resource is not None
    assert change.resource["properties"]["publicNetworkAccess"] == text
    assert "/properties/publicNetworkAccess" not in change.unreadable

    def unread(document: JsonObject) -> bool:
        read = read_inputs(["-"], stdin=json.dumps(document).encode()).snapshot
        return any("/properties/publicNetworkAccess" in notes for notes in read.unreadable.values())

    assert unread(opened)
    assert not unread(review_of("CREATE", opened))


def test_the_commands_decide_on_an_old_version_as_on_the_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`check` and `admit`, with the exit codes of failures."""
    monkeypatch.chdir(tmp_path)
    Path("empty.json").write_text('{"snapshotVersion": 1, "resources": []}', encoding="utf-8")
    tags = dict.fromkeys(("owner", "cost-center", "environment", "data-classification"), "x")
    for version in (OLD, NEW):
        for access, code in (("Enabled", 1), ("Disabled", 0)):
            Path("it.json").write_text(json.dumps(workspace(version, access, tags=tags)), encoding="utf-8")
            assert run(["admit", "it.json", "--snapshot", "empty.json", "--fail-on", "high"]) == code
            assert run(["check", "it.json", "--fail-on", "high"]) == code
            assert ("AML-NET-001" in capsys.readouterr().out) is (access == "Enabled")
