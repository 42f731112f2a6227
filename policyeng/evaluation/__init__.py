"""Evaluate snapshots with bundles of policies."""

from __future__ import annotations

from policyeng.evaluation.context import EvaluationContext, EvaluationOptions, prepare
from policyeng.evaluation.evaluate import conclude, evaluate, evaluate_pairs, evaluate_prepared, evaluate_snapshot
from policyeng.evaluation.summary import added, exit_code, fails, find_scopes, problems_of, summary_of

__all__ = [
    "EvaluationContext",
    "EvaluationOptions",
    "added",
    "conclude",
    "evaluate",
    "evaluate_pairs",
    "evaluate_prepared",
    "evaluate_snapshot",
    "exit_code",
    "fails",
    "find_scopes",
    "prepare",
    "problems_of",
    "summary_of",
]
