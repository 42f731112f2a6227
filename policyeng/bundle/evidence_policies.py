"""Evaluate a policy whose header states `evidence: true`: evidence of the organization alone decides it."""

from __future__ import annotations

from collections.abc import Iterator

from policyeng.bundle.policy_types import Functions, PolicyInput
from policyeng.facts.evidence import CountedEvidence, count_evidence
from policyeng.models import Denial, JsonObject, Unknown

#: The parameter that disables such a policy while it is false, if its header has it.
REQUIRED = "required"
#: What such a policy reads, for analyses of the text of policies.
READS = b"def judge(given):\n    return given.resource, given.snapshot.evidence, given.as_of, given.parameters\n"
_LAPSED = "the evidence for this has lapsed"
_NONE = "no evidence is given for this; add `evidence` to the snapshot"
_UNPLACED = "evidence is given for a scope, and whether the resource is in the scope is not known"


def functions_for(policy_id: str) -> Functions:
    """Return the functions of a policy that only evidence decides."""

    def judge(given: PolicyInput) -> Iterator[Denial | Unknown]:
        entries = given.snapshot.evidence
        counted = list(count_evidence(entries, policy_id, _place_of(given.resource), given.as_of))
        for state in ("in force", "lapsed"):
            alike = [one for one in counted if one.state == state]
            if any(one.covers for one in alike):
                if state == "lapsed":
                    yield _lapse([one for one in alike if one.covers])
                return
            if alike:
                yield Unknown(_UNPLACED, "/id")
                return
        yield Unknown(_NONE, "/id")

    def applies(given: PolicyInput) -> bool:
        return given.parameters.get(REQUIRED) is not False

    return Functions(judge, applies)


def _place_of(resource: JsonObject) -> str:
    """Return the ARM id with which scopes are compared: for a declared workload, that of its workspace."""
    for name in ("id", "workspaceId", "scope"):
        value = resource.get(name)
        if isinstance(value, str) and value.startswith("/"):
            return value
    return ""


def _lapse(lapsed: list[CountedEvidence]) -> Denial:
    """Return the denial for evidence that lapsed; it shows the entry that lapsed last."""
    entry = max((one.entry for one in lapsed), key=lambda one: (one["expiresAt"], one["id"]))
    actual = {"evidence": entry["id"], "givenBy": entry["givenBy"], "expiresAt": entry["expiresAt"]}
    return Denial(_LAPSED, "/id", actual=actual, expected="evidence in force")
