"""Judge snapshots in Spark."""
