"""Audits: collect estates, evaluate them, store the results, compare them over time and notify the owners."""
