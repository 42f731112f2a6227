"""Audits of estates: evaluation of their parts, and storage of the results as one run."""
