"""Audit estates at their times."""
