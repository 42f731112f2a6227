"""AML-SKU-106 and AML-SKU-101 agree about which approvals count, on random approvals and computes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from policyeng import evaluate
from policyeng.bundle import Bundle, load_bundle
from policyeng.models import Approval, Finding, JsonObject, Outcome, Snapshot
from tests.effort import effort

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
NOTICE = timedelta(days=30)
ML = "Microsoft.MachineLearningServices/workspaces"
GROUP = "/subscriptions/s/resourceGroups/rg"
WORKSPACE = f"{GROUP}/providers/{ML}/ws"
SIZES = ["Standard_M8ms", "STANDARD_M128MS", "Standard_NC24s_v3", "Standard_DS3_v2", "Standard_X1", None, 7]
REGIONS = ["eastus", "East US", "westus", " ", None]


def _bundle(policy_id: str) -> Bundle:
    whole = load_bundle()
    return whole.only([policy for policy in whole.policies if policy.id == policy_id])


NEEDED, LAPSING = _bundle("AML-SKU-101"), _bundle("AML-SKU-106")


def _compute(number: int, size: object, region: object, own: object, kind: str) -> JsonObject:
    if kind == "deployment":
        arm = {"id": f"{WORKSPACE}/onlineEndpoints/e/deployments/{number}", "type": f"{ML}/onlineEndpoints/deployments"}
        return {**arm, "location": region, "properties": {"instanceType": size}}
    inner = {"computeType": kind, "computeLocation": own, "properties": {"vmSize": size, "virtualMachineSize": size}}
    at = WORKSPACE if number % 2 else f"{WORKSPACE}-2"
    return {"id": f"{at}/computes/{number}", "type": f"{ML}/computes", "location": region, "properties": inner}


KINDS = st.sampled_from(["AmlCompute", "ComputeInstance", "VirtualMachine", "deployment"])
COMPUTES = st.lists(
    st.builds(
        _compute, st.integers(0, 9), st.sampled_from(SIZES), st.sampled_from(REGIONS), st.sampled_from(REGIONS), KINDS
    ),
    max_size=5,
    unique_by=lambda compute: str(compute["id"]),
)
MOMENTS = st.sampled_from(
    [None, *(AS_OF + NOTICE * months + timedelta(seconds=more) for months in (-1, 0, 1) for more in (-1, 0, 1))]
)
APPROVALS = st.lists(
    st.builds(
        lambda number, kind, series, scope, region, status, granted, expires: Approval(
            id=f"A-{number}",
            kind=kind,
            series=series,
            scope=scope,
            region=region,
            status=status,
            granted_at=granted,
            expires_at=expires,
        ),
        st.integers(0, 9),
        st.sampled_from(["vmSeries", " VMSERIES", "quota"]),
        st.sampled_from(["M", " m ", "NCsv3", "DSv2", ""]),
        st.sampled_from([GROUP, GROUP.upper(), f"{GROUP}/", f"{GROUP}-2", WORKSPACE, "/subscriptions/s", "/", "x", ""]),
        st.sampled_from(REGIONS),
        st.sampled_from(["granted", "granted", "granted", "revoked"]),
        MOMENTS,
        MOMENTS,
    ),
    max_size=4,
    unique_by=lambda approval: approval.id,
)
HOMES: tuple[JsonObject, ...] = tuple(
    {"id": home, "type": ML, "location": "East US"} for home in (WORKSPACE, f"{WORKSPACE}-2")
)


def _needed(resources: tuple[JsonObject, ...], approvals: tuple[Approval, ...], as_of: datetime) -> dict[str, Outcome]:
    """The outcomes of AML-SKU-101 for every compute."""
    findings = evaluate(NEEDED, Snapshot(resources=resources, approvals=approvals), as_of=as_of).findings
    return {finding.resource: finding.outcome for finding in findings}


def _expected(relying: dict[str, Outcome], after: dict[str, Outcome]) -> Outcome:
    """The outcome of AML-SKU-106 for an approval, from AML-SKU-101 with it alone, and with all at its end."""
    left = {(outcome, after[compute]) for compute, outcome in relying.items() if after[compute] is not Outcome.PASS}
    if (Outcome.PASS, Outcome.FAIL) in left:
        return Outcome.FAIL
    return Outcome.UNKNOWN if left else Outcome.PASS


@settings(deadline=None, max_examples=effort(30, 150))
@given(COMPUTES, APPROVALS, st.booleans())
def test_an_approval_is_in_use_where_alone_it_makes_a_compute_pass(
    computes: list[JsonObject], approvals: list[Approval], has_homes: bool
) -> None:
    """It is evaluated where it is or may be used, and only there; it fails when its end leaves a compute failing."""
    resources = (*computes, *(HOMES if has_homes else ()))
    snapshot = Snapshot(resources=resources, approvals=tuple(approvals))
    findings: dict[str, Finding] = {
        found.resource: found for found in evaluate(LAPSING, snapshot, as_of=AS_OF).findings
    }
    bare = {compute for compute, outcome in _needed(resources, (), AS_OF).items() if outcome is Outcome.FAIL}
    for approval in approvals:
        alone = _needed(resources, (approval,), AS_OF)
        relying = {compute: alone[compute] for compute in bare if alone[compute] is not Outcome.FAIL}
        end = approval.expires_at
        is_near = end is not None and end <= AS_OF + NOTICE
        after = _needed(resources, tuple(approvals), end) if end is not None and is_near else {}

        assert (approval.id in findings) == bool(relying)
        if relying:
            expected = _expected(relying, after) if is_near else Outcome.PASS
            assert findings[approval.id].outcome is expected
