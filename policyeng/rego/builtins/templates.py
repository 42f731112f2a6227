"""Templates of `text/template` of Go: fields, variables, conditions, ranges, and the functions that compare and print.

What else Go knows (templates in templates, chained fields of a parenthesis, other functions) is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from policyeng.rego.budget import charge
from policyeng.rego.builtins.formatting import format_text
from policyeng.rego.builtins.registry import BuiltinError
from policyeng.rego.values import Value, to_text

_ACTION = re.compile(r"\{\{(-(?=[ \t\r\n]))?")
_COMMENT = re.compile(r"[ \t\r\n]*/\*(?:[^*]|\*(?!/))*\*/([ \t\r\n]+-)?\}\}")
_TOKEN = re.compile(
    r"""[ \t\r\n]+-\}\}|\}\}|[ \t\r\n]+|"(?:[^"\\\n]|\\["\\nrt])*"|`[^`]*`|:=|[=|,()]|[+-]?[0-9]+"""
    r"""|\$?\w*(?:\.\w+)+|\$\w*|\w+|\."""
)
_SPACES = " \t\r\n"
_MOST_WORDS = 10_000
#: A missing value, as the text of a key that is missing or null.
_NOTHING = object()


@dataclass(frozen=True)
class _Operand:
    """A literal, a function, or a variable or the current value with names of fields; or a pipeline."""

    kind: str
    value: Any = None
    names: tuple[str, ...] = ()


@dataclass
class _TemplateNode:
    """A text, a pipeline, or a control structure with its bodies."""

    kind: str
    text: str = ""
    targets: list[str] = field(default_factory=list)
    is_assignment: bool = False
    commands: list[list[_Operand]] = field(default_factory=list)
    body: list[_TemplateNode] = field(default_factory=list)
    otherwise: list[_TemplateNode] = field(default_factory=list)


class _LeaveError(Exception):
    """A `break` or `continue`."""


class _BreakError(_LeaveError):
    """A `break`."""


def render(template: str, values: Value) -> str:
    """Return a template with its actions replaced.

    Raises:
        BuiltinError: it is not a template, or has what is not supported, or a value cannot be used so.
    """
    try:
        # OPA reads the Rego text of the values as JSON, which sets and keys that are not strings are not.
        data = json.loads(to_text(values), parse_int=str, parse_float=str)
    except ValueError:
        raise BuiltinError("strings.render_template: the values are not JSON") from None
    nodes = _TemplateParser(template).parse()
    state = _RenderState(data)
    state.walk(data, nodes)
    return "".join(state.parts).replace("<no value>", "<undefined>")


def _refuse(what: str) -> BuiltinError:
    return BuiltinError(f"strings.render_template: {what}")


class _TemplateParser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0
        self._tokens: list[str] = []
        self._variables = ["$"]
        self._trims = False

    def parse(self) -> list[_TemplateNode]:
        """Return the nodes of the whole text."""
        nodes, end = self._parse_list(0, False)
        if end:
            raise _refuse(f"unexpected {{{{{end}}}}}")
        return nodes

    def _parse_list(self, depth: int, in_range: bool) -> tuple[list[_TemplateNode], str]:
        """Return the nodes before an `end` or `else`, or the end of the text, and which of them."""
        nodes: list[_TemplateNode] = []
        while True:
            found = _ACTION.search(self._text, self._place)
            text = self._text[self._place : found.start() if found else len(self._text)]
            if self._trims:
                text = text.lstrip(_SPACES)
            if found and found[1]:
                text = text.rstrip(_SPACES)
            nodes.append(_TemplateNode("text", text))
            if found is None:
                if depth:
                    raise _refuse("unexpected EOF")
                return nodes, ""
            self._place = found.end()
            comment = _COMMENT.match(self._text, self._place)
            if comment:
                self._place, self._trims = comment.end(), bool(comment[1])
                continue
            self._read_tokens()
            word = self._tokens[0] if self._tokens else ""
            if word in ("end", "else"):
                return nodes, word
            if word in ("break", "continue"):
                if not in_range or len(self._tokens) > 1:
                    raise _refuse(f"unexpected {word}")
                nodes.append(_TemplateNode(word))
            elif word in ("if", "with", "range"):
                nodes.append(self._parse_control(depth, in_range))
            elif word in ("template", "define", "block"):
                raise _refuse(f"{word} is not supported")
            else:
                nodes.append(self._parse_pipeline("action"))

    def _read_tokens(self) -> None:
        self._tokens = []
        while True:
            found = _TOKEN.match(self._text, self._place)
            if found is None:
                raise _refuse(f"unexpected text: {self._text[self._place : self._place + 20]!r}")
            self._place = found.end()
            if len(self._tokens) > _MOST_WORDS:
                raise _refuse("an action is too long")
            word = found[0]
            if word.endswith("}}"):
                self._trims = len(word) > 2
                while self._tokens and self._tokens[-1] == " ":
                    self._tokens.pop()
                return
            if word.strip(_SPACES):
                self._tokens.append(word)
            elif self._tokens:
                self._tokens.append(" ")

    def _parse_control(self, depth: int, in_range: bool) -> _TemplateNode:
        mark = len(self._variables)
        kind = self._tokens.pop(0)
        node = self._parse_pipeline(kind)
        node.body, end = self._parse_list(depth + 1, in_range or kind == "range")
        if end == "else":
            if len(self._tokens) > 1:
                # `else if` is an `if` in the other part, and shares the `end`.
                del self._tokens[:2]
                if self._tokens[:1] != [kind] or kind == "range":
                    raise _refuse("unexpected text after else")
                node.otherwise = [self._parse_control(depth, in_range)]
            else:
                node.otherwise, end = self._parse_list(depth + 1, in_range)
                if end == "else":
                    raise _refuse("expected end; found {{else}}")
        del self._variables[mark:]
        return node

    def _parse_pipeline(self, kind: str) -> _TemplateNode:
        node = _TemplateNode(kind)
        words = [one for one in self._tokens if one != " "]
        place = next((place for place, one in enumerate(words) if one in (":=", "=")), -1)
        if place >= 0:
            node.targets = [one for one in words[:place] if one != ","]
            node.is_assignment = words[place] == "="
            is_pair = kind == "range" and place == 3 and words[1] == ","
            if not (is_pair or place == 1) or not all(re.fullmatch(r"\$\w+", one) for one in node.targets):
                raise _refuse("unexpected variables")
            del self._tokens[: self._tokens.index(words[place]) + 1]
        node.commands = self._parse_commands(False)
        if self._tokens:
            raise _refuse(f"unexpected {self._tokens[0]!r}")
        if node.is_assignment and not set(node.targets) <= set(self._variables):
            raise _refuse("undefined variable")
        if not node.is_assignment:
            self._variables += node.targets
        return node

    def _parse_commands(self, in_parenthesis: bool) -> list[list[_Operand]]:
        commands: list[list[_Operand]] = [[]]
        is_separate = True
        while self._tokens and not (in_parenthesis and self._tokens[0] == ")"):
            word = self._tokens.pop(0)
            if word == " ":
                is_separate = True
            elif word == "|":
                commands.append([])
                is_separate = True
            else:
                if not is_separate:
                    raise _refuse(f"unexpected {word!r} in operand")
                commands[-1].append(self._parse_operand(word))
                is_separate = False
        if not all(commands):
            raise _refuse("missing value for command")
        if any(one.kind in ("literal", "nil") for command in commands[1:] for one in command[:1]):
            raise _refuse("non executable command in pipeline")
        return commands

    def _parse_operand(self, word: str) -> _Operand:
        if word == "(":
            commands = self._parse_commands(True)
            if not self._tokens:
                raise _refuse("unclosed left paren")
            self._tokens.pop(0)
            return _Operand("pipe", commands)
        if word[0] == '"':
            return _Operand("literal", json.loads(word, strict=False))
        if word[0] == "`":
            return _Operand("literal", word[1:-1].replace("\r", ""))
        if re.fullmatch(r"[+-]?(?:0|[1-9][0-9]{0,17})", word):
            return _Operand("literal", int(word))
        if word in ("true", "false"):
            return _Operand("literal", word == "true")
        if word == "nil":
            return _Operand("nil")
        if word[0] in ".$":
            head, *names = word.split(".")
            if word[0] == "$" and head not in self._variables:
                raise _refuse(f"undefined variable {head!r}")
            return _Operand("variable" if head else "dot", head, tuple(filter(None, names)))
        if word in _FUNCTIONS:
            return _Operand("function", word)
        raise _refuse(f"function {word!r} is not defined, or not supported")


