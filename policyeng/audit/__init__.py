"""Audits: collect estates, judge them, keep what came of it, compare it over time and tell who owns it."""
