"""Rego in Python: parse it, check it as OPA does, compile and evaluate it. Of policyeng it imports `later` alone.

What parses and compiles is loaded when it is first used: a program that was compiled before needs none of it.
"""

from typing import TYPE_CHECKING

from policyeng.later import attributes
from policyeng.rego.errors import Diagnostic, ModuleText, RegoError
from policyeng.rego.markers import MarkedList, MarkedObject, Undecided, UnknownValue, mark
from policyeng.rego.program import EvaluationError, Program
from policyeng.rego.values import UNDEFINED

if TYPE_CHECKING:
    from policyeng.rego.linking import compile_modules as compile  # noqa: A004  # rego.compile, as re.compile
    from policyeng.rego.parser import parse_module, parse_query

__all__ = [
    "UNDEFINED",
    "Diagnostic",
    "EvaluationError",
    "MarkedList",
    "MarkedObject",
    "ModuleText",
    "Program",
    "RegoError",
    "Undecided",
    "UnknownValue",
    "compile",
    "mark",
    "parse_module",
    "parse_query",
]

__getattr__ = attributes(
    __name__, {"compile": "linking:compile_modules", "parse_module": "parser", "parse_query": "parser"}
)
