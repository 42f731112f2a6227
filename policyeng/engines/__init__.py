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
    _require_engine(engine)
    if engine == "opa":
        return _run_with_opa(work, opa)
    if work.apart:
        found: dict[Pair, Judgement] = {}
        for part in work.parts():
            found.update(zip(part.pairs, run_engine(part), strict=True))
        return [found[pair] for pair in work.pairs]
    clock = work.clock
    if clock is None:
        return _evaluate_all(work)
    clocked = work.bundle.clocked
    reading = [number for number, pair in enumerate(work.pairs) if clocked[pair.policy]]
    if not all(_is_recorded(work, work.pairs[number]) for number in reading):
        clock.give_up()
    if clock.unchanged is None:
        return _evaluate_all(replace(work, clock=None))
    judgements = _evaluate_all(work)
    if any(judgements[number].error is not None for number in reading):  # the recording clock can be the cause
        clock.give_up()
    if clock.unchanged is None:
        again = replace(work, clock=None, snapshot=work.snapshot.fresh(), pairs=[work.pairs[at] for at in reading])
        for number, judgement in zip(reading, _evaluate_all(again), strict=True):
            judgements[number] = judgement
    return judgements


def _is_recorded(work: EvaluationRequest, pair: Pair) -> bool:
    """Check whether the comparisons of a policy with the clock can be recorded."""
    return bool(work.bundle.policies[pair.policy].rules) or work.bundle.clock_recorded[pair.policy]


def _evaluate_all(work: EvaluationRequest) -> list[Judgement]:
    """Evaluate pairs for which the same parts of the snapshot are unknown."""
    from policyeng.engines import embedded

    policies = work.bundle.policies
    rego = [pair for pair in work.pairs if policies[pair.policy].rules]
    results = iter(embedded.evaluate_embedded(work, rego) if rego else ())
    return [next(results) if policies[pair.policy].rules else python.evaluate_pair(work, pair) for pair in work.pairs]


def _run_with_opa(work: EvaluationRequest, options: OpaOptions | None) -> list[Judgement]:
    """Evaluate, in one query to OPA, all pairs of Rego policies that read nothing unknown.

    OPA does not support markers, so the embedded engine evaluates first where parts of the snapshot are unknown.
    """
    from policyeng.engines import opa

    policies = work.bundle.policies
    if work.clock is not None and any(
        policies[pair.policy].rules and work.bundle.clocked[pair.policy] for pair in work.pairs
    ):
        work.clock.give_up()  # what OPA compares with the clock is not recorded
    found: dict[Pair, Judgement] = {}
    for part in work.parts():
        pairs = [pair for pair in part.pairs if part.marking is not None or not policies[pair.policy].rules]
        found.update(zip(pairs, run_engine(replace(part, pairs=pairs)), strict=True))
    remaining = [
        pair for pair in work.pairs if policies[pair.policy].rules and (pair not in found or not found[pair].is_partial)
    ]
    if remaining:
        found.update(zip(remaining, opa.evaluate_with_opa(work, remaining, options), strict=True))
    return [found[pair] for pair in work.pairs]


def prepare_shared_data(work: EvaluationRequest) -> None:
    """Prepare the data that all pairs need, so that forked processes share it.

    Raises:
        EngineError: the bundle does not compile.
    """
    from policyeng.engines import embedded

    program = embedded.compile_bundle(work.bundle).program
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


def _require_engine(engine: str) -> None:
    if engine not in ENGINES:
        raise UsageError(f"there is no engine `{engine}`", remedy=f"use one of {', '.join(ENGINES)}")
