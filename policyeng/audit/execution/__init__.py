"""Audit an estate: judge each part that was read, and keep what came of it as one run."""
