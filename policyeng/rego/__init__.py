"""Rego in Python: parse it, and report what is wrong with it as OPA does. It imports nothing else of policyeng."""

from policyeng.rego.errors import Diagnostic, RegoError, Source
from policyeng.rego.parser import parse_module, parse_query

__all__ = ["Diagnostic", "RegoError", "Source", "parse_module", "parse_query"]
