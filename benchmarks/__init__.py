"""Policyeng compared with OPA and Conftest on the same policies and the same snapshots; `make bench` runs it."""
