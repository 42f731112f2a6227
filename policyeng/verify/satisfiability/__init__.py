"""Satisfiability: whether each class of workloads can pass all policies, with a witness or a minimal conflict."""
