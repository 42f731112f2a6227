"""Evaluate snapshots with bundles of policies."""

from __future__ import annotations

from policyeng.evaluation.conclusion import added, exit_code, fails, homes_of, is_unread, problems_of, summary_of
from policyeng.evaluation.evaluate import concluded, evaluate, evaluated
from policyeng.evaluation.options import EvaluationOptions
from policyeng.evaluation.prepared import Prepared, prepare

__all__ = [
    "EvaluationOptions",
    "Prepared",
    "added",
    "concluded",
    "evaluate",
    "evaluated",
    "exit_code",
    "fails",
    "homes_of",
    "is_unread",
    "prepare",
    "problems_of",
    "summary_of",
]
