"""The syntax trees of GraphQL as OPA shows them: those of its parser without what is null or empty, and no places."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, TypeVar

from policyeng.rego.builtins.registry import BuiltinError
from policyeng.rego.values import Value

_Tree = dict[str, Value]
_T = TypeVar("_T")

_TOKEN = re.compile(
    r"""(?P<space>[\t ,\n\r\ufeff]+)
    |(?P<comment>\#[\t\x20-\U0010ffff]*)
    |(?P<name>[_A-Za-z][_0-9A-Za-z]*)
    |(?P<punctuator>[!$&():=@\[\]{}|]|\.\.\.)
    |(?P<number>-?(?:0|[1-9][0-9]*)(?P<fraction>\.[0-9]+)?(?P<exponent>[eE][+-]?[0-9]+)?)
    |(?P<block>\"\"\")
    |(?P<string>"(?:[^"\\\x00-\x08\x0a-\x1f]|\\u[0-9A-Fa-f]{4}|\\["\\/bfnrt])*")
    """,
    re.VERBOSE,
)
#: What no number may be followed by: it would be a part of it.
_MORE_NUMBER = re.compile(r"[.eE]")
_BLOCK_PART = re.compile(r'\\"""|"+|[^"\\]+|\\')
_ESCAPE = re.compile(r'\\u([0-9A-Fa-f]{4})|\\(["\\/bfnrt])')
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_LOCATIONS = frozenset(
    (
        *("QUERY", "MUTATION", "SUBSCRIPTION", "FIELD", "FRAGMENT_DEFINITION", "FRAGMENT_SPREAD", "INLINE_FRAGMENT"),
        *("VARIABLE_DEFINITION", "SCHEMA", "SCALAR", "OBJECT", "FIELD_DEFINITION", "ARGUMENT_DEFINITION"),
        *("INTERFACE", "UNION", "ENUM", "ENUM_VALUE", "INPUT_OBJECT", "INPUT_FIELD_DEFINITION"),
    )
)
_VARIABLE, _STRING, _BLOCK, _BOOLEAN, _NULL, _ENUM, _LIST, _OBJECT = 0, 3, 4, 5, 6, 7, 8, 9
_VALUE_KINDS = {"int": 1, "float": 2, "string": _STRING, "block": _BLOCK}
_OPERATIONS = frozenset(("query", "mutation", "subscription"))
_KINDS = {
    "scalar": "SCALAR",
    "type": "OBJECT",
    "interface": "INTERFACE",
    "union": "UNION",
    "enum": "ENUM",
    "input": "INPUT_OBJECT",
}


class GraphqlSyntaxError(BuiltinError):
    """Text that is no GraphQL."""


class _GraphqlToken(NamedTuple):
    """A token: its kind (a punctuator is its own), its text, and the comments before it."""

    kind: str
    text: str
    comments: Value


def parse_query(text: str) -> _Tree:
    """Return the syntax tree of a query.

    Raises:
        GraphqlSyntaxError: it is not valid.
    """
    return _run(text, _GraphqlParser.parse_query)


def parse_schema(text: str) -> _Tree:
    """Return the syntax tree of a schema.

    Raises:
        GraphqlSyntaxError: it is not valid.
    """
    return _run(text, _GraphqlParser.parse_schema)


def _run(text: str, parse: Callable[[_GraphqlParser], _Tree]) -> _Tree:
    try:
        return parse(_GraphqlParser(text))
    except RecursionError:
        raise BuiltinError("the GraphQL is nested too deeply") from None


def _read_tokens(text: str) -> Iterator[_GraphqlToken]:
    comments: list[Value] = []
    place = 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if not found:
            raise GraphqlSyntaxError(f"Cannot parse the unexpected character {text[place]!r} in GraphQL string")
        place, kind, content = found.end(), found.lastgroup, found[0]
        if kind in {"fraction", "exponent"}:
            kind = "number"
        if kind == "space":
            continue
        if kind == "comment":
            comments.append({"Value": content})
            continue
        group = {"List": comments} if comments else None
        comments = []
        if kind == "block":
            content, place = _read_block(text, place)
            yield _GraphqlToken("block", content, group)
        elif kind == "string":
            yield _GraphqlToken("string", _ESCAPE.sub(_unescape, content[1:-1]), group)
        elif kind == "number":
            if (content in {"0", "-0"} and text[place : place + 1].isdecimal()) or _MORE_NUMBER.match(text, place):
                raise GraphqlSyntaxError("Invalid number in GraphQL string")
            yield _GraphqlToken("float" if found["fraction"] or found["exponent"] else "int", content, group)
        else:
            yield _GraphqlToken("name" if kind == "name" else content, content if kind == "name" else "", group)
    yield _GraphqlToken("end", "", {"List": comments} if comments else None)


def _unescape(found: re.Match[str]) -> str:
    if found[1]:
        char = chr(int(found[1], 16))
        return "\ufffd" if "\ud800" <= char <= "\udfff" else char
    return _ESCAPED.get(found[2], found[2])


def _read_block(text: str, place: int) -> tuple[str, int]:
    parts = []
    while True:
        found = _BLOCK_PART.match(text, place)
        if not found:
            raise GraphqlSyntaxError("Unterminated string. in GraphQL string")
        place, part = found.end(), found[0]
        if part.startswith('"') and len(part) >= 3:
            parts.append(part[3:])
            break
        parts.append('"""' if part == '\\"""' else part)
    raw = "".join(parts).replace("\r\n", "\n").replace("\r", "\n")
    if _CONTROL.search(raw):
        raise GraphqlSyntaxError("Invalid character within String in GraphQL string")
    return _dedent(raw), place


def _dedent(raw: str) -> str:
    lines = raw.split("\n")
    # Go counts bytes, but what is taken away is only spaces and tabs.
    indents = [len(line) - len(line.lstrip(" \t")) for line in lines if line.strip(" \t")]
    common = min(indents, default=0)
    lines[1:] = [line[common:] for line in lines[1:]]
    while lines and not lines[0].strip(" \t"):
        del lines[0]
    while lines and not lines[-1].strip(" \t"):
        del lines[-1]
    return "\n".join(lines)


def _prune(tree: _Tree) -> _Tree:
    """Leave out what is null or empty."""
    return {name: value for name, value in tree.items() if value is not None and value != [] and value != {}}


class _GraphqlParser:
    """A parser by recursive descent, which reads as that of OPA does."""

    def __init__(self, text: str) -> None:
        self._tokens = _read_tokens(text)
        self._next = next(self._tokens)

    def _take(self) -> _GraphqlToken:
        taken = self._next
        if taken.kind != "end":
            self._next = next(self._tokens)
        return taken

    def _skip(self, kind: str) -> bool:
        if self._next.kind != kind:
            return False
        self._take()
        return True

    def _refuse(self) -> GraphqlSyntaxError:
        return GraphqlSyntaxError(f"Unexpected {self._next.kind} {self._next.text!r} in GraphQL string")

    def _expect(self, kind: str) -> _GraphqlToken:
        if self._next.kind != kind:
            raise self._refuse()
        return self._take()

    def _expect_name(self) -> str:
        return self._expect("name").text

    def _expect_keyword(self, *words: str) -> _GraphqlToken:
        if self._next.kind != "name" or self._next.text not in words:
            raise self._refuse()
        return self._take()

    def _is_keyword(self, word: str) -> bool:
        return self._next.kind == "name" and self._next.text == word

    def _some(self, start: str, end: str, read: Callable[[], _T]) -> tuple[list[_T], Value]:
        """Read one or more between brackets, if there are any, and the comments before the last bracket."""
        if not self._skip(start):
            return [], None
        found = [read()]
        while self._next.kind != end:
            found.append(read())
        return found, self._take().comments

    def parse_query(self) -> _Tree:
        """Read a document of operations and fragments."""
        operations, fragments = [], []
        while self._next.kind != "end":
            if self._next.kind == "{" or self._next.text in _OPERATIONS:
                operations.append(self._parse_operation())
            elif self._is_keyword("fragment"):
                fragments.append(self._parse_fragment_definition())
            else:
                raise self._refuse()
        return _prune({"Operations": operations, "Fragments": fragments})

    def _parse_operation(self) -> _Tree:
        if self._next.kind == "{":
            selections = self._parse_selections()
            return _prune({"Operation": "query", "Name": "", "SelectionSet": selections})
        token = self._expect_keyword(*_OPERATIONS)
        return _prune(
            {
                "Comment": token.comments,
                "Operation": token.text,
                "Name": self._take().text if self._next.kind == "name" else "",
                "VariableDefinitions": self._parse_variables(),
                "Directives": self._parse_directives(constant=False),
                "SelectionSet": self._parse_selections(),
            }
        )

    def _parse_variables(self) -> list[_Tree]:
        return self._some("(", ")", self._parse_variable)[0]

    def _parse_variable(self) -> _Tree:
        comments = self._next.comments
        name = self._parse_variable_name()
        self._expect(":")
        return _prune(
            {
                "Comment": comments,
                "Variable": name,
                "Type": self._parse_type(),
                "DefaultValue": self._parse_value(constant=True) if self._skip("=") else None,
                "Directives": self._parse_directives(constant=False),
                "Used": False,
            }
        )

    def _parse_variable_name(self) -> str:
        self._expect("$")
        return self._expect_name()

    def _parse_selections(self) -> list[_Tree]:
        if self._next.kind != "{":
            raise self._refuse()
        return self._some("{", "}", self._parse_selection)[0]

    def _parse_selection(self) -> _Tree:
        if self._next.kind == "...":
            return self._parse_fragment()
        comments = self._next.comments
        alias = self._expect_name()
        return _prune(
            {
                "Comment": comments,
                "Alias": alias,
                "Name": self._expect_name() if self._skip(":") else alias,
                "Arguments": self._parse_arguments(constant=False),
                "Directives": self._parse_directives(constant=False),
                "SelectionSet": self._parse_selections() if self._next.kind == "{" else None,
            }
        )

    def _parse_arguments(self, *, constant: bool) -> list[_Tree]:
        return self._some("(", ")", partial(self._parse_argument, constant=constant))[0]

    def _parse_argument(self, *, constant: bool) -> _Tree:
        comments = self._next.comments
        name = self._expect_name()
        self._expect(":")
        return _prune({"Comment": comments, "Name": name, "Value": self._parse_value(constant=constant)})

    def _parse_fragment(self) -> _Tree:
        comments = self._expect("...").comments
        if self._next.kind == "name" and self._next.text != "on":
            name = self._expect_name()
            return _prune({"Comment": comments, "Name": name, "Directives": self._parse_directives(constant=False)})
        return _prune(
            {
                "Comment": comments,
                "TypeCondition": self._parse_condition() if self._next.text == "on" else "",
                "Directives": self._parse_directives(constant=False),
                "SelectionSet": self._parse_selections(),
            }
        )

    def _parse_condition(self) -> str:
        self._take()
        return self._expect_name()

    def _parse_fragment_definition(self) -> _Tree:
        comments = self._expect_keyword("fragment").comments
        if self._next.text == "on":
            raise self._refuse()
        name = self._expect_name()
        variables = self._parse_variables()
        self._expect_keyword("on")
        return _prune(
            {
                "Comment": comments,
                "Name": name,
                "VariableDefinition": variables,
                "TypeCondition": self._expect_name(),
                "Directives": self._parse_directives(constant=False),
                "SelectionSet": self._parse_selections(),
            }
        )

    def _parse_value(self, *, constant: bool) -> _Tree:
        token = self._next
        members: list[_Tree] = []
        comments, raw = None, token.text
        if token.kind in {"[", "{"}:
            comments, kind = token.comments, _LIST if token.kind == "[" else _OBJECT
            members = self._parse_members(constant=constant)
        elif token.kind == "$" and not constant:
            kind, raw = _VARIABLE, self._parse_variable_name()
        elif token.kind in _VALUE_KINDS:
            kind = _VALUE_KINDS[self._take().kind]
        elif token.kind == "name":
            kind = {"true": _BOOLEAN, "false": _BOOLEAN, "null": _NULL}.get(self._take().text, _ENUM)
        else:
            raise self._refuse()
        tree = {"Comment": comments, "Raw": raw, "Children": members, "Kind": kind, "ExpectedTypeHasDefault": False}
        return _prune(tree)

    def _parse_members(self, *, constant: bool) -> list[_Tree]:
        found, end = [], {"[": "]", "{": "}"}[self._take().kind]
        while not self._skip(end):
            comments = name = None
            if end == "}":
                comments, name = self._next.comments, self._expect_name()
                self._expect(":")
            value = self._parse_value(constant=constant)
            found.append(_prune({"Comment": comments, "Name": name or "", "Value": value}))
        return found

    def _parse_directives(self, *, constant: bool) -> list[_Tree]:
        found = []
        while self._skip("@"):
            name = self._expect_name()
            arguments = self._parse_arguments(constant=constant)
            found.append(_prune({"Name": name, "Arguments": arguments, "Location": ""}))
        return found

    def _parse_type(self) -> _Tree:
        element, name = None, ""
        if self._skip("["):
            element = self._parse_type()
            self._expect("]")
        else:
            name = self._expect_name()
        return _prune({"NamedType": name, "Elem": element, "NonNull": self._skip("!")})

    def parse_schema(self) -> _Tree:
        """Read a document of definitions of types."""
        tree: dict[str, list[_Tree]] = {
            name: [] for name in ("Schema", "SchemaExtension", "Directives", "Definitions", "Extensions")
        }
        while self._next.kind != "end":
            comments, description = self._parse_description()
            word = self._next.text if self._next.kind == "name" else ""
            if word == "extend" and not description:
                name, extension = self._parse_extension()
                tree[name].append(extension)
            elif word == "schema":
                after = self._take().comments
                tree["Schema"].append(self._parse_schema_definition(comments, description, after))
            elif word == "directive":
                tree["Directives"].append(self._parse_directive_definition(comments, description))
            elif word in _KINDS:
                after = self._take().comments
                tree["Definitions"].append(self._parse_definition(word, comments, description, after))
            else:
                raise self._refuse()
        return _prune({**tree, "Comment": self._next.comments})

    def _parse_description(self) -> tuple[Value, str]:
        if self._next.kind not in {"string", "block"}:
            return None, ""
        token = self._take()
        return token.comments, token.text

    def _parse_schema_definition(self, before: Value, description: str, after: Value) -> _Tree:
        directives = self._parse_directives(constant=True)
        operations, end = self._some("{", "}", self._parse_operation_type)
        return _prune(
            {
                "BeforeDescriptionComment": before,
                "Description": description,
                "AfterDescriptionComment": after,
                "Directives": directives,
                "OperationTypes": operations,
                "EndOfDefinitionComment": end,
            }
        )

    def _parse_operation_type(self) -> _Tree:
        token = self._expect_keyword(*_OPERATIONS)
        self._expect(":")
        return _prune({"Comment": token.comments, "Operation": token.text, "Type": self._expect_name()})

    def _parse_definition(
        self, word: str, before: Value, description: str, after: Value, *, extension: bool = False
    ) -> _Tree:
        tree: _Tree = {
            "BeforeDescriptionComment": before,
            "Description": description,
            "AfterDescriptionComment": after,
            "Kind": _KINDS[word],
            "BuiltIn": False,
            "Name": self._expect_name(),
        }
        if word == "type" or (word == "interface" and not extension):
            tree["Interfaces"] = self._parse_interfaces()
        tree["Directives"] = self._parse_directives(constant=word != "input" or not extension)
        if word in {"type", "interface"}:
            read = partial(self._parse_field, arguments=True)
            tree["Fields"], tree["EndOfDefinitionComment"] = self._some("{", "}", read)
        elif word == "input":
            read = partial(self._parse_field, value=True)
            tree["Fields"], tree["EndOfDefinitionComment"] = self._some("{", "}", read)
        elif word == "enum":
            tree["EnumValues"], tree["EndOfDefinitionComment"] = self._some("{", "}", self._parse_enum_value)
        elif word == "union":
            tree["Types"] = self._parse_union()
        if extension and not any(
            tree.get(name) for name in ("Interfaces", "Directives", "Fields", "EnumValues", "Types")
        ):
            raise self._refuse()
        return _prune(tree)

    def _parse_interfaces(self) -> list[str]:
        if self._next.text != "implements":
            return []
        self._take()
        self._skip("&")
        found = [self._expect_name()]
        while self._skip("&"):
            found.append(self._expect_name())
        return found

    def _parse_union(self) -> list[str]:
        if not self._skip("="):
            return []
        self._skip("|")
        found = [self._expect_name()]
        while self._skip("|"):
            found.append(self._expect_name())
        return found

    def _parse_described(self) -> _Tree:
        before, description = self._parse_description()
        return {
            "BeforeDescriptionComment": before if description else None,
            "Description": description,
            "AfterDescriptionComment": self._next.comments,
            "Name": self._expect_name(),
        }

    def _parse_field(self, *, arguments: bool = False, value: bool = False) -> _Tree:
        tree = self._parse_described()
        if arguments:
            tree["Arguments"] = self._some("(", ")", partial(self._parse_field, value=True))[0]
        self._expect(":")
        tree["Type"] = self._parse_type()
        if value and self._skip("="):
            tree["DefaultValue"] = self._parse_value(constant=True)
        tree["Directives"] = self._parse_directives(constant=True)
        return _prune(tree)

    def _parse_enum_value(self) -> _Tree:
        return _prune({**self._parse_described(), "Directives": self._parse_directives(constant=True)})

    def _parse_extension(self) -> tuple[str, _Tree]:
        after = self._take().comments
        word = self._expect_keyword("schema", *_KINDS).text
        if word != "schema":
            return "Extensions", self._parse_definition(word, None, "", after, extension=True)
        tree = self._parse_schema_definition(None, "", after)
        if not ("Directives" in tree or "OperationTypes" in tree):
            raise self._refuse()
        return "SchemaExtension", tree

    def _parse_directive_definition(self, before: Value, description: str) -> _Tree:
        after = self._take().comments
        self._expect("@")
        name = self._expect_name()
        arguments = self._some("(", ")", partial(self._parse_field, value=True))[0]
        repeatable = self._is_keyword("repeatable")
        if repeatable:
            self._take()
        self._expect_keyword("on")
        self._skip("|")
        locations = [self._expect_keyword(*_LOCATIONS).text]
        while self._skip("|"):
            locations.append(self._expect_keyword(*_LOCATIONS).text)
        return _prune(
            {
                "BeforeDescriptionComment": before,
                "Description": description,
                "AfterDescriptionComment": after,
                "Name": name,
                "Arguments": arguments,
                "IsRepeatable": repeatable,
                "Locations": locations,
            }
        )
