"""Native snapshots: what they carry, and every part that is refused alone."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from policyeng.facts.coverage import EVERYTHING
from policyeng.models import JsonObject
from policyeng.sources import native, read_inputs
from policyeng.sources.parsed import ParsedDocument

SUBSCRIPTION = "/subscriptions/11111111-1111-1111-1111-111111111111"
COMPUTES = "Microsoft.MachineLearningServices/workspaces/computes"
WORKSPACE = f"{SUBSCRIPTION}/resourceGroups/rg-ml/providers/Microsoft.MachineLearningServices/workspaces/ws"
RESOURCE: JsonObject = {
    "id": WORKSPACE,
    "type": "Microsoft.MachineLearningServices/workspaces",
    "name": "ws",
    "properties": {"hbiWorkspace": True},
}
SNAPSHOT: JsonObject = {
    "snapshotVersion": 1,
    "scope": SUBSCRIPTION,
    "takenAt": "2026-11-01T02:00:00+02:00",
    "resources": [RESOURCE],
    "approvals": [{"id": "A-1", "series": "NCsv3", "scope": SUBSCRIPTION, "status": "granted"}],
    "workloads": [{"id": "scoring", "purpose": "realtime-inference", "model": {"sizeGiB": 0.2}}],
    "quotas": [{"scope": SUBSCRIPTION, "region": "eastus", "family": "standardNCSv3Family", "limitVCpus": 100}],
    "metrics": [{"resourceId": WORKSPACE, "name": "cpuUtilization", "unit": "percent", "average": 12}],
    "principals": [{"id": "p", "type": "User", "userType": "Guest"}],
    "incomplete": ["the jobs of ws"],
}


def test_everything_a_snapshot_states_is_read() -> None:
    """Resources are taken as they are; the other collections become nouns, each with its pointer."""
    reading = native.read(SNAPSHOT)

    assert reading.refusals == ()
    assert reading.resources[0].resource is RESOURCE
    assert reading.resources[0].pointer == "/resources/0"
    assert [(stated.collection, stated.pointer) for stated in reading.stated] == [
        ("approvals", "/approvals/0"),
        ("workloads", "/workloads/0"),
        ("quotas", "/quotas/0"),
        ("metrics", "/metrics/0"),
        ("principals", "/principals/0"),
    ]
    assert reading.scope == SUBSCRIPTION
    assert reading.taken_at == datetime(2026, 11, 1, tzinfo=UTC)
    assert reading.incomplete == ("the jobs of ws",)


def test_only_the_version_is_required() -> None:
    """A snapshot may be empty; one that states its resources has all that policies look up."""
    assert native.read({"snapshotVersion": 1}) == ParsedDocument()
    assert native.read({"snapshotVersion": 1, "resources": []}) == ParsedDocument(covers=EVERYTHING)


def test_a_file_of_facts_covers_no_resources() -> None:
    """Approvals next to a template do not make the template a whole estate."""
    assert native.read({"snapshotVersion": 1, "approvals": []}).covers == ()


def test_the_coverage_can_be_stated() -> None:
    """With it, an existing type is covered in its subscription."""
    workspace = {"id": "/subscriptions/s/providers/A.B/things/w", "type": "A.B/things"}
    read = native.read({"snapshotVersion": 1, "covers": ["A.B/others at /"], "resources": [workspace]})
    assert read.covers == ("A.B/others at /", "a.b/things at /subscriptions/s")


@pytest.mark.parametrize(
    ("kind", "close"),
    [
        ("Microsoft.MachineLearningServices/workspaces/compute", COMPUTES),
        ("microsoft.machinelearningservice/workspaces/computes", COMPUTES),
        ("Microsoft.MachineLearningServices/workspaces/job", "Microsoft.MachineLearningServices/workspaces/jobs"),
        ("Microsoft.Compute/virtualMachineScaleSets", ""),
        ("Microsoft.Network/virtualNetworkGateways", ""),
        ("Microsoft.MachineLearning/workspaces", ""),
        ("Microsoft.MachineLearningServices/workspaces/models", ""),
        (COMPUTES.upper(), ""),
    ],
)
def test_a_type_that_is_surely_misspelled_is_a_warning(kind: str, close: str) -> None:
    """It covers what it names all the same: it may be a type that we do not know."""
    read = native.read({"snapshotVersion": 1, "covers": ["A.B/c at /", f"{kind} at /", f"{kind} at /subscriptions/s"]})
    assert read.covers == ("A.B/c at /", f"{kind} at /", f"{kind} at /subscriptions/s")
    expected = [("/covers/1", f"no policy looks up `{kind}`; did you mean `{close}`")] if close else []
    assert [(remark.place, remark.message) for remark in read.remarks] == expected


def test_a_thing_that_is_wrong_in_the_header_covers_nothing_more() -> None:
    """A fault next to `covers` does not make the snapshot a whole one."""
    assert native.read(changed(covers=["A.B/c at /"], takenAt="x", resources=[])).covers == ("A.B/c at /",)


def test_a_type_beyond_the_listed_ones_is_covered_where_there_is_one() -> None:
    """Without `covers`, in its subscription; the listed ones are covered everywhere."""
    vault = {"id": "/subscriptions/s/providers/A.B/vaults/v", "type": "A.B/vaults", "properties": {}}
    read = native.read({"snapshotVersion": 1, "resources": [vault, RESOURCE]})
    assert read.covers == (*EVERYTHING, "a.b/vaults at /subscriptions/s")


def changed(**keys: object) -> JsonObject:
    """The snapshot with other values under some keys."""
    return {**SNAPSHOT, **keys}


REFUSED: dict[str, tuple[object, str, str, str]] = {
    "another version": (
        changed(snapshotVersion=2),
        "/snapshotVersion",
        "`snapshotVersion` is `2`; only version 1",
        "set it to 1",
    ),
    "a version that is true": (
        changed(snapshotVersion=True),
        "/snapshotVersion",
        "is true; only version 1",
        "set it to 1",
    ),
    "a version as text": (changed(snapshotVersion="1"), "/snapshotVersion", "only version 1", "set it to 1"),
    "no version": ({"resources": []}, "", "`snapshotVersion` is null; only version 1 is supported", "set it to 1"),
    "an unknown key": (
        changed(resorces=[]),
        "/resorces",
        "unknown key `resorces`; did you mean `resources`",
        "the known keys are",
    ),
    "a snake_case key": (changed(taken_at=""), "/taken_at", "`taken_at`; did you mean `takenAt`", "the known keys are"),
    "a time without zone": (
        changed(takenAt="2026-11-01T00:00:00"),
        "/takenAt",
        "`takenAt` has no time zone",
        "with a time zone",
    ),
    "a time of digits": (changed(takenAt="1700000000"), "/takenAt", "`takenAt` is not a time", "with a time zone"),
    "a scope that is no text": (changed(scope=1), "/scope", "`scope` does not fit: `1`", "it should be a valid string"),
    "resources that are no list": (changed(resources={}), "/resources", "is an object, not a list", "as a list"),
    "approvals that are null": (changed(approvals=None), "/approvals", "is null, not a list", "as a list"),
    "incomplete that is text": (changed(incomplete="x"), "/incomplete", "`incomplete` does not fit", "it should be"),
    "covers that is text": (changed(covers="x"), "/covers", "`covers` is a string, not a list", "as a list"),
    "an entry of covers that is no text": (
        changed(covers=[f"{COMPUTES} at /", 1]),
        "/covers/1",
        "an entry of `covers` is a number, not a string",
        "write `TYPE at ID`",
    ),
    "an entry of covers without a place": (
        changed(covers=[COMPUTES]),
        "/covers/0",
        f"`{COMPUTES}` does not state what is covered and where",
        "write `TYPE at ID`",
    ),
    "an entry of covers with a type alone": (
        changed(covers=["Computes at /"]),
        "/covers/0",
        f"`Computes` is not an ARM type; did you mean `{COMPUTES}`",
        "include its namespace",
    ),
    "an entry of covers with a relative id": (
        changed(covers=[f"{COMPUTES} at resourceGroups/g"]),
        "/covers/0",
        "the id `resourceGroups/g` does not begin with a slash",
        "write `/` for everything",
    ),
    "an entry of covers with an id that is none": (
        changed(covers=[f"{COMPUTES} at /resourceGroups/g"]),
        "/covers/0",
        "`/resourceGroups/g` is not the id of a scope or a resource",
        "as in ARM",
    ),
    "a resource that is no object": (changed(resources=[1]), "/resources/0", "a number where an object", "REST API"),
    "a resource without id": (changed(resources=[{"type": "A/b"}]), "/resources/0", "without `id`", "ARM `id`"),
    "a resource without type": (changed(resources=[{"id": WORKSPACE}]), "/resources/0", "without `type`", "ARM `type`"),
    "a flattened resource": (
        changed(resources=[{**RESOURCE, "properties": None, "hbiWorkspace": True}]),
        "/resources/0",
        "a flattened listing: `hbiWorkspace` is next to `id`, and `properties` is missing",
        "REST API",
    ),
    "an approval without scope": (
        changed(approvals=[{"id": "A-1", "status": "granted"}]),
        "/approvals/0",
        "`scope` is missing",
        "add `scope`",
    ),
    "an approval with another status": (
        changed(approvals=[{"id": "A-1", "scope": "/", "status": "maybe"}]),
        "/approvals/0/status",
        '`status` does not fit: `"maybe"`',
        "`requested`, `granted`, `denied` or `revoked`",
    ),
    "an approval with an unknown key": (
        changed(approvals=[{"id": "A-1", "scope": "/", "status": "granted", "aprovedBy": "x"}]),
        "/approvals/0/aprovedBy",
        "unknown key `aprovedBy`; did you mean `approvedBy`",
        "the known keys are",
    ),
    "an approval that lapses at digits": (
        changed(approvals=[{"id": "A-1", "scope": "/", "status": "granted", "expiresAt": "1700000000"}]),
        "/approvals/0/expiresAt",
        "`expiresAt` is not a time: `1700000000`",
        "with a time zone",
    ),
    "a workload with an unknown purpose": (
        changed(workloads=[{"id": "w", "purpose": "fun"}]),
        "/workloads/0/purpose",
        "`purpose` does not fit",
        "`experimentation`",
    ),
    "a model with an unknown key": (
        changed(workloads=[{"id": "w", "model": {"sizeGB": 1}}]),
        "/workloads/0/model/sizeGB",
        "unknown key `sizeGB`; did you mean `sizeGiB`",
        "the known keys are `sizeGiB`, `memoryGiB`",
    ),
    "a quota as text": (
        changed(quotas=[{"scope": "/", "region": "r", "family": "f", "limitVCpus": "100"}]),
        "/quotas/0/limitVCpus",
        '`limitVCpus` does not fit: `"100"`',
        "it should be a valid integer",
    ),
    "a metric without zone": (
        changed(metrics=[{"resourceId": "r", "name": "n", "unit": "u", "to": "2026-11-01T00:00:00"}]),
        "/metrics/0/to",
        "`to` has no time zone",
        "with a time zone",
    ),
    "a principal with an empty id": (
        changed(principals=[{"id": ""}]),
        "/principals/0/id",
        "`id` does not fit",
        "at least 1 character",
    ),
    "a list": ([], "", "not a native snapshot: a list where an object should be", "add `snapshotVersion`: 1"),
}


@pytest.mark.parametrize(("document", "pointer", "message", "remedy"), REFUSED.values(), ids=REFUSED)
def test_faults_are_refused_with_their_pointer(document: object, pointer: str, message: str, remedy: str) -> None:
    """One fault gives one refusal: a pointer, a message and a remedy."""
    [refusal] = native.read(document).refusals

    assert refusal.place == pointer
    assert message in refusal.message
    assert remedy in refusal.remedy


def test_a_refused_part_hides_no_other() -> None:
    """The workload that is wrong is left out; everything else is read."""
    reading = native.read(changed(workloads=[{"id": ""}, {"id": "w"}], takenAt="yesterday"))

    assert [refusal.place for refusal in reading.refusals] == ["/takenAt", "/workloads/0/id"]
    assert [stated.pointer for stated in reading.stated if stated.collection == "workloads"] == ["/workloads/1"]
    assert len(reading.resources) == 1


def test_the_problem_names_file_line_and_pointer() -> None:
    """A reader finds the fault in the file."""
    content = (
        b'{"snapshotVersion": 1,\n "quotas": [\n  {"scope": "/", "region": "r",\n   "family": 1, "limitVCpus": 1}]}'
    )
    [problem] = read_inputs(["-"], stdin=content).problems

    assert problem.place == "<stdin>:4"
    assert problem.message == "/quotas/0/family: `family` does not fit: `1`; it should be a valid string"


def test_detection_needs_the_version_alone() -> None:
    """`snapshotVersion` means that the document is native, whatever else is wrong with it."""
    assert native.detect({"snapshotVersion": "x"})
    assert not native.detect({"resources": []})
    assert not native.detect([{"snapshotVersion": 1}])
