"""Judge snapshots in Spark: a table of snapshots in, a table of findings out. Nothing of Spark is loaded before."""

from policyeng.spark.evaluation import judge
from policyeng.spark.table import COLUMNS

__all__ = ["COLUMNS", "judge"]
