"""Every regular expression of the product, found in its source, with hostile texts made for each.

As a program, it times them all: `python -m tests.product_patterns` prints a line of JSON for each.
"""

from __future__ import annotations

import ast
import importlib
import json
import re
import re._constants as opcodes  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from policyeng.redaction import _shapes
from policyeng.rego.builtins.time import _reader as reader_of

ROOT = Path(__file__).parent.parent
_METHODS = frozenset({"match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer"})
#: What is tried where the source does not show it: the other methods scan a text as `sub` does.
_DIFFERENT = frozenset({"match", "search", "fullmatch", "sub"})
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
#: What no repetition fits, at the end.
_ENDS = ("\x00", "\n", "")
#: Values of the local variables of which patterns are made, by file.
_LOCALS: dict[str, list[dict[str, object]]] = {
    "policyeng/bundle/analysis.py": [{"named": "metrics|by_measured"}],
    "policyeng/bundle/discovery.py": [{"named": ["", "custom.id"], "source": ""}],
    "policyeng/configuration/toml_file.py": [{"name": "[\"']?ignore[\"']?", "key": "estate"}],
    "policyeng/engines/opa.py": [{"name": "regex.match"}],
    "policyeng/server/routes/admission_review.py": [
        {"pattern": pattern}
        for pattern in (r"[A-Za-z0-9]+(\.[A-Za-z0-9]+)+(/[A-Za-z0-9]+)+", r"[^/]+", r"/[\s\S]*[^/]")
    ],
    "policyeng/parsing/arm_functions.py": [{"every": ["a", "--", "a-"]}],
    "policyeng/rego/builtins/time.py": [
        {"pattern": reader_of(layout)[0].pattern, "layout": "", "place": 0}
        for layout in (
            "2006-01-02T15:04:05.999999999Z07:00",
            "Mon Jan _2 15:04:05 2006",
            "Monday, 02-Jan-06 15:04:05 MST",
            "3:04:05.000PM  2 January 2006",
        )
    ],
    "policyeng/verify/generators/estates.py": [{"name": b"vmSize"}],
    "policyeng/verify/redundancy.py": [{"name": "allowed"}],
}
#: Characters of a text in which quadratic time shows, and of a whole one.
SHORT, LONG = 1 << 14, 1 << 20
#: Seconds of the processor that a text may take. A linear pattern takes less than a tenth of that for either, a
#: quadratic one more than twice as much for a short one and hours for a long one, whatever the load of the machine.
_SHORT_LIMIT, _LONG_LIMIT = 0.06, 10.0
#: A quarter of a text is tried first, and all of it where the quarter takes this part of the limit: cubic growth
#: multiplies the time by 64.
_SUSPICIOUS = 1 / 64


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression of the product.

    Attributes:
        place: its file and line.
        text: the expression.
        flags: the flags of `re`.
        engine: the module that compiles it.
        methods: how it is used; all ways where the source does not show it.
    """

    place: str
    text: str | bytes
    flags: int
    engine: str
    methods: frozenset[str]


def product_patterns(root: Path = ROOT) -> tuple[list[Pattern], list[str]]:
    """Find the patterns in the source, and those calls of `re` whose pattern cannot be found out."""
    found: list[Pattern] = []
    undetermined: list[str] = []
    for path in sorted(path for folder in ("policyeng", "policies") for path in (root / folder).rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        file = path.relative_to(root).as_posix()
        names = {
            id(statement.value): target.id
            for statement in ast.walk(tree)
            if isinstance(statement, ast.Assign)
            for target in statement.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in {"re", "re2"}:
                undetermined.append(f"{file}: {ast.unparse(node)}")
            if not isinstance(node, ast.Call) or not (called := _called(node)):
                continue
            engine, function = called
            methods = {function} if function in _METHODS else _uses(tree, names.get(id(node), ""))
            if engine == "re2":  # a single expression, with which the product only searches
                methods = {"search"}
            texts = _evaluated(file, node, function)
            found += [
                Pattern(f"{file}:{node.lineno}", text, flags, engine, frozenset(methods or _DIFFERENT))
                for text, flags in texts
            ]
            if not texts and engine != "re2":  # which takes linear time whatever the pattern
                undetermined.append(f"{file}: {ast.unparse(node)}")
    return found, undetermined


def _called(call: ast.Call) -> tuple[str, str] | None:
    """The module and function for patterns that is called; None where something else is."""
    function = call.func
    if isinstance(function, ast.Name) and function.id == "lazy_pattern":
        return "re", "compile"
    if any(isinstance(each, ast.Starred) for each in call.args):  # how `lazy_pattern` compiles
        return None
    if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
        return None
    known = function.value.id in {"re", "re2"} and function.attr in _METHODS | {"compile"}
    return (function.value.id, function.attr) if known else None


def _uses(tree: ast.Module, name: str) -> set[str]:
    """The methods that are called on a private or local variable; none for a public one, which others may use."""
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name
        if (name.startswith("_") or name.islower()) and node.attr in _METHODS
    }


def _evaluated(file: str, call: ast.Call, function: str) -> list[tuple[str | bytes, int]]:
    """The patterns of a call with their flags, from the constants of its module and `_LOCALS`; empty without them."""
    name = file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    position = {"compile": 1, "sub": 4, "subn": 4, "split": 3}.get(function, 2)
    given = [each.value for each in call.keywords if each.arg == "flags"] or call.args[position : position + 1]
    found = []
    for values in ({}, *_LOCALS.get(file, ())):
        known = {**vars(importlib.import_module(name)), **values}

        def value_of(part: ast.expr, known: dict[str, Any] = known) -> Any:
            return eval(compile(ast.Expression(part), name, "eval"), known)  # noqa: S307  # our own source

        try:
            text = value_of(call.args[0])
            flags = 0 if not given or "re2" in ast.unparse(call.func) else int(value_of(given[0]))
        except NameError:
            continue
        found.append((text, flags))
        if not values:
            break
    return found


def hostile_parts(text: str, flags: int) -> list[str]:
    """Texts that are hostile to a pattern where they are repeated: its parts, its loops, pairs of their characters."""
    tree = parser.parse(text, flags)
    parts: dict[str, None] = {}
    _example(tree, "", parts)
    singles = [part for part in parts if len(part) == 1][:6]
    pairs = [a + b for a in singles for b in singles if a != b]
    words = [f"-{part}" for part in parts] if r"\b" in text else []  # which begin again and again
    return list(dict.fromkeys([*parts, *words, *pairs, *_GENERIC]))


def example(text: str) -> str:
    """A text that a pattern matches."""
    return _example(parser.parse(text), "", {})


def _example(tree: Any, before: str, parts: dict[str, None]) -> str:
    """A text that a sequence of the parser's nodes matches; what it is made of is put into `parts`."""
    text = ""
    for operation, argument in tree:
        if operation is opcodes.LITERAL:
            text += chr(argument)
        elif operation in {opcodes.NOT_LITERAL, opcodes.IN, opcodes.ANY}:
            signs = _signs(operation, argument)
            parts.update(dict.fromkeys(signs))
            text += signs[0] if signs else _member(argument)
        elif operation in _REPEATS:
            least, most, body = argument
            inside = _example(body, before + text, parts)
            if most > _FEW and inside:
                parts.update(dict.fromkeys([inside, before + text + inside]))
            text += inside * (least if most <= _FEW or operation is opcodes.MIN_REPEAT else min(max(least, 1), 256))
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
    return [sign for sign in _SIGNS if _in(operation, argument, sign)][:5]


