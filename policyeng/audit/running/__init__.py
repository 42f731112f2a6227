"""Audit an estate: judge each part that was read, and keep what came of it as one run."""

from policyeng.audit.running.estates import run_estate

__all__ = ["run_estate"]
