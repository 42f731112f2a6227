"""Divide the policies of an evaluation among forked processes, which share the prepared snapshot."""

from __future__ import annotations

from collections.abc import Iterator

from policyeng.engines import Column, EvaluationRequest, Judgement, prepare_shared_data, run_engine
from policyeng.errors import UsageError
from policyeng.evaluation.context import PAIRS_OF_A_PROCESS
from policyeng.evaluation.options import EvaluationOptions
from policyeng.processes import REMEDY, Lost, processes, processors
from policyeng.progress import counted


def processes_for(options: EvaluationOptions, pairs: int) -> int:
    """Return the number of processes for a number of pairs.

    Raises:
        UsageError: more than one process is requested, and the engine cannot use several.
    """
    if options.engine != "embedded":
        if options.jobs > 1:
            raise UsageError(f"the engine `{options.engine}` cannot use several processes", remedy="leave out `--jobs`")
        return 1
    return options.jobs or min(processors(), pairs // PAIRS_OF_A_PROCESS)


def evaluate_in_processes(request: EvaluationRequest, count: int) -> Iterator[Column]:
    """Yield the column of each policy, as `run_engine` does, evaluated in several processes.

    If a process ends early, the pairs of the policy that it was evaluating are errors. A policy that exceeds its limit
    is switched off by the process that evaluates it, as in one process.

    Raises:
        EngineError: the bundle does not compile, or no process can be started.
    """
    prepare_shared_data(request)
    overruns, policies = request.bundle.overruns, request.bundle.policies
    # The policies with most pairs first: the processes then end at about the same time.
    numbers = sorted(request.positions, key=lambda number: -len(request.positions[number]))
    with processes(request, count, ahead=2) as pool:
        tasks = [pool.submit(_evaluate_policy, number) for number in numbers]
        for number, task in counted(zip(numbers, tasks, strict=True), len(tasks)):
            result = pool.outcome(task)
            if isinstance(result, Lost):
                positions = request.positions[number]
                yield Column.of(number, positions, [_unevaluated(result)] * len(positions))
            else:
                column, exceeded = result
                if exceeded:
                    overruns[policies[number].id] = exceeded
                yield column


def _evaluate_policy(request: EvaluationRequest, number: int) -> tuple[Column, int]:
    """Evaluate a policy; return its outcomes, and how often it has exceeded its limit."""
    [column] = run_engine(request.only({number}))
    return column, request.bundle.overruns.get(request.bundle.policies[number].id, 0)


def _unevaluated(lost: Lost) -> Judgement:
    return Judgement(error=f"limit: not evaluated: the process that evaluates it {lost.how}; {REMEDY}", is_limit=True)
