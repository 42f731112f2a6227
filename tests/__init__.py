"""The tests of policyeng."""
