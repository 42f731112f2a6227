"""What changed between two evaluations or over many, and why."""
