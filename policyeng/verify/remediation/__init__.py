"""Remediation: the patches of headers, and the smallest edit that makes a finding pass."""
