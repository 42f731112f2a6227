"""Evaluate pairs of a policy and a subject. Each engine is one module with one function."""

from __future__ import annotations

from msgspec.structs import replace

from policyeng.engines import python
from policyeng.engines.opa_query import OpaOptions
from policyeng.engines.request import Column, EvaluationRequest, Judgement, Pair
from policyeng.errors import UsageError

__all__ = [
    "ENGINES",
    "Column",
    "EvaluationRequest",
    "Judgement",
    "OpaOptions",
    "Pair",
    "engine_version",
    "evaluate_pairs",
    "prepare_shared_data",
    "run_engine",
]

#: The engines that can evaluate Rego.
ENGINES = ("embedded", "opa")


def run_engine(work: EvaluationRequest, engine: str = "embedded", opa: OpaOptions | None = None) -> list[Column]:
    """Evaluate every pair: Rego policies with the named engine, Python policies with Python.

    Args:
        work: the request. If it has a clock, the clock records for how long the results are valid.
        engine: one of `ENGINES`.
        opa: the OPA server of the engine `opa`; by default a private server is started.

    Returns:
        One column for each policy, in the order of `work.positions`.

    Raises:
        UsageError: the engine does not exist, or the options of the OPA server are not valid.
        EngineError: the engine cannot compile the bundle, or cannot be reached.
    """
    judgements = evaluate_pairs(work, engine, opa)
    return [Column.of(policy, positions, judgements[policy]) for policy, positions in work.positions.items()]


def evaluate_pairs(
    work: EvaluationRequest, engine: str = "embedded", opa: OpaOptions | None = None
) -> dict[int, list[Judgement]]:
    """Return for each policy, by its number, the result of every pair; see `run_engine`."""
    _require_engine(engine)
    if engine == "opa":
        return _run_with_opa(work, opa)
    if work.apart:
        return {policy: results for part in work.parts() for policy, results in evaluate_pairs(part).items()}
    clock = work.clock
    if clock is None:
        return _evaluate_all(work)
    reading = {policy for policy in work.positions if work.bundle.clocked[policy]}
    if not all(work.bundle.clock_recorded[policy] for policy in reading):
        clock.give_up()
    if clock.unchanged is None:
        return _evaluate_all(replace(work, clock=None))
    judgements = _evaluate_all(work)
    # The recording clock can be the cause of an error.
    if any(judgement.error is not None for policy in reading for judgement in judgements[policy]):
        clock.give_up()
    if clock.unchanged is None:
        again = replace(work, clock=None, snapshot=work.snapshot.fresh())
        judgements |= _evaluate_all(again.only(reading))
    return judgements


def _evaluate_all(work: EvaluationRequest) -> dict[int, list[Judgement]]:
    """Evaluate pairs for which the same parts of the snapshot are unknown."""
    from policyeng.engines import embedded

    policies = work.bundle.policies
    rego = work.only({policy for policy in work.positions if policies[policy].rules})
    judgements = dict(zip(rego.positions, embedded.evaluate_embedded(rego), strict=True)) if rego.positions else {}
    for policy in work.positions:
        if not policies[policy].rules:
            judgements[policy] = python.evaluate_policy(work, policy)
    return judgements


def _run_with_opa(work: EvaluationRequest, options: OpaOptions | None) -> dict[int, list[Judgement]]:
    """Evaluate, in one query to OPA, all pairs of Rego policies that read nothing unknown.

    OPA does not support markers, so the embedded engine evaluates first where parts of the snapshot are unknown.
    """
    from policyeng.engines import opa

    policies = work.bundle.policies
    in_rego = {policy for policy in work.positions if policies[policy].rules}
    if work.clock is not None and any(work.bundle.clocked[policy] for policy in in_rego):
        work.clock.give_up()  # what OPA compares with the clock is not recorded
    judgements: dict[int, list[Judgement]] = {}
    for part in work.parts():
        judgements |= evaluate_pairs(part if part.marking is not None else part.only(part.positions.keys() - in_rego))
    remaining = [
        (index, pair)
        for policy, positions in work.positions.items()
        for index, pair in enumerate(work.pairs_of(policy, positions) if policy in in_rego else ())
        if policy not in judgements or not judgements[policy][index].is_partial
    ]
    if remaining:
        results = opa.evaluate_with_opa(work, [pair for _, pair in remaining], options)
        for (index, pair), judgement in zip(remaining, results, strict=True):
            of_policy = judgements.setdefault(pair.policy, [])
            of_policy[index : index + 1] = [judgement]
    return judgements


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
