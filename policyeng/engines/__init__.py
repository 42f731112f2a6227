"""Judge pairs of policy and subject. Each engine is one module with one function; only they import its library."""

from __future__ import annotations

from dataclasses import replace

from policyeng.engines import python
from policyeng.engines.opa_options import OpaOptions
from policyeng.engines.request import EvaluationRequest, Judgement, Pair
from policyeng.errors import UsageError

__all__ = ["ENGINES", "EvaluationRequest", "Judgement", "OpaOptions", "Pair", "engine_version", "judge", "share"]

#: The engines that can judge Rego.
ENGINES = ("embedded", "opa")


def judge(work: EvaluationRequest, engine: str = "embedded", opa: OpaOptions | None = None) -> list[Judgement]:
    """Judge every pair: Rego policies by the named engine, Python policies by Python.

    Args:
        work: what is judged. Its clock says until when that comes to the same, unless it is used otherwise.
        engine: a name of `ENGINES`.
        opa: which OPA judges, for that engine; a private one unless given.

    Returns:
        One judgement per pair, in the order of `work.pairs`.

    Raises:
        UsageError: no engine has that name, or the options of the OPA server do not fit.
        EngineError: the engine cannot compile the bundle, or cannot be reached.
    """
    if work.apart:
        found: dict[Pair, Judgement] = {}
        for part in work.parts():
            found.update(zip(part.pairs, judge(part, engine, opa), strict=True))
        return [found[pair] for pair in work.pairs]
    clock = work.clock
    if clock is None:
        return _judge_all(work, engine, opa)
    clocked = work.bundle.clocked
    reading = [number for number, pair in enumerate(work.pairs) if clocked[pair.policy]]
    if not all(_is_recorded(work, work.pairs[number], engine) for number in reading):
        clock.give_up()
    if clock.unchanged is None:
        return _judge_all(replace(work, clock=None), engine, opa)
    judgements = _judge_all(work, engine, opa)
    if any(judgements[number].error is not None for number in reading):  # it may be about what stands for the clock
        clock.give_up()
    if clock.unchanged is None:
        again = replace(work, clock=None, snapshot=work.snapshot.fresh(), pairs=[work.pairs[at] for at in reading])
        for number, judgement in zip(reading, _judge_all(again, engine, opa), strict=True):
            judgements[number] = judgement
    return judgements


def _is_recorded(work: EvaluationRequest, pair: Pair, engine: str) -> bool:
    """Return whether what a policy compares the clock with can be recorded."""
    if work.bundle.policies[pair.policy].rules:
        return engine == "embedded"
    return work.bundle.clock_recorded[pair.policy]


def _judge_all(work: EvaluationRequest, engine: str, opa: OpaOptions | None) -> list[Judgement]:
    """Judge pairs that all know the same of the snapshot."""
    policies = work.bundle.policies
    rego = [pair for pair in work.pairs if policies[pair.policy].rules]
    verdicts = iter(_rego(work, rego, engine, opa) if rego else ())
    return [next(verdicts) if policies[pair.policy].rules else python.judge_pair(work, pair) for pair in work.pairs]


def share(work: EvaluationRequest) -> None:
    """Make what all pairs need, so that processes which are forked then need not.

    Raises:
        EngineError: the bundle does not compile.
    """
    from policyeng.engines import embedded

    program = embedded.compile_rego(work.bundle)
    for part in work.parts():
        embedded.documents_of(part)
        if part.marking is not None:
            python.input_of(part)
            program.handled_thread()


def engine_version(engine: str = "embedded", opa: OpaOptions | None = None) -> str:
    """The version of the library or the server behind an engine."""
    _known(engine)
    if engine == "opa":
        from policyeng.engines import opa as server

        return server.version(opa)
    from policyeng.engines import embedded

    return embedded.version()


def _rego(work: EvaluationRequest, pairs: list[Pair], engine: str, opa: OpaOptions | None) -> list[Judgement]:
    _known(engine)
    from policyeng.engines import embedded

    if engine != "opa":
        return embedded.judge_pairs(work, pairs)
    from policyeng.engines import opa as server

    if work.marking is None:
        return server.judge_pairs(work, pairs, opa)
    # OPA knows no markers: it is asked about the pairs that meet none.
    found = embedded.judge_pairs(work, pairs)
    asked = [pair for pair, judgement in zip(pairs, found, strict=True) if not judgement.is_partial]
    answers = iter(server.judge_pairs(work, asked, opa) if asked else ())
    return [judgement if judgement.is_partial else next(answers) for judgement in found]


def _known(engine: str) -> None:
    if engine not in ENGINES:
        raise UsageError(f"no engine is called `{engine}`", remedy=f"the engines are {', '.join(ENGINES)}")
