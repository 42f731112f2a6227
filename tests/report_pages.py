"""What the tests of pages show in addition to evaluations: owners, areas, controls and a past."""

from __future__ import annotations

from datetime import timedelta

from policyeng.models import Evaluation, Finding, Outcome, Severity, Unknown
from policyeng.report.context import HistoryPoint, Owners, PolicyCategory, ReportContext, Since, Trend
from tests.report_samples import (
    AS_OF,
    CLUSTER,
    GROUP,
    HOSTILE,
    ISOLATION,
    MARK,
    ML,
    PUBLIC_ACCESS,
    WORKSPACE,
    evaluation_of,
    passing,
)

KINDS = {
    "AML-NET-001": PolicyCategory("network", ("mcsb-v1 NS-2",)),
    "AML-NET-104": PolicyCategory("network", ("mcsb-v1 NS-2", "mcsb-v1 NS-1")),
    "AML-ISO-101": PolicyCategory("isolation", ("mcsb-v1 DP-1",)),
    "AML-SKU-104": PolicyCategory("sku"),
    "AML-OPS-103": PolicyCategory("operations", ("mcsb-v1 AM-1",)),
}
POINTS = tuple(
    HistoryPoint(
        run=run,
        as_of=AS_OF - timedelta(days=12 - run),
        strict=60 + run,
        azure=70 + run / 2,
        failures={Severity.CRITICAL: 3, Severity.HIGH: 12 - run},
    )
    for run in range(1, 13)
)
ABOUT = ReportContext(
    owners=Owners({WORKSPACE.lower(): "ml-platform", CLUSTER.lower(): "research"}),
    kinds=KINDS,
    trend=Trend(
        estate="production",
        run=12,
        points=POINTS,
        since={("AML-NET-001", WORKSPACE): Since(run=3, as_of=AS_OF - timedelta(days=9))},
    ),
)
#: The same written to attack, wherever a snapshot or a tag can have text.
HOSTILE_ABOUT = ReportContext(
    owner_tag="owner",
    owners=Owners({"/subscriptions": HOSTILE + "\"'><img src=x onerror=pwned()>"}),
    kinds={name: PolicyCategory(HOSTILE, (HOSTILE, "</script><script>pwned()</script>")) for name in KINDS},
    trend=Trend(estate="</title><script>pwned()</script>" + HOSTILE, run=12, points=POINTS),
)


def many(number: int) -> tuple[Evaluation, ReportContext]:
    """An estate with as many findings, of which a seventh does not pass."""
    findings: list[Finding] = []
    owners = {}
    for at in range(number // 40 + 1):
        cluster = f"{GROUP}/providers/{ML}/workspaces/ws-{at // 10:04}/computes/train-{at:05}"
        owners[cluster.lower()] = f"team-{at % 5}"
        findings += [_one(f"AML-{'ABCD'[n % 4] * 3}-{n + 101}", cluster, at * 40 + n) for n in range(40)]
    kinds = {
        f"AML-{letter * 3}-{n}": PolicyCategory(letter.lower(), (f"mcsb-v1 {letter}-{n % 7}",))
        for letter in "ABCD"
        for n in range(101, 141)
    }
    return evaluation_of(findings[:number]), ReportContext(owners=Owners(owners), kinds=kinds)


def _one(policy: str, resource: str, number: int) -> Finding:
    severity = list(Severity)[number % 5]
    finding = {
        "policy": policy,
        "resource": resource,
        "severity": severity,
        "resource_type": f"{ML}/workspaces/computes",
    }
    if number % 7:
        return passing(policy, resource, severity)
    if number % 3 == 0:
        unknowns = (Unknown(msg="the quota of the family was not collected", path="/properties"),)
        return ISOLATION.model_copy(update={**finding, "outcome": Outcome.UNKNOWN, "denials": (), "unknowns": unknowns})
    base = ISOLATION if number % 2 else PUBLIC_ACCESS
    return base.model_copy(update={**finding, "exemption": MARK if number % 11 == 0 else None})
