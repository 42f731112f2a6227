"""Rego in Python: parse it, check it as OPA does, compile and evaluate it. It imports nothing of policyeng.

The public face is this package and its modules `clock` (how long results hold), `errors`, `explanation`, `markers`
(what is unknown), `paths`, `program`, `syntax`, `tracing` (what is read) and `values`. What parses and compiles is
loaded when it is first used: a program that was compiled before needs none of it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from policyeng.rego.budget import EvaluationLimits
from policyeng.rego.builtins import IMPURE, BuiltinError, UnsupportedError, load_function, load_pattern
from policyeng.rego.compiled import Compiled
from policyeng.rego.errors import Diagnostic, ModuleText, RegoError
from policyeng.rego.markers import MarkedList, MarkedObject, Undecided, UnknownValue, mark
from policyeng.rego.program import Program
from policyeng.rego.runtime import Members
from policyeng.rego.thread import EvaluationError, Thread
from policyeng.rego.values import UNDEFINED

if TYPE_CHECKING:
    from policyeng.rego.assembly import GeneratedProgram
    from policyeng.rego.linking import compile_modules as compile  # noqa: A004  # rego.compile, as re.compile
    from policyeng.rego.linking import link
    from policyeng.rego.parser import parse_module, parse_query

__all__ = [
    "IMPURE",
    "UNDEFINED",
    "BuiltinError",
    "Compiled",
    "Diagnostic",
    "EvaluationError",
    "EvaluationLimits",
    "GeneratedProgram",
    "MarkedList",
    "MarkedObject",
    "Members",
    "ModuleText",
    "Program",
    "RegoError",
    "Thread",
    "Undecided",
    "UnknownValue",
    "UnsupportedError",
    "compile",
    "link",
    "load_function",
    "load_pattern",
    "mark",
    "parse_module",
    "parse_query",
]

_LOADED_WHEN_USED = {
    "GeneratedProgram": ("assembly", "GeneratedProgram"),
    "compile": ("linking", "compile_modules"),
    "link": ("linking", "link"),
    "parse_module": ("parser", "parse_module"),
    "parse_query": ("parser", "parse_query"),
}


def __getattr__(name: str) -> object:
    """Import what parses and compiles when it is first used (PEP 562)."""
    if name not in _LOADED_WHEN_USED:
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    module, attribute = _LOADED_WHEN_USED[name]
    return getattr(import_module(f"{__name__}.{module}"), attribute)
