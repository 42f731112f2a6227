"""Evaluate pairs of a policy and a subject. Each engine is one module with one function."""

from __future__ import annotations

from dataclasses import replace

from policyeng.engines import python
from policyeng.engines.opa_query import OpaOptions
from policyeng.engines.request import EvaluationRequest, Judgement, Pair
from policyeng.errors import UsageError

__all__ = [
    "ENGINES",
    "EvaluationRequest",
    "Judgement",
    "OpaOptions",
    "Pair",
    "engine_version",
    "prepare_shared_data",
    "run_engine",
]

#: The engines that can evaluate Rego.
ENGINES = ("embedded", "opa")


def run_engine(work: EvaluationRequest, engine: str = "embedded", opa: OpaOptions | None = None) -> list[Judgement]:
    """Evaluate every pair: Rego policies with the named engine, Python policies with Python.

    Args:
        work: the request. If it has a clock, the clock records for how long the results are valid.
        engine: one of `ENGINES`.
        opa: the OPA server of the engine `opa`; by default a private server is started.

    Returns:
        One result for each pair, in the order of `work.pairs`.

    Raises:
        UsageError: the engine does not exist, or the options of the OPA server are not valid.
        EngineError: the engine cannot compile the bundle, or cannot be reached.
    """
    if work.apart:
        found: dict[Pair, Judgement] = {}
        for part in work.parts():
            found.update(zip(part.pairs, run_engine(part, engine, opa), strict=True))
        return [found[pair] for pair in work.pairs]
    clock = work.clock
    if clock is None:
        return _evaluate_all(work, engine, opa)
    clocked = work.bundle.clocked
    reading = [number for number, pair in enumerate(work.pairs) if clocked[pair.policy]]
    if not all(_is_recorded(work, work.pairs[number], engine) for number in reading):
        clock.give_up()
    if clock.unchanged is None:
        return _evaluate_all(replace(work, clock=None), engine, opa)
    judgements = _evaluate_all(work, engine, opa)
    if any(judgements[number].error is not None for number in reading):  # the recording clock can be the cause
        clock.give_up()
    if clock.unchanged is None:
        again = replace(work, clock=None, snapshot=work.snapshot.fresh(), pairs=[work.pairs[at] for at in reading])
        for number, judgement in zip(reading, _evaluate_all(again, engine, opa), strict=True):
            judgements[number] = judgement
    return judgements


def _is_recorded(work: EvaluationRequest, pair: Pair, engine: str) -> bool:
    """Check whether the comparisons of a policy with the clock can be recorded."""
    if work.bundle.policies[pair.policy].rules:
        return engine == "embedded"
    return work.bundle.clock_recorded[pair.policy]


def _evaluate_all(work: EvaluationRequest, engine: str, opa: OpaOptions | None) -> list[Judgement]:
    """Evaluate pairs for which the same parts of the snapshot are unknown."""
    policies = work.bundle.policies
    rego = [pair for pair in work.pairs if policies[pair.policy].rules]
    results = iter(_evaluate_rego(work, rego, engine, opa) if rego else ())
    return [next(results) if policies[pair.policy].rules else python.evaluate_pair(work, pair) for pair in work.pairs]


def prepare_shared_data(work: EvaluationRequest) -> None:
    """Prepare the data that all pairs need, so that forked processes share it.

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
    """Return the version of the library or the server of an engine."""
    _require_engine(engine)
    if engine == "opa":
        from policyeng.engines import opa as server

        return server.version(opa)
    from policyeng.engines import embedded

    return embedded.version()


def _evaluate_rego(work: EvaluationRequest, pairs: list[Pair], engine: str, opa: OpaOptions | None) -> list[Judgement]:
    _require_engine(engine)
    from policyeng.engines import embedded

    if engine != "opa":
        return embedded.evaluate_embedded(work, pairs)
    from policyeng.engines import opa as server

    if work.marking is None:
        return server.evaluate_with_opa(work, pairs, opa)
    # OPA does not support markers: it evaluates only the pairs that read none.
    found = embedded.evaluate_embedded(work, pairs)
    plain = [pair for pair, judgement in zip(pairs, found, strict=True) if not judgement.is_partial]
    answers = iter(server.evaluate_with_opa(work, plain, opa) if plain else ())
    return [judgement if judgement.is_partial else next(answers) for judgement in found]


def _require_engine(engine: str) -> None:
    if engine not in ENGINES:
        raise UsageError(f"there is no engine `{engine}`", remedy=f"use one of {', '.join(ENGINES)}")
