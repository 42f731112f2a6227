"""Groups of findings for readers, the worst first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from policyeng.models import Finding
from policyeng.report.escaping import visible
from policyeng.report.phrases import shorten_id, worst_first, worst_rank


class FindingGroup(NamedTuple):
    """Findings that belong together.

    Attributes:
        title: what they have in common, escaped.
        findings: the most severe first.
    """

    title: str
    findings: Sequence[Finding]


def group_findings(findings: Iterable[Finding], by: str) -> list[FindingGroup]:
    """Return findings in groups: those with the most severe finding first, then those with the most findings.

    Args:
        findings: the findings, in any order.
        by: one of `policyeng.report.GROUPS`. By control, a finding is in the group of each of its controls.
    """
    groups: dict[str, list[Finding]] = {}
    for finding in worst_first(findings):
        for name in _NAMES[by](finding):
            groups.setdefault(name, []).append(finding)
    ranked = sorted(groups.items(), key=lambda entry: (-worst_rank(entry[1]), -len(entry[1]), entry[0]))
    shorten = shorten_id if by == "resource" else visible
    return [FindingGroup(shorten(name) or f"no {by}", members) for name, members in ranked]


_NAMES: Mapping[str, Callable[[Finding], Sequence[str]]] = {
    "policy": lambda finding: (finding.policy,),
    "resource": lambda finding: (finding.resource,),
    "owner": lambda finding: (finding.owner,),
    "control": lambda finding: finding.controls or ("",),
    "input": lambda finding: (finding.location.file,),
}
