"""Rego in Python: parse it, check it as OPA does, compile it and evaluate it. It imports nothing else of policyeng."""

from policyeng.rego.builtins import LibraryError
from policyeng.rego.errors import Diagnostic, RegoError, Source
from policyeng.rego.markers import MarkedList, MarkedObject, Undecided, Unknown, mark
from policyeng.rego.parser import parse_module, parse_query
from policyeng.rego.program import EvaluationError, Program
from policyeng.rego.program import compile_modules as compile  # noqa: A004  # rego.compile, as re.compile
from policyeng.rego.values import UNDEFINED

__all__ = [
    "UNDEFINED",
    "Diagnostic",
    "EvaluationError",
    "LibraryError",
    "MarkedList",
    "MarkedObject",
    "Program",
    "RegoError",
    "Source",
    "Undecided",
    "Unknown",
    "compile",
    "mark",
    "parse_module",
    "parse_query",
]
