"""Judge pairs of policy and subject. Each engine is one module with one function; only they import its library."""

from __future__ import annotations

from policyeng.engines import python
from policyeng.engines.work import Judgement, Pair, Work
from policyeng.errors import UsageError

__all__ = ["ENGINES", "Judgement", "Pair", "Work", "engine_version", "judge"]

#: The engines that can judge Rego.
ENGINES = ("embedded",)


def judge(work: Work, engine: str = "embedded") -> list[Judgement]:
    """Judge every pair: Rego policies by the named engine, Python policies by Python.

    Returns:
        One judgement per pair, in the order of `work.pairs`.

    Raises:
        UsageError: no engine has that name.
        EngineError: the engine cannot compile the bundle.
    """
    rego = [pair for pair in work.pairs if work.bundle.policies[pair.policy].rules]
    verdicts = dict(zip(rego, _rego(work, rego, engine), strict=True)) if rego else {}
    return [verdicts.get(pair) or python.judge_pair(work, pair) for pair in work.pairs]


def engine_version(engine: str = "embedded") -> str:
    """The version of the library behind an engine."""
    _known(engine)
    from policyeng.engines import embedded

    return embedded.version()


def _rego(work: Work, pairs: list[Pair], engine: str) -> list[Judgement]:
    _known(engine)
    from policyeng.engines import embedded

    return embedded.judge_pairs(work, pairs)


def _known(engine: str) -> None:
    if engine not in ENGINES:
        raise UsageError(f"no engine is called `{engine}`", remedy=f"the engines are {', '.join(ENGINES)}")
