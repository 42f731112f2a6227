"""What was decided, in one form for every contestant, so that only equal work is compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from policyeng.engines import Judgement
from policyeng.models import Finding

Statement = tuple[str, str, str, str, str]


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The results of a contestant for a snapshot.

    Attributes:
        statements: how often each (policy, id of the resource, `deny` or `unknown`, message, path) was returned.
        decided: how many pairs were decided, None for a contestant that does not report it.
    """

    statements: Counter[Statement]
    decided: int | None

    def difference(self, other: Verdicts) -> str:
        """How the other one differs, empty when it does not."""
        if self.decided is not None and other.decided is not None and self.decided != other.decided:
            return f"{other.decided} pairs were decided instead of {self.decided}"
        mine, theirs = self.statements, other.statements
        if other.decided is None:  # Conftest lists statements once that differ in nothing of this
            mine, theirs = Counter(set(mine)), Counter(set(theirs))
        missing, surplus = mine - theirs, theirs - mine
        if not missing and not surplus:
            return ""
        first = next(iter(missing or surplus))
        return f"{missing.total()} statements are missing, {surplus.total()} are new, one of them: {first}"


def of_judgements(names: Iterable[tuple[str, str]], judgements: Iterable[Judgement]) -> Verdicts:
    """Return the verdicts of an engine of policyeng; `names` are policy and reported resource of each.

    Raises:
        ValueError: a judgement is an error; there is nothing to measure then.
    """
    statements: Counter[Statement] = Counter()
    decided = 0
    for (policy, resource), judgement in zip(names, judgements, strict=True):
        if judgement.error is not None:
            raise ValueError(f"{policy} broke on {resource}: {judgement.error}")
        decided += judgement.applies
        statements.update((policy, resource, "deny", part.msg, part.path) for part in judgement.denials)
        statements.update((policy, resource, "unknown", part.msg, part.path) for part in judgement.unknowns)
    return Verdicts(statements, decided)


def of_findings(findings: Iterable[Finding]) -> Verdicts:
    """Return the verdicts of an evaluation.

    Raises:
        ValueError: a finding is an error.
    """
    listed = list(findings)
    broken = [finding.policy for finding in listed if finding.outcome == "error"]
    if broken:
        raise ValueError(f"{broken[0]} broke")
    names = [(finding.policy, finding.resource) for finding in listed]
    return of_judgements(names, [Judgement(True, finding.denials, finding.unknowns) for finding in listed])


def of_statements(entries: Iterable[Mapping[str, Any]], decided: int | None) -> Verdicts:
    """Return the verdicts of a batch: objects with `policy`, `resource`, `role`, `msg` and `path`."""
    statements = ((entry["policy"], entry["resource"], entry["role"], entry["msg"], entry["path"]) for entry in entries)
    return Verdicts(Counter(statements), decided)
