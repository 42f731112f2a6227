"""Evaluate snapshots with bundles of policies."""

from __future__ import annotations

from policyeng.evaluation.context import EvaluationContext, prepare
from policyeng.evaluation.evaluate import conclude, evaluate, evaluate_pairs, evaluate_prepared
from policyeng.evaluation.options import EvaluationOptions
from policyeng.evaluation.summary import added, exit_code, fails, find_scopes, problems_of, summary_of

__all__ = [
    "EvaluationContext",
    "EvaluationOptions",
    "added",
    "conclude",
    "evaluate",
    "evaluate_pairs",
    "evaluate_prepared",
    "exit_code",
    "fails",
    "find_scopes",
    "prepare",
    "problems_of",
    "summary_of",
]
