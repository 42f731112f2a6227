"""Every regular expression of the product, found in its source, with hostile texts made for each.

Run as a program, this times them: `python -m tests.product_patterns PATTERNS SECONDS` (what the test of it starts).
"""

from __future__ import annotations

import ast
import importlib
import json
import re
import re._constants as opcodes  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
_METHODS = frozenset({"match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer"})
_REPEATS = {opcodes.MAX_REPEAT, opcodes.MIN_REPEAT, opcodes.POSSESSIVE_REPEAT}
#: Where a quantifier is too small for a text to be long by it.
_FEW = 8
#: What classes are sampled from.
_SIGNS = "a0A-_./ \t\n:@\"'\\=+$#{[(<*,;?&%~`|>)]}!^\x00é"
#: What has stalled engines, whatever the pattern.
_GENERIC = (
    *(
        "a-",
        "{{",
        "${",
        "eyJ",
        "\n",
        " ",
        "\t",
        " \n",
        "0",
        "/",
        "//",
        "/*",
        "_",
        "__",
        "A",
        "a",
        "aA",
        "0a",
        "a.",
        "1.",
    ),
    *(
        '"',
        "\\",
        '\\"',
        "'",
        "`",
        "=",
        ":",
        "::",
        ".",
        "[",
        "<",
        "(",
        "*",
        "#",
        "##",
        "-",
        "$",
        "é",
        "\x00",
        "a/",
        "a=",
        "a ",
    ),
    *("https://", "a:", "%", "@", "a@", "&", "key=", "1-", "T0", "\r\n", "]", "}", ")", ">"),
)
_ENDS = ("\x00", "\n", "")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression of the product.

    Attributes:
        place: its file and line.
        text: the expression.
        flags: the flags of `re`.
        methods: how it is used; all ways where the source does not tell.
    """

    place: str
    text: str | bytes
    flags: int
    methods: frozenset[str]


def product_patterns() -> tuple[list[Pattern], list[str]]:
    """Find the patterns in the source, and the places (`file: expression`) of those that only a run determines."""
    found: list[Pattern] = []
    undetermined: list[str] = []
    trees = {
        path: ast.parse(path.read_text("utf-8"))
        for folder in ("policyeng", "policies")
        for path in sorted((ROOT / folder).rglob("*.py"))
    }
    for path, tree in trees.items():
        used = _uses([tree])
        names = {
            id(statement.value): target.id
            for statement in ast.walk(tree)
            if isinstance(statement, ast.Assign)
            for target in statement.targets
            if isinstance(target, ast.Name)
        }
        for call in ast.walk(tree):
            if (function := _function(call)) is None:
                continue
            assert isinstance(call, ast.Call)
            place = f"{path.relative_to(ROOT)}:{call.lineno}"
            try:
                text, flags = _evaluated(path, call, function)
            except NameError:
                undetermined.append(f"{path.relative_to(ROOT)}: {ast.unparse(call)}")
                continue
            methods = {function} if function in _METHODS else used.get(names.get(id(call), ""), _METHODS)
            found.append(Pattern(place, text, flags, frozenset(methods)))
    return found, undetermined


def _function(call: ast.AST) -> str | None:
    """The function of `re` that is called; none where something else is."""
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
        if call.func.value.id == "re" and call.func.attr in _METHODS | {"compile"}:
            return call.func.attr
    return None


def _uses(trees: Iterable[ast.Module]) -> dict[str, set[str]]:
    """By name of a variable, the methods of a pattern that are called on it anywhere."""
    used: dict[str, set[str]] = {}
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in _METHODS:
                used.setdefault(node.value.id, set()).add(node.attr)
    return used


def _evaluated(path: Path, call: ast.Call, function: str) -> tuple[str | bytes, int]:
    """The pattern and flags of a call, from the constants of its module.

    Raises:
        NameError: a part of them is a local variable.
    """
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    known = dict(vars(importlib.import_module(name)))
    values = [eval(compile(ast.Expression(part), name, "eval"), known) for part in call.args[:1]]  # noqa: S307
    position = {"compile": 1, "match": 2, "search": 2, "fullmatch": 2, "findall": 2, "finditer": 2}.get(function, 9)
    given = [keyword.value for keyword in call.keywords if keyword.arg == "flags"] or call.args[position : position + 1]
    flags = eval(compile(ast.Expression(given[0]), name, "eval"), known) if given else 0  # noqa: S307
    return values[0], int(flags)


def hostile_parts(text: str, flags: int) -> list[str]:
    """Texts that are hostile to a pattern where they are repeated: its parts, its loops, pairs of their characters."""
    tree = parser.parse(text, flags)
    parts: dict[str, None] = {}
    _example(tree, "", parts)
    singles = [part for part in parts if len(part) == 1][:6]
    pairs = [a + b for a in singles for b in singles if a != b]
    return list(dict.fromkeys([*parts, *pairs, *_GENERIC]))


def _example(tree: Any, before: str, parts: dict[str, None]) -> str:
    """A text that a sequence of the parser's nodes matches; what it is made of is put into `parts`."""
    text = ""
    for operation, argument in tree:
        if operation is opcodes.LITERAL:
            text += chr(argument)
        elif operation in {opcodes.NOT_LITERAL, opcodes.IN, opcodes.ANY}:
            signs = _signs(operation, argument)
            parts.update(dict.fromkeys(signs))
            text += signs[0] if signs else "a"
        elif operation in _REPEATS:
            least, most, body = argument
            inside = _example(body, before + text, parts)
            if most > _FEW and inside:
                parts.update(dict.fromkeys([inside, before + text + inside]))
            text += inside * min(max(least, 1), 64)
        elif operation is opcodes.SUBPATTERN:
            text += _example(argument[3], before + text, parts)
        elif operation is opcodes.BRANCH:
            examples = [_example(branch, before + text, parts) for branch in argument[1]]
            text += examples[0]
        elif operation is opcodes.ATOMIC_GROUP:
            text += _example(argument, before + text, parts)
        elif operation in {opcodes.ASSERT, opcodes.ASSERT_NOT}:
            _example(argument[1], before + text, parts)
        if text:
            parts.update(dict.fromkeys([text, before + text]))
    return text


def _signs(operation: Any, argument: Any) -> list[str]:
    """A few characters of different sorts that a node for one character matches."""
    chosen = [sign for sign in _SIGNS if _in(operation, argument, sign)]
    return chosen[:5]


def _in(operation: Any, argument: Any, sign: str) -> bool:
    if operation is opcodes.ANY:
        return sign != "\n"
    if operation is opcodes.NOT_LITERAL:
        return ord(sign) != argument
    negated, within = False, False
    for kind, value in argument:
        if kind is opcodes.NEGATE:
            negated = True
        elif kind is opcodes.LITERAL:
            within |= ord(sign) == value
        elif kind is opcodes.RANGE:
            within |= value[0] <= ord(sign) <= value[1]
        elif kind is opcodes.CATEGORY:
            expression = {
                opcodes.CATEGORY_DIGIT: r"\d",
                opcodes.CATEGORY_NOT_DIGIT: r"\D",
                opcodes.CATEGORY_SPACE: r"\s",
                opcodes.CATEGORY_NOT_SPACE: r"\S",
                opcodes.CATEGORY_WORD: r"\w",
                opcodes.CATEGORY_NOT_WORD: r"\W",
            }[value]
            within |= re.match(expression, sign) is not None
    return within is not negated
