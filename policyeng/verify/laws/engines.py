"""Law 8: the Rego and Python forms of a policy agree, and all engines agree."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from policyeng.bundle import Bundle
from policyeng.engines import opa
from policyeng.errors import EngineError
from policyeng.verify.differential.differential import Contestant, EngineDifference, comparisons, contestants, differs
from policyeng.verify.differential.report import encode_result
from policyeng.verify.laws.law import Law, LawContext, Trial, Violation

_NAME = "engines"
#: OPA is queried for one in this many examples, because a query costs as much as ten other evaluations.
_OPA_ON_ONE_OF = 5


def _find_violations(trial: Trial) -> Violation | None:
    entered: Sequence[Contestant] = trial.grounds.once(_NAME, lambda: _find_engines(trial.grounds))
    with_opa = trial.random(_NAME).randrange(_OPA_ON_ONE_OF) == 0
    used = [entry for entry in entered if with_opa or entry.name != "opa"]
    compared, by_opa = 0, 0
    for comparison in comparisons(trial.bundle, trial.example, used, trial.snapshot):
        if differs(comparison):
            return _difference(comparison)
        compared += len(comparison.judgements) > 1
        by_opa += "opa" in dict(comparison.judgements)
    trial.grounds.remark(_NAME, "pairs that two or more engines agree on", compared)
    trial.grounds.remark(_NAME, "of these, also evaluated by opa", by_opa)
    return None


def _difference(comparison: EngineDifference) -> Violation:
    lines = [
        f"{name:12} {orjson.dumps(encode_result(judgement)).decode()}" for name, judgement in comparison.judgements
    ]
    return Violation("the engines disagree", comparison.policy, comparison.subject, tuple(lines))


def _find_engines(grounds: LawContext) -> list[Contestant]:
    """Return the available engines, and remark which engine is missing and which policies only one engine evaluates."""
    without = []
    try:
        opa.version()
    except EngineError as error:
        without = ["opa"]
        grounds.remark(_NAME, f"`opa` is missing and took no part: {error}")
    entered = contestants(grounds.bundle, without=without)
    names = ", ".join(f"{entry.name} {entry.version}" for entry in entered if entry.covers)
    grounds.remark(_NAME, f"evaluated by {names or 'no engine'}")
    if alone := _find_uncompared(grounds.bundle, entered):
        grounds.remark(_NAME, f"not compared, because only one engine evaluates them: {', '.join(alone)}")
    return entered


def _find_uncompared(bundle: Bundle, entered: Sequence[Contestant]) -> list[str]:
    return [policy.id for policy in bundle.policies if sum(policy.id in entry.covers for entry in entered) < 2]


LAW = Law(
    8,
    _NAME,
    "the Rego and Python forms of a policy agree, and all engines agree",
    "W. McKeeman, Differential Testing for Software, Digital Technical Journal 10 (1998)",
    _find_violations,
    every=2,
)
