"""`policyeng audit`: run, store, compare and report on audits."""
