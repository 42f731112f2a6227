"""Audits of estates at their times."""