class _RenderState:
    """The variables and the output of one rendering."""

    def __init__(self, data: Value) -> None:
        self.parts: list[str] = []
        self._variables: list[tuple[str, Any]] = [("$", data)]

    def walk(self, dot: Value, nodes: list[_TemplateNode]) -> None:
        """Write nodes."""
        for node in nodes:
            if node.kind == "text":
                self._write(node.text)
            elif node.kind == "break":
                raise _BreakError
            elif node.kind == "continue":
                raise _LeaveError
            elif node.kind == "action":
                value = self._evaluate(dot, node)
                if not node.targets:
                    self._write(_show(value))
            else:
                mark = len(self._variables)
                self._walk_range(dot, node) if node.kind == "range" else self._walk_choice(dot, node)
                del self._variables[mark:]

    def _write(self, text: str) -> None:
        charge(len(text) + 1)
        self.parts.append(text)

    def _walk_choice(self, dot: Value, node: _TemplateNode) -> None:
        value = self._evaluate(dot, node)
        if not _is_true(value):
            self.walk(dot, node.otherwise)
        else:
            self.walk(value if node.kind == "with" else dot, node.body)

    def _walk_range(self, dot: Value, node: _TemplateNode) -> None:
        over = self._evaluate(dot, node, declares=False)
        if over is not _NOTHING and not isinstance(over, list | dict):
            raise _refuse("range can't iterate over this")
        pairs = sorted(over.items()) if isinstance(over, dict) else enumerate(over) if isinstance(over, list) else []
        if over is _NOTHING or not over:
            self.walk(dot, node.otherwise)
        mark = len(self._variables)
        for key, value in pairs:
            charge(1)
            found = [key, value][-len(node.targets) :] if node.targets else []
            for name, one in zip(node.targets, found, strict=True):
                self._set(name, one, node.is_assignment)
            try:
                self.walk(value, node.body)
            except _BreakError:
                break
            except _LeaveError:
                continue
            finally:
                del self._variables[mark:]

    def _set(self, name: str, value: Value, is_assignment: bool) -> None:
        if not is_assignment:
            self._variables.append((name, value))
            return
        for place in range(len(self._variables) - 1, -1, -1):
            if self._variables[place][0] == name:
                self._variables[place] = (name, value)
                return
        raise _refuse(f"undefined variable: {name}")

    def _evaluate(self, dot: Value, node: _TemplateNode, declares: bool = True) -> Value:
        value = self._run(dot, node.commands)
        for name in node.targets if declares else ():
            self._set(name, value, node.is_assignment)
        return value

    def _run(self, dot: Value, commands: list[list[_Operand]]) -> Value:
        value: Any = None
        for place, (first, *rest) in enumerate(commands):
            last = [value] if place else []
            if first.kind == "function":
                value = self._call(dot, first.value, rest, last)
            elif rest or last:
                raise _refuse("can't give argument to non-function")
            elif first.kind == "nil":
                raise _refuse("nil is not a command")
            else:
                value = self._get(dot, first)
            if value is None:
                value = _NOTHING
        return value

    def _call(self, dot: Value, name: str, operands: list[_Operand], last: list[Value]) -> Value:
        if name in ("and", "or"):
            if not operands and not last:
                raise _refuse(f"wrong number of args for {name}")
            value: Any = None
            for operand in operands:
                value = self._get(dot, operand)
                if _is_true(value) == (name == "or"):
                    return value
            return last[0] if last else value
        arguments = [*(self._get(dot, one) for one in operands), *last]
        try:
            return _FUNCTIONS[name](*arguments)
        except TypeError:
            raise _refuse(f"wrong number of args for {name}") from None

    def _get(self, dot: Value, operand: _Operand) -> Value:
        if operand.kind == "literal":
            return operand.value
        if operand.kind == "pipe":
            return self._run(dot, operand.value)
        if operand.kind == "function":
            return self._call(dot, operand.value, [], [])
        if operand.kind == "nil":
            return None
        value = dot
        if operand.kind == "variable":
            found = [one for name, one in self._variables if name == operand.value]
            if not found:
                raise _refuse(f"undefined variable: {operand.value}")
            value = found[-1]
        for name in operand.names:
            if isinstance(value, dict):
                value = value.get(name, _NOTHING)
            elif value is not _NOTHING:
                raise _refuse(f"can't evaluate field {name}")
        return value