def _member(argument: Any) -> str:
    """A character of a class that has none of those that classes are sampled from."""
    return next((chr(value if kind is opcodes.LITERAL else value[0]) for kind, value in argument), "a")


def _in(operation: Any, argument: Any, sign: str) -> bool:
    if operation is opcodes.ANY:
        return bool(sign != "\n")
    if operation is opcodes.NOT_LITERAL:
        return bool(ord(sign) != argument)
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
    return bool(within) is not negated


class _TooSlowError(Exception):
    pass


def _stop(*_: object) -> None:
    raise _TooSlowError


def _seconds(compiled: Any, method: str, text: str | bytes, limit: float) -> float:
    """Seconds of the processor that a method takes for a text; infinite from the limit on, at which it is stopped."""
    signal.setitimer(signal.ITIMER_PROF, limit)
    start = time.process_time()
    try:
        if method in {"sub", "subn"}:
            getattr(compiled, method)(lambda _: text[:0], text)
        elif method == "finditer":
            sum(1 for _ in compiled.finditer(text))
        else:
            getattr(compiled, method)(text)
        return time.process_time() - start
    except _TooSlowError:
        return float("inf")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def slowest(pattern: Pattern) -> tuple[float, str, str]:
    """The most seconds that a long text takes, with the method and how the text begins and ends."""
    signal.signal(signal.SIGPROF, _stop)
    is_bytes = isinstance(pattern.text, bytes)
    compiled = _shapes() if pattern.engine == "re2" else re.compile(pattern.text, pattern.flags)

    def made(part: str, end: str, length: int) -> str | bytes:
        text = part * (length // len(part)) + end
        return text.encode() if is_bytes else text

    first = []
    for part in hostile_parts(
        pattern.text.decode("latin-1") if isinstance(pattern.text, bytes) else pattern.text, pattern.flags
    ):
        for method in sorted(pattern.methods):
            for end in _ENDS:
                taken = _seconds(compiled, method, made(part, end, SHORT // 4), _SHORT_LIMIT)
                if taken > _SHORT_LIMIT * _SUSPICIOUS:
                    taken = min(_tries(compiled, method, made(part, end, SHORT)))
                if taken == float("inf"):
                    return taken, method, f"{part!r}...{end!r}"
                first.append((taken, method, part, end))
    first.sort(reverse=True)
    whole = []
    for _, method, part, end in first[:2]:
        taken = _seconds(compiled, method, made(part, end, LONG // 4), _LONG_LIMIT)
        if taken > _LONG_LIMIT * _SUSPICIOUS:
            taken = _seconds(compiled, method, made(part, end, LONG), _LONG_LIMIT)
        whole.append((taken, method, f"{part!r}...{end!r}"))
    return max(whole)


def _tries(compiled: Any, method: str, text: str | bytes) -> list[float]:
    """Up to three tries with a short text; a try that is fast enough is the last."""
    taken: list[float] = []
    while len(taken) < 3 and taken[-1:] in ([], [float("inf")]):
        taken.append(_seconds(compiled, method, text, _SHORT_LIMIT))
    return taken


def main() -> None:
    """Time every pattern, and print each with its place."""
    for pattern in product_patterns()[0]:
        seconds, method, text = slowest(pattern)
        print(json.dumps([seconds, pattern.place, method, text, str(pattern.text)[:200]]), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
