"""Evaluation of tables of snapshots in Spark. Importing other packages does not load Spark."""

from policyeng.spark.evaluation import evaluate_table
from policyeng.spark.table import COLUMNS

#: The name of `evaluate_table` in version 0.1.
judge = evaluate_table

__all__ = ["COLUMNS", "evaluate_table", "judge"]
