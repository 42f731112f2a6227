"""Evaluate the snapshots of a folder in Spark: spark-submit evaluate.py SNAPSHOTS AS_OF FINDINGS.

SNAPSHOTS is anything that Spark can list, such as a folder or s3a://bucket/folder. FINDINGS is the table to write.
The exit code is that of `policyeng check`.
"""

import sys
from datetime import datetime

from pyspark.sql import SparkSession
from pyspark.sql.functions import col
from pyspark.sql.functions import max as greatest

import policyeng
from policyeng.spark import evaluate_table


def main(snapshots: str, as_of: str, to: str) -> int:
    """Write the findings, show what fails most, and give the worst exit code: 2 is above 1, and 1 above 0."""
    with SparkSession.builder.appName("policyeng").getOrCreate() as spark:
        files = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(snapshots)
        findings = evaluate_table(
            files,
            policyeng.load_bundle(),
            as_of=datetime.fromisoformat(as_of),
            name_column="path",
            snapshot_column="content",
        )
        findings.write.mode("overwrite").parquet(to)
        written = spark.read.parquet(to)  # evaluate once, although two results are computed from it
        failed = written.where("outcome = 'fail' and exemption is null")
        failed.groupBy("policy", "title", "severity").count().orderBy(col("count").desc(), "policy").show(
            10, truncate=80
        )
        worst = written.agg(greatest("exit_code")).first()
        return 2 if worst is None or worst[0] is None else int(worst[0])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
