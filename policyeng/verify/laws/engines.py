"""Law 8: twins agree, engines agree."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from policyeng.bundle import Bundle
from policyeng.engines import opa
from policyeng.errors import EngineError
from policyeng.verify.differential.differential import Contestant, EngineDifference, comparisons, contestants, differs
from policyeng.verify.differential.report import spelled
from policyeng.verify.laws.law import Law, LawContext, Trial, Violation

_NAME = "engines"
#: OPA is asked on one of so many examples that are tried: a query of a server costs what ten other judgements do.
_OPA_ON_ONE_OF = 5


def _violated(trial: Trial) -> Violation | None:
    entered: Sequence[Contestant] = trial.grounds.once(_NAME, lambda: _entered(trial.grounds))
    with_opa = trial.random(_NAME).randrange(_OPA_ON_ONE_OF) == 0
    asked = [entry for entry in entered if with_opa or entry.name != "opa"]
    compared, by_opa = 0, 0
    for comparison in comparisons(trial.bundle, trial.example, asked, trial.snapshot):
        if differs(comparison):
            return _difference(comparison)
        compared += len(comparison.judgements) > 1
        by_opa += "opa" in dict(comparison.judgements)
    trial.grounds.remark(_NAME, "pairs that two engines or more judged alike", compared)
    trial.grounds.remark(_NAME, "of these judged by opa, too", by_opa)
    return None


def _difference(comparison: EngineDifference) -> Violation:
    lines = [f"{name:12} {orjson.dumps(spelled(judgement)).decode()}" for name, judgement in comparison.judgements]
    return Violation("the engines do not say the same", comparison.policy, comparison.subject, tuple(lines))


def _entered(grounds: LawContext) -> list[Contestant]:
    """The engines that are there; one that is missing, and what one engine alone judges, is said aloud."""
    without = []
    try:
        opa.version()
    except EngineError as error:
        without = ["opa"]
        grounds.remark(_NAME, f"`opa` is missing, and judged nothing: {error}")
    entered = contestants(grounds.bundle, without=without)
    names = ", ".join(f"{entry.name} {entry.version}" for entry in entered if entry.covers)
    grounds.remark(_NAME, f"judged by {names or 'no engine'}")
    if alone := _alone(grounds.bundle, entered):
        grounds.remark(_NAME, f"compared with nothing, for only one engine judges them: {', '.join(alone)}")
    return entered


def _alone(bundle: Bundle, entered: Sequence[Contestant]) -> list[str]:
    return [policy.id for policy in bundle.policies if sum(policy.id in entry.covers for entry in entered) < 2]


LAW = Law(
    8,
    _NAME,
    "twins agree, engines agree",
    "W. McKeeman, Differential Testing for Software, Digital Technical Journal 10 (1998)",
    _violated,
    every=2,
)
