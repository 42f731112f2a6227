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

from policyeng.rego.builtins.registry import FUNCTIONS, BuiltinError, Function, OperandError, UnsupportedError
from policyeng.rego.values import Value

__all__ = [
    "IMPURE",
    "NOW",
    "REFUSED",
    "BuiltinError",
    "OperandError",
    "UnsupportedError",
    "explain_refusal",
    "load_function",
    "load_pattern",
    "signatures",
]

#: The builtin whose value is the time of the evaluation.
NOW = "time.now_ns"
#: Builtins that read more than their arguments, and what to do instead. No engine calls them.
IMPURE = {
    "crypto.x509.parse_and_verify_certificates": (
        "use crypto.x509.parse_and_verify_certificates_with_options with CurrentTime, and `--engine opa`"
    ),
    "http.send": "put what it would fetch into the input",
    "net.lookup_ip_addr": "put the addresses into the input",
    "opa.runtime": "put what it would read into the input",
    "rand.intn": "the same input must give the same result",
    "rego.parse_module": "a policy reads its input, not other policies",
    NOW: "put the time into the input",
    "uuid.rfc4122": "the same input must give the same result",
}
_KEYS = "this engine reads no certificates and keys; use `--engine opa`"
_GRAPHQL = "this engine reads no GraphQL; use `--engine opa`"
#: Builtins that no policy on configuration needs: OPA has them, and this engine does not.
_OPA_ONLY = {
    "crypto.parse_private_keys": _KEYS,
    "crypto.x509.parse_and_verify_certificates_with_options": _KEYS,
    "crypto.x509.parse_certificate_request": _KEYS,
    "crypto.x509.parse_certificates": _KEYS,
    "crypto.x509.parse_keypair": _KEYS,
    "crypto.x509.parse_rsa_private_key": _KEYS,
    "graphql.is_valid": _GRAPHQL,
    "graphql.parse": _GRAPHQL,
    "graphql.parse_and_verify": _GRAPHQL,
    "graphql.parse_query": _GRAPHQL,
    "graphql.parse_schema": _GRAPHQL,
    "graphql.schema_is_valid": _GRAPHQL,
    "io.jwt.decode_verify": _KEYS,
    "io.jwt.encode_sign": "this engine signs nothing; use `--engine opa`",
    "io.jwt.encode_sign_raw": "this engine signs nothing; use `--engine opa`",
    "io.jwt.verify_eddsa": _KEYS,
    **{f"io.jwt.verify_{family}{size}": _KEYS for family in ("es", "ps", "rs") for size in (256, 384, 512)},
    "providers.aws.sign_req": "this engine signs nothing; use `--engine opa`",
    "strings.render_template": "use a template string or sprintf, or `--engine opa`",
}
#: Builtins that are refused when a module is compiled, and what to do instead.
REFUSED = {**IMPURE, **_OPA_ONLY}

_GROUPS = {
    "io.jwt.": "tokens",
    "crypto.": "hashes",
    "time.": "time",
    "regex.globs_match": "glob",
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
    "graph.": "graphs",
    "walk": "graphs",
    "object.": "objects",
    "array.": "aggregates",
    "bits.": "numbers",
    "numbers.": "numbers",
    "units.": "numbers",
    "semver.": "numbers",
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


def explain_refusal(name: str) -> str:
    """Return why a builtin is refused, and what to do instead."""
    return f"{name} is refused: {REFUSED[name]}"


def load_function(name: str) -> Function:
    """Return the function of a builtin.

    Args:
        name: as OPA names it; a call of one that is refused raises `UnsupportedError`.
    """
    if name in REFUSED:

        def refuse(*_: Value) -> Value:
            raise UnsupportedError(f"{explain_refusal(name)}, or replace it by `with {name} as ...`")

        return refuse
    if name not in FUNCTIONS:
        group = next((group for prefix, group in _GROUPS.items() if name.startswith(prefix)), None)
        import_module(f"{__name__}.{group or _MODULES.get(name, 'strings')}")
    return FUNCTIONS[name]


def load_pattern(text: str) -> Callable[[str], object]:
    """Return a function whose result is true where a regular expression matches anywhere in a text.

    Raises:
        BuiltinError: it is not a regular expression.
        UnsupportedError: only OPA may take it for one.
    """
    from policyeng.rego.builtins.regex import compile_pattern  # imported when a policy has one

    return compile_pattern(text)
