"""Application of exemptions: they mark failures and never change outcomes."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence, Set
from datetime import datetime

from msgspec.structs import fields

from policyeng.bundle import Policy
from policyeng.errors import suggest_nearest
from policyeng.facts.ids import is_at_or_under
from policyeng.models import Exemption, ExemptionMark, Finding, Findings, Outcome, Problem


def apply(
    findings: Sequence[Finding],
    exemptions: Iterable[Exemption],
    policies: Sequence[Policy],
    homes: Mapping[tuple[str, str], str],
    as_of: datetime,
    idle: Sequence[Policy] = (),
) -> tuple[Findings, list[Problem]]:
    """Mark the failures that an active exemption covers.

    An exemption is active from `created_at` until just before `expires_at`. It covers the failures of its one
    policy on resources at or under its scope, by whole segments of the ARM id, without case.

    Args:
        findings: of the evaluation.
        exemptions: in any order.
        policies: all policies of the active bundle; one that is not exemptable takes no mark.
        homes: by reported type and id, the ARM id that scopes are compared with.
        as_of: the evaluation clock.
        idle: the policies of the bundle that are not selected, so that a warning can state this.

    Returns:
        The findings in their order, and a warning for every exemption that marks nothing, saying why.
    """
    in_force, problems = in_force_of(exemptions, policies, as_of, idle)
    used: set[str] = set()
    marked = Findings.of(findings)
    if in_force:
        marked = marked.changed(lambda finding: marked_by(finding, in_force, homes, used.add))
    return marked, [*problems, *unused(in_force, used)]


def in_force_of(
    exemptions: Iterable[Exemption], policies: Sequence[Policy], as_of: datetime, idle: Sequence[Policy] = ()
) -> tuple[list[Exemption], list[Problem]]:
    """Return the active exemptions, by their ids, and a warning for every other one with the reason."""
    known = {policy.id: policy for policy in policies}
    not_selected = {policy.id for policy in idle}
    problems: list[Problem] = []
    in_force: list[Exemption] = []
    for exemption in sorted(exemptions, key=lambda entry: entry.id):
        reason = _not_in_force(exemption, known, not_selected, as_of)
        if reason:
            problems.append(_warning(exemption, reason))
        else:
            in_force.append(exemption)
    return in_force, problems


def unused(in_force: Iterable[Exemption], used: Container[str]) -> list[Problem]:
    """Return a warning for every active exemption whose id is not among those that mark something."""
    return [_warning(entry, "covers no failure") for entry in in_force if entry.id not in used]


def _not_in_force(exemption: Exemption, known: Mapping[str, Policy], not_selected: Set[str], as_of: datetime) -> str:
    policy = known.get(exemption.policy)
    if policy is None and exemption.policy in not_selected:
        return f"has no effect: `{exemption.policy}` is not selected"
    if policy is None:
        hint = suggest_nearest(exemption.policy, {*known, *not_selected})
        return f"names `{exemption.policy}`, which is not among the policies in force{hint}"
    if not policy.header.exemptable:
        return f"has no effect: `{policy.id}` takes no exemptions"
    if as_of < exemption.created_at:
        return f"is not yet valid: it begins {exemption.created_at.isoformat()}"
    if as_of >= exemption.expires_at:
        return f"expired {exemption.expires_at.isoformat()}"
    return ""


def marked_by(
    finding: Finding,
    in_force: Sequence[Exemption],
    homes: Mapping[tuple[str, str], str],
    use: Callable[[str], object],
) -> Finding:
    """Return a finding with the mark of the exemption that covers it longest.

    `use` is called with the ids of all that cover it.
    """
    if finding.outcome is not Outcome.FAIL:
        return finding
    home = homes.get((finding.resource_type, finding.resource), finding.resource)
    covering = [
        entry for entry in in_force if entry.policy == finding.policy and home and is_at_or_under(home, entry.scope)
    ]
    if not covering:
        return finding
    for entry in covering:
        use(entry.id)
    last = max(covering, key=lambda entry: entry.expires_at)
    mark = ExemptionMark(**{entry.name: getattr(last, entry.name) for entry in fields(ExemptionMark)})
    return finding.model_copy(update={"exemption": mark})


def _warning(exemption: Exemption, reason: str) -> Problem:
    message = f"the exemption {reason}"
    return Problem(level="warning", message=message, place=place_of(exemption), kind="exemption")


def place_of(exemption: Exemption) -> str:
    """Return how problems name an exemption."""
    return f"exemption {exemption.id}"
