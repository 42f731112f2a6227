"""`policyeng audit`: audit estates and ask what came of it."""
