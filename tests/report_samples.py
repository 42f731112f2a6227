"""Evaluations for the report tests: written ones by name, and hypothesis strategies for any other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone

from hypothesis import settings
from hypothesis import strategies as st

from policyeng.models import (
    BundleRef,
    Denial,
    EngineRef,
    Evaluation,
    ExemptionMark,
    Finding,
    JsonObject,
    Location,
    Outcome,
    Place,
    Problem,
    Severity,
    SnapshotRef,
    Summary,
    Unknown,
)

GROUP = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-ml"
WORKSPACE = f"{GROUP}/providers/Microsoft.MachineLearningServices/workspaces/ws"
CLUSTER = f"{WORKSPACE}/computes/train-gpu"
ASSIGNMENT = f"{WORKSPACE}/providers/Microsoft.Authorization/roleAssignments/5a1c2f0e-7f43-4d8e-9a53-0a4b4f6c9d10"
ML = "Microsoft.MachineLearningServices"
AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
#: An escape sequence, a bidirectional override, newlines, markup, mentions, and commands that build agents obey.
HOSTILE = (
    "\x1b[31mred\x1b[0m\n::error::pwned \u202efdp.exe \u2066x\u2069\r\n##vso[task.complete result=Succeeded;]ok\t"
    "| a | b |\n</code></details><script>alert(1)</script> @octocat #1 `x` [y](http://evil.test) {0}"
    " %0A ]]> &amp; \x00\x85\ufeff www.evil.test ::stop-commands::x ##[group]g \U000e0041"
)

MARK = ExemptionMark(
    id="EX-7",
    category="waiver",
    reason="the vendor's endpoint has no private link before the autumn release",
    owner="ml-platform@example.com",
    approved_by="security@example.com",
    expires_at=datetime(2026, 12, 31, tzinfo=UTC),
)
PUBLIC_ACCESS = Finding(
    policy="AML-NET-001",
    title="Public network access to the workspace is disabled",
    severity=Severity.HIGH,
    resource=WORKSPACE,
    resource_type=f"{ML}/workspaces",
    outcome=Outcome.FAIL,
    denials=(
        Denial(
            msg="public network access is not disabled",
            path="/properties/publicNetworkAccess",
            actual="Enabled",
            expected="Disabled",
        ),
    ),
    remediation="Set publicNetworkAccess to Disabled and reach the workspace through a private endpoint.",
    source='004 "Network isolation"; Azure Policy 438c38d2-3772-465a-a9cc-7a6666a275ce',
    location=Location(file="samples/inference.json", line=12),
)
ISOLATION = Finding(
    policy="AML-ISO-101",
    title="Regulated work runs on an isolated VM size",
    severity=Severity.CRITICAL,
    resource=CLUSTER,
    resource_type=f"{ML}/workspaces/computes",
    outcome=Outcome.FAIL,
    denials=(
        Denial(
            msg="the VM size shares its host with other customers",
            path="/properties/properties/vmSize",
            actual="Standard_DS3_v2",
            expected=["Standard_E64is_v3", "Standard_E64i_v3", "Standard_M128ms", "Standard_GS5", "Standard_F72s_v2"],
        ),
        Denial(msg="the cluster is not tagged with its owner", path="/tags", actual={}, expected={"owner": "*"}),
    ),
    unknowns=(Unknown(msg="the quota of the family was not collected", path="/properties/properties/vmSize"),),
    remediation="Choose one of the isolated sizes, or move the regulated data out of the workspace.",
    source='001 "Compute isolation"',
    location=Location(file="samples/inference.json", line=48),
)


#: Fields at places of their own: below the resource, at the resource, and of the workspace in another file.
PLACED = ISOLATION.model_copy(
    update={
        "unknowns": (Unknown(msg="the workspace's network is not known", path="workspace:/properties/managedNetwork"),),
        "location": Location(
            file="infra/cluster.yml",
            line=3,
            column=1,
            fields={
                "/properties/properties/vmSize": Place(file="infra/cluster.yml", line=9, column=7),
                "/tags": Place(file="infra/cluster.yml", line=3, column=1),
                "workspace:/properties/managedNetwork": Place(file="infra/workspace.yml", line=21, column=3),
            },
        ),
    }
)


def passing(policy: str, resource: str = WORKSPACE, severity: Severity = Severity.LOW) -> Finding:
    """Give a pass of the policy on the resource."""
    return Finding(
        policy=policy,
        title="The workspace is tagged with its owner",
        severity=severity,
        resource=resource,
        resource_type=f"{ML}/workspaces",
        outcome=Outcome.PASS,
        location=Location(file="samples/inference.json", line=12),
    )


def evaluation_of(
    findings: Sequence[Finding], problems: Sequence[Problem] = (), exit_code: int | None = None
) -> Evaluation:
    """Give an evaluation whose summary and exit follow from its findings and problems."""
    outcomes = Counter(finding.outcome for finding in findings)
    exempt = sum(finding.exemption is not None for finding in findings)
    total = len(findings) or 1
    undecided = outcomes[Outcome.ERROR] or not findings or any(problem.level == "error" for problem in problems)
    good = outcomes[Outcome.PASS]
    return Evaluation(
        bundle=BundleRef(name="policyeng", revision="0.1.0", digest="sha256:" + "ab12" * 16),
        snapshot=SnapshotRef(
            scope=GROUP, taken_at=datetime(2026, 5, 31, 22, 15, tzinfo=UTC), digest="sha256:" + "cd34" * 16
        ),
        as_of=AS_OF,
        engine=EngineRef(name="embedded", version="0.14.1"),
        exit_code=(2 if undecided else int(outcomes[Outcome.FAIL] > exempt)) if exit_code is None else exit_code,
        summary=Summary(
            pass_=good,
            fail=outcomes[Outcome.FAIL],
            unknown=outcomes[Outcome.UNKNOWN],
            error=outcomes[Outcome.ERROR],
            exempt=exempt,
            strict_compliance=round(100 * good / total, 2),
            azure_compliance=round(100 * (good + exempt + outcomes[Outcome.UNKNOWN]) / total, 2),
        ),
        findings=tuple(sorted(findings, key=lambda finding: (finding.policy, finding.resource.lower()))),
        problems=tuple(problems),
    )


def _every_outcome() -> list[Finding]:
    job = f"{WORKSPACE}/jobs/nightly-churn"
    undecided: JsonObject = {
        "severity": Severity.MEDIUM,
        "resource": job,
        "resource_type": f"{ML}/workspaces/jobs",
        "location": Location(file="samples/inference.json", line=97),
    }
    return [
        PUBLIC_ACCESS,
        ISOLATION,
        PUBLIC_ACCESS.model_copy(
            update={"policy": "AML-NET-104", "title": "The workspace has a private endpoint", "exemption": MARK}
        ),
        ISOLATION.model_copy(
            update={
                "policy": "AML-SKU-104",
                "title": "A VM series in use has an approval in force for its scope, its region and its purpose",
                "severity": Severity.MEDIUM,
                "denials": (
                    Denial(msg="no approval covers the series", path="/properties/properties/vmSize", actual="DSv2"),
                ),
                "unknowns": (),
            }
        ),
        Finding(
            policy="AML-TRN-102",
            title="A training job runs on a compute cluster",
            outcome=Outcome.UNKNOWN,
            unknowns=(Unknown(msg="the compute of the job is not in the snapshot", path="/computeId"),),
            **undecided,
        ),
        Finding(
            policy="AML-TRN-103",
            title="A training job has a time limit",
            outcome=Outcome.ERROR,
            unknowns=(Unknown(msg="the deadline of 1000 ms passed while judging"),),
            **undecided,
        ),
        Finding(
            policy="AML-RBAC-103",
            title="Guests hold no role on the workspace",
            severity=Severity.LOW,
            resource=ASSIGNMENT,
            resource_type="Microsoft.Authorization/roleAssignments",
            outcome=Outcome.FAIL,
            denials=(Denial(msg="a guest holds a role", path="/properties/principalId", actual="b1c7", expected=None),),
            remediation="Remove the assignment, or invite the person as a member.",
            source='006 "Access"',
        ),
        passing("AML-OPS-103"),
        passing("AML-OPS-104", severity=Severity.INFO),
        passing("AML-NET-105", severity=Severity.CRITICAL),
    ]


def _hostile() -> list[Finding]:
    mark = MARK.model_copy(update={"id": HOSTILE, "reason": HOSTILE, "owner": HOSTILE})
    hostile = ISOLATION.model_copy(
        update={
            "title": HOSTILE,
            "resource": CLUSTER + HOSTILE,
            "resource_type": HOSTILE,
            "denials": (Denial(msg=HOSTILE, path="/" + HOSTILE, actual={HOSTILE: [HOSTILE]}, expected=HOSTILE),),
            "unknowns": (Unknown(msg=HOSTILE, path=HOSTILE),),
            "remediation": HOSTILE,
            "source": HOSTILE,
            "location": Location(file=HOSTILE, line=3, fields={HOSTILE: Place(file=HOSTILE + HOSTILE, line=4)}),
        }
    )
    undecided: JsonObject = {"policy": "AML-ISO-103", "denials": ()}
    return [
        hostile,
        hostile.model_copy(update={"policy": "AML-ISO-102", "exemption": mark}),
        hostile.model_copy(update={"outcome": Outcome.UNKNOWN, **undecided}),
        hostile.model_copy(update={"outcome": Outcome.ERROR, **undecided, "resource": HOSTILE}),
    ]


PROBLEMS = (
    Problem(level="error", message="duplicate key `properties`; keep one of the two", place="samples/broken.json:17"),
    Problem(
        level="warning",
        message="exemption `EX-3` expired on 2026-05-01 and no longer applies",
        place="exemptions.yaml:4",
    ),
    Problem(level="error", message="not valid UTF-8 at byte 120", place="samples/broken.json:17"),
)
SAMPLES = {
    "every outcome": evaluation_of(_every_outcome(), PROBLEMS),
    "failures": evaluation_of([PUBLIC_ACCESS, ISOLATION, passing("AML-OPS-103")]),
    "all pass": evaluation_of([passing("AML-OPS-103"), passing("AML-OPS-104")]),
    "only exempt": evaluation_of([PUBLIC_ACCESS.model_copy(update={"exemption": MARK}), passing("AML-OPS-103")]),
    "below the limit": evaluation_of([PUBLIC_ACCESS], exit_code=0).model_copy(update={"fail_on": Severity.CRITICAL}),
    "no reasons": evaluation_of(
        [PUBLIC_ACCESS.model_copy(update={"denials": (), "title": "", "remediation": "", "source": ""})]
    ),
    "empty": evaluation_of([]),
    "only problems": evaluation_of([], PROBLEMS),
    "placed": evaluation_of([PLACED]),
    "hostile": evaluation_of(_hostile(), [Problem(level="error", message=HOSTILE, place=HOSTILE)]),
}

# ---------------------------------------------------------------- strategies

#: How the laws run: an evaluation takes long to draw, and a shared machine knows no deadline.
laws = settings(max_examples=40, deadline=None)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=8), below, max_size=3),
    max_leaves=6,
)
names = st.text(max_size=20) | st.sampled_from([HOSTILE, WORKSPACE, CLUSTER, "", "scoring"])
ids = st.text(min_size=1, max_size=20) | st.sampled_from([HOSTILE, WORKSPACE, CLUSTER, ASSIGNMENT, "scoring"])
zones = st.builds(timezone, st.integers(-14 * 60, 14 * 60).map(lambda minutes: timedelta(minutes=minutes)))
moments = st.datetimes(min_value=datetime(1, 1, 1), max_value=datetime(9999, 12, 31), timezones=zones)
policy_ids = st.from_regex(r"\A[A-Z]{3}-[A-Z]{3}-[0-9]{3}\Z") | st.sampled_from(["AML-NET-001", "kubernetes.deny", "7"])
denials = st.builds(Denial, msg=names, path=names, actual=json_values, expected=json_values)
unknowns = st.builds(Unknown, msg=names, path=names)
numbers = st.integers(1, 10**6)
places = st.builds(Place, file=st.text(min_size=1, max_size=9) | st.just(HOSTILE), line=numbers, column=numbers)
marks = st.fixed_dictionaries(
    {
        "id": ids,
        "category": st.sampled_from(["waiver", "mitigated"]),
        "reason": ids,
        "owner": ids,
        "approvedBy": ids,
        "expiresAt": moments,
    }
).map(ExemptionMark.model_validate)


@st.composite
def locations(draw: st.DrawFn, paths: Sequence[str]) -> Location:
    """A place of a resource; only one from a file has places of fields, and only paths that are not empty."""
    file = draw(names)
    fields = {path: draw(places) for path in paths if path and file and draw(st.booleans())}
    return Location(file=file, line=draw(numbers), column=draw(numbers), fields=fields)


@st.composite
def findings(draw: st.DrawFn) -> Finding:
    """Any finding that the evaluation can give: denials only on a fail, a mark only on a fail."""
    outcome = draw(st.sampled_from(Outcome))
    fails = outcome is Outcome.FAIL
    denied = tuple(draw(st.lists(denials, min_size=1, max_size=3))) if fails else ()
    undecided = () if outcome is Outcome.PASS else tuple(draw(st.lists(unknowns, max_size=2)))
    return Finding(
        policy=draw(policy_ids),
        title=draw(names),
        severity=draw(st.sampled_from(Severity)),
        resource=draw(ids),
        resource_type=draw(names),
        outcome=outcome,
        denials=denied,
        unknowns=undecided,
        exemption=draw(st.none() | marks) if fails else None,
        remediation=draw(names),
        source=draw(names),
        location=draw(locations([reason.path for reason in (*denied, *undecided)])),
    )


@st.composite
def evaluations(draw: st.DrawFn) -> Evaluation:
    """Any evaluation: one finding per policy and resource, a summary that adds up, any exit and any clock."""
    listed = draw(st.lists(findings(), max_size=4, unique_by=lambda finding: (finding.policy, finding.resource)))
    problem = st.builds(Problem, level=st.sampled_from(["error", "warning"]), message=names, place=names)
    base = evaluation_of(listed, draw(st.lists(problem, max_size=3)), draw(st.sampled_from([None, 0, 1, 2])))
    snapshot = SnapshotRef(scope=draw(names), taken_at=draw(st.none() | moments), digest=draw(names))
    return base.model_copy(update={"as_of": draw(moments), "snapshot": snapshot})
