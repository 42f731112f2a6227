"""The builtins of Rego: their signatures, and their functions, whose modules are imported when a policy uses them.

`signatures.json` has the types of their arguments and results as `opa capabilities` of OPA 1.22 prints them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from policyeng.rego.builtins.registry import FUNCTIONS, BuiltinError, Function, OperandError
from policyeng.rego.values import Value

__all__ = [
    "NOW",
    "REFUSED",
    "BuiltinError",
    "LibraryError",
    "OperandError",
    "RefusedBuiltinError",
    "explain_refusal",
    "load_function",
    "load_pattern",
    "signatures",
]

#: The builtin whose value is the time of the evaluation.
NOW = "time.now_ns"
#: Builtins that read more than their arguments, and what to do instead.
REFUSED = {
    "http.send": "put what it would fetch into the input",
    "net.lookup_ip_addr": "put the addresses into the input",
    "opa.runtime": "put what it would read into the input",
    "rand.intn": "the same input must give the same result",
    "rego.parse_module": "a policy reads its input, not other policies",
    NOW: "put the time into the input",
    "uuid.rfc4122": "the same input must give the same result",
    "crypto.x509.parse_and_verify_certificates": (
        "use crypto.x509.parse_and_verify_certificates_with_options with CurrentTime"
    ),
}

_GROUPS = {
    "io.jwt.": "tokens",
    "crypto.x509.": "crypto",
    "crypto.parse_private_keys": "crypto",
    "crypto.": "hashes",
    "time.": "time",
    "regex.": "regex",
    "glob.": "glob",
    "net.": "net",
    "json.match_schema": "schemas",
    "json.verify_schema": "schemas",
    "json.patch": "objects",
    "json.filter": "objects",
    "json.remove": "objects",
    "json.": "encoding",
    "yaml.": "encoding",
    "base64": "encoding",
    "hex.": "encoding",
    "urlquery.": "encoding",
    "uri.": "encoding",
    "uuid.": "encoding",
    "graphql.": "graphql",
    "graph.": "graphs",
    "walk": "graphs",
    "object.": "objects",
    "array.": "aggregates",
    "bits.": "numbers",
    "numbers.": "numbers",
    "units.": "numbers",
    "semver.": "numbers",
    "providers.aws.": "aws",
    "strings.": "strings",
    "re_match": "regex",
    "cast_": "types",
    "is_": "types",
}
_MODULES = {
    **dict.fromkeys(("abs", "ceil", "div", "floor", "minus", "mul", "plus", "rem", "round"), "numbers"),
    **dict.fromkeys(("all", "any", "count", "max", "min", "product", "sort", "sum"), "aggregates"),
    **dict.fromkeys(("and", "or", "intersection", "union", "set_diff"), "aggregates"),
    **dict.fromkeys(("type_name", "to_number"), "types"),
    **dict.fromkeys(("equal", "neq", "lt", "gt", "lte", "gte", "internal.member_2", "internal.member_3"), "types"),
}


@cache
def signatures() -> dict[str, dict[str, Any]]:
    """Return by name the types of the arguments and the result of every builtin of OPA."""
    return dict(json.loads(Path(__file__).with_name("signatures.json").read_text(encoding="utf-8")))


class RefusedBuiltinError(Exception):
    """A call of a builtin that is refused, where nothing replaces it; not a `BuiltinError`, which may be undefined.

    Attributes:
        code: as OPA names that of a builtin.
    """

    code = "eval_builtin_error"


def explain_refusal(name: str) -> str:
    """Return why a builtin is refused, and what to do instead."""
    return f"{name} is refused: {REFUSED[name]}"


class LibraryError(Exception):
    """A builtin whose library is not installed."""


def load_function(name: str) -> Function:
    """Return the function of a builtin.

    Args:
        name: as OPA names it; a call of one that is refused raises `RefusedBuiltinError`.

    Raises:
        LibraryError: it needs a library that is not installed.
    """
    if name in REFUSED:

        def refuse(*_: Value) -> Value:
            raise RefusedBuiltinError(f"{explain_refusal(name)}, or replace it by `with {name} as ...`")

        return refuse
    if name not in FUNCTIONS:
        group = next((group for prefix, group in _GROUPS.items() if name.startswith(prefix)), None)
        try:
            import_module(f"{__name__}.{group or _MODULES.get(name, 'strings')}")
        except ModuleNotFoundError as error:
            library = (error.name or "").partition(".")[0]
            raise LibraryError(
                f"{name} needs `{library}`, which is not installed; install `policyeng[rego]`"
            ) from error
    return FUNCTIONS[name]


def load_pattern(text: str) -> Callable[[str], object]:
    """Return a function whose result is true where a regular expression matches anywhere in a text.

    Raises:
        BuiltinError: it is not a regular expression.
    """
    from policyeng.rego.builtins.regex import compile_pattern  # imported when a policy has one

    return compile_pattern(text)
