"""More failures never turn deny into allow, an error denies, and admission denies exactly what is new."""

from __future__ import annotations

from random import Random

from policyeng.configuration import Settings
from policyeng.evaluation import exit_code, fails
from policyeng.models import Evaluation, Finding, Outcome, Problem, Severity, Snapshot, lowered
from policyeng.verify.laws.law import Trial, Violation
from tests.laws.admitting import allowed_otherwise, unlike_the_whole
from tests.laws.elsewhere import with_its_copy

#: So many findings of an example are turned into failures and errors.
_MOST = 5
#: Of so many examples changes are admitted, which takes several times as long as all else.
_ADMITTED = 0.1


def violated(trial: Trial) -> Violation | None:
    """Where more failures, or a larger estate, make an exit code lower, or admission differs from `check`."""
    random = trial.random("gate")
    gate = random.choice(list(Severity))
    found = _by_findings(trial.evaluation, gate, random) or _by_estates(trial, gate, random)
    if found is None and random.random() < _ADMITTED:
        found = allowed_otherwise(trial, gate) or unlike_the_whole(trial, "gate", trial.snapshot)
    return found


def _by_findings(evaluation: Evaluation, gate: Severity, random: Random) -> Violation | None:
    findings, criteria = evaluation.findings, Settings(fail_on=gate)
    erring = any(finding.outcome is Outcome.ERROR for finding in findings)
    if (erring and evaluation.exit_code != 2) or exit_code(
        findings, [Problem(level="error", message="m")], criteria
    ) != 2:
        return Violation("an error does not deny")
    for finding in random.sample(findings, min(_MOST, len(findings))):
        failed = finding.model_copy(update={"outcome": Outcome.FAIL, "exemption": None})
        erred = finding.model_copy(update={"outcome": Outcome.ERROR})
        rest = [other for other in findings if other is not finding]
        if exit_code([*rest, failed], [], criteria) < exit_code(rest, [], criteria):
            return Violation("one more failure lowers the exit code", finding.policy, finding.resource)
        if exit_code([*findings, erred], [], criteria) != 2:
            return Violation("an error does not deny", finding.policy, finding.resource)
    return None


def _by_estates(trial: Trial, gate: Severity, random: Random) -> Violation | None:
    """Try a larger estate, one of two: the whole of it once more elsewhere, or one failing resource once more."""
    criteria = Settings(fail_on=gate)
    failures = [finding for finding in trial.evaluation.findings if fails(finding, criteria)]
    denied = [finding for finding in trial.evaluation.findings if fails(finding, criteria) or _erred(finding)]
    if not denied:
        return None
    target = random.choice(failures) if failures and random.random() < 0.5 else None
    if target is not None and (larger := _with_another(trial.snapshot, target)):
        policies, what = {target.policy}, "a failing resource once more"
    else:
        larger, policies = with_its_copy(trial.snapshot), {finding.policy for finding in denied}
        what = "the same estate once more in another subscription"
    after = trial.evaluate_prepared(trial.ready(larger).only(lambda policy, _: policy.id in policies))
    for policy in sorted(policies):
        before = _exit(trial.evaluation, policy, gate)
        if _exit(after, policy, gate) < before:
            resource = next(finding.resource for finding in denied if finding.policy == policy)
            lines = (f"with {what}: exit {_exit(after, policy, gate)} instead of {before} at `--fail-on {gate}`",)
            return Violation("it denies an estate and allows a larger one", policy, resource, lines)
    return None


def _erred(finding: Finding) -> bool:
    return finding.outcome is Outcome.ERROR


def _exit(evaluation: Evaluation, policy: str, gate: Severity) -> int:
    """The exit code if a policy were the only one."""
    findings = (finding for finding in evaluation.findings if finding.policy == policy)
    return exit_code(findings, [], Settings(fail_on=gate))


def _with_another(snapshot: Snapshot, failing: Finding) -> Snapshot | None:
    """The snapshot with a copy of a failing resource next to it; None where the resource is only stated."""
    identity = lowered(failing.resource)
    for resource in snapshot.resources:
        if lowered(str(resource.get("id"))) == identity:
            again = {**resource, "id": f"{resource['id']}-again"}
            return snapshot.model_copy(update={"resources": (*snapshot.resources, again)})
    return None