def _is_true(value: Value) -> bool:
    return value is not _NOTHING and bool(value)


def _show(value: Value, missing: str = "<no value>") -> str:
    if value is _NOTHING or value is None:
        return missing
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{' '.join(_show(one, '<nil>') for one in value)}]"
    if isinstance(value, dict):
        pairs = (f"{key}:{_show(value[key], '<nil>')}" for key in sorted(value))
        return f"map[{' '.join(pairs)}]"
    return str(value)


def _equal(first: Value, *others: Value) -> bool:
    if not others:
        raise _refuse("missing argument for comparison")
    for other in others:
        _check_comparable(first, other)
        if first == other:
            return True
    return False


def _check_comparable(left: Value, right: Value) -> None:
    if type(left) is not type(right) or type(left) not in (str, bool, int):
        raise _refuse("incompatible or unsupported types for comparison")


def _compare(left: Value, right: Value) -> int:
    _check_comparable(left, right)
    if isinstance(left, bool):
        raise _refuse("invalid type for comparison")
    return bool(left > right) - bool(left < right)


def _count(value: Value) -> int:
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, list | dict):
        return len(value)
    raise _refuse("len of this type")


def _index(value: Value, *keys: Value) -> Value:
    for key in keys:
        if isinstance(value, dict) and type(key) is str:
            value = value.get(key)
        elif isinstance(value, list) and type(key) is int and 0 <= key < len(value):
            value = value[key]
        else:
            raise _refuse("this cannot be indexed so")
    return value


def _print(*values: Value) -> str:
    if not all(type(one) is str for one in values):
        raise _refuse("print of what is not a string is not supported")
    return "".join(values)


def _print_formatted(text: Value, *values: Value) -> str:
    if type(text) is not str or not all(type(one) in (str, int) for one in values):
        raise _refuse("printf of these values is not supported")
    shown = format_text(text, list(values))
    if "%!" in shown or "%T" in text:
        raise _refuse("printf with this format is not supported")
    return shown


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "and": _is_true,
    "or": _is_true,
    "not": lambda value: not _is_true(value),
    "eq": _equal,
    "ne": lambda left, right: not _equal(left, right),
    "lt": lambda left, right: _compare(left, right) < 0,
    "le": lambda left, right: _compare(left, right) <= 0,
    "gt": lambda left, right: _compare(left, right) > 0,
    "ge": lambda left, right: _compare(left, right) >= 0,
    "len": _count,
    "index": _index,
    "print": _print,
    "printf": _print_formatted,
}
