"""Random small programs of Rego, and what OPA gives for them.

Each program has a package and data of its own, so that hundreds can be loaded at once.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from policyeng import rego
from policyeng.rego.numbers import parse_number
from policyeng.rego.values import equal, to_json
from tests.opa_servers import running

_CHUNK = 200
_STRINGS = ("a", "b", "ab", "abc", "", "é", "a.b", "1", "B c")
_KEYS = ("a", "b", "k", "name")


@dataclass(frozen=True)
class Program:
    """A program.

    Attributes:
        name: its package, and the name of its data below `data.base`.
        source: its module.
        library: a module of another package, which the first one reads.
        old: whether they are of Rego v0.
    """

    name: str
    source: str
    library: str
    old: bool
    input: Any
    data: Any


class Result(NamedTuple):
    """What OPA gives for a program.

    Attributes:
        kind: "value", "undefined", "compile" or "error".
        value: of the package, or the codes of the errors in their order.
    """

    kind: str
    value: Any = None


def draw_programs(seed: int, count: int) -> Iterator[Program]:
    """Draw programs, always the same for a seed."""
    for number in range(count):
        random = Random(seed * 1_000_003 + number)  # noqa: S311  # nothing here is secret
        yield _Writer(random, f"p{seed}_{number}").write()


def _draw_scalar(random: Random) -> Any:
    return random.choice((None, True, False, 0, 1, 2, 3, -1, 10, 1.5, 0.1, 12345678901234567890, *_STRINGS))


def _draw_document(random: Random) -> dict[str, Any]:
    """A document with a member of each type, of which some are missing and some are of another type."""
    document: dict[str, Any] = {
        "n": random.choice((0, 1, 2, 5, -3, 1.5)),
        "s": random.choice(_STRINGS),
        "f": random.random() < 0.5,
        "a": [random.choice((0, 1, 2, 3, 1.5)) for _ in range(random.randrange(5))],
        "t": [random.choice(_STRINGS) for _ in range(random.randrange(4))],
        "o": {key: random.randrange(4) for key in random.sample(_KEYS, random.randrange(4))},
        "u": [
            {"name": random.choice(_STRINGS), "age": random.randrange(5), "tags": random.sample(_STRINGS, 2)}
            for _ in range(random.randrange(4))
        ],
        "x": _draw_scalar(random),
    }
    for name in list(document):
        if random.random() < 0.02:
            document[name] = _draw_scalar(random)
        elif random.random() < 0.03:
            del document[name]
    return document


class _Writer:
    """What writes one program. A rule refers only to rules before it, so that none is recursive."""

    def __init__(self, random: Random, name: str) -> None:
        self._random = random
        self._name = name
        self._old = random.random() < 0.2
        self._count = 0
        #: Expressions by kind that mean something everywhere: of documents, and of rules that are written.
        self._known: dict[str, list[str]] = {
            kind: [f"{base}.{member}" for base in ("input", f"data.base.{name}") for member in members]
            for kind, members in {"n": "n", "s": "s", "b": "f", "a": "at", "o": "o", "any": "xnu", "e": ""}.items()
        }
        self._known["u"] = ["input.u", f"data.base.{name}.u"]
        #: Functions by the kind of their result: their names and the kinds of their arguments.
        self._functions: dict[str, list[tuple[str, str]]] = {}
        #: Rules of any kind that are written, for modifiers.
        self._rules: list[str] = []

    def write(self) -> Program:
        """Write the program."""
        library = self._write_library()
        rules = [self._write_rule() for _ in range(self._random.choice((1, 2, 3, 4, 5, 6)))]
        header = f"package {self._name}\n\n"
        if self._old:
            header += "import future.keywords.every\nimport future.keywords.in\n"
        if self._random.random() < 0.2:
            header += f"import data.base.{self._name} as base\n"
            self._known["u"].append("base.u")
            rules.append(self._write_rule())
        source = header + "\n" + "\n\n".join(rules) + "\n"
        return Program(
            self._name, source, library, self._old, _draw_document(self._random), _draw_document(self._random)
        )

    def _write_library(self) -> str:
        """Write a package with the same names for rules of many kinds."""
        if_, contains = ("", False) if self._old else (" if", True)
        member = "contains x" if contains else "[x]"
        space = " " if contains else ""
        library = f"data.lib_{self._name}"
        self._known["n"].append(f"{library}.n")
        self._known["s"].append(f"{library}.inner.s")
        self._known["o"].append(f"{library}.o")
        self._known["e"].append(f"{library}.e")
        self._known["any"].append(f"{library}.o.a")
        self._functions["n"] = [(f"{library}.double", "n")]
        self._functions["b"] = [(f"{library}.inner.known", "s")]
        self._library = library
        return f"""package lib_{self._name}

n := {self._constant("n")}{if_} {{ input.f }}

o[k] := v{if_} {{ v := input.o[k] }}

e{space}{member}{if_} {{ x := input.a[_] }}

double(x) := x * 2

inner.s := input.s

inner.known(x){if_} {{ x == {self._constant("s")} }}

{self._write_kin(if_)}
"""

    def _write_kin(self, if_: str) -> str:
        """Write documents next to each other that have rules of the same names, of which some are in error."""
        rules = []
        for key in self._random.sample(_KEYS, self._random.randrange(1, 4)):
            number = self._random.choice(("1", "input.n", "count(input.a)", 'to_number("x")', "to_number(input.s)"))
            value = self._random.choice(("v", "to_number(v)", "v + 1", "to_number(input.s)"))
            rules.append(f"kin.{key}.n := {number}")
            rules.append(f"kin.{key}.o[x] := {value}{if_} {{ v := input.o[x] }}")
            if self._chance(0.3):
                rules.append(f"kin.{key}.o[x] := 1{if_} {{ x := input.t[_] }}")
            if not self._old:
                member = self._random.choice(("x", "to_number(x)", "[x, 1]"))
                rules.append(f"kin.{key}.e contains {member} if {{ x := input.t[_] }}")
                rules.append(f'kin.{key}.m[x][y] := v if {{ some v in input.a; x := input.t[_]; y := "a" }}')
        forms = [f"many[x] := {self._random.choice(('v', 'to_number(input.s)', 'abs(input.s)'))}"]
        if not self._old:
            forms += ["many[x][v] := 1", "many[x] contains v", "many[x].n := to_number(v)"]
        rules.append(f"{self._random.choice(forms)}{if_} {{ v := input.o[x] }}")
        return "\n\n".join(rules)

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _fresh(self, stem: str) -> str:
        self._count += 1
        return f"{stem}{self._count}"

    # Rules

    def _write_rule(self) -> str:
        writers: list[Callable[[str], str]] = [
            *[self._write_complete] * 3,
            *[self._write_set] * 2,
            *[self._write_object] * 2,
            *[self._write_function] * 2,
            *[self._write_reference] * 2,
            *[self._write_check] * 2,
            *[self._write_selection] * 3,
        ]
        name = self._fresh("r")
        text = self._random.choice(writers)(name)
        if all(name != function for found in self._functions.values() for function, _ in found):
            self._rules.append(name)
        return text

    def _head(self, head: str, body: list[str]) -> str:
        """Write a rule of a head and a body."""
        if not body:
            return head
        lines = "\n\t".join(body)
        return f"{head}{'' if self._old else ' if'} {{\n\t{lines}\n}}"

    def _assign(self) -> str:
        return self._random.choice(("=", ":=")) if self._old else ":="

    def _write_complete(self, name: str) -> str:
        kind, text = self._random.choice("nnssboae"), ""
        if self._chance(0.3):
            text += f"default {name} {self._assign()} {self._constant(kind)}\n\n"
        body, scope = self._body()
        text += self._head(f"{name} {self._assign()} {self._expression(kind, scope)}", body)
        for _ in range(self._random.choice((0, 0, 1, 2)) if body else 0):
            body, scope = self._body()
            text += " " + self._head(f"else {self._assign()} {self._expression(kind, scope)}", body or ["true"])
        if self._chance(0.1):
            body, scope = self._body()
            text += "\n\n" + self._head(f"{name} {self._assign()} {self._expression(kind, scope)}", body or ["true"])
        self._known[kind].append(name)
        return text

    def _write_set(self, name: str) -> str:
        clauses = []
        for _ in range(self._random.choice((1, 1, 2))):
            body, scope = self._body()
            member = self._expression(self._random.choice("nnssaeo"), scope)
            head = f"{name}[{member}]" if self._old else f"{name} contains {member}"
            clauses.append(self._head(head, body or ["true"]))
        self._known["e"].append(name)
        return "\n\n".join(clauses)

    def _write_object(self, name: str) -> str:
        clauses = []
        for _ in range(self._random.choice((1, 1, 2))):
            body, scope = self._body()
            key, value = self._expression(self._random.choice("sssna"), scope), self._expression("n", scope)
            clauses.append(self._head(f"{name}[{key}] {self._assign()} {value}", body or ["true"]))
        self._known["o"].append(name)
        return "\n\n".join(clauses)

    def _write_reference(self, name: str) -> str:
        clauses = []
        for _ in range(self._random.choice((1, 1, 1, 2, 3))):
            body, scope = self._body()
            key, other = self._expression("s", scope), f"count({self._expression('a', scope)})"
            value, assign = self._expression("n", scope), self._assign()
            forms = [f"{name}.q[{key}] {assign} {value}", f"{name}[{key}].q {assign} {value}"]
            if not self._old:
                forms += [f"{name}[{key}].q contains {value}", f"{name}.q contains {value}", f"{name}.a.b := {value}"]
                forms += [f"{name}[{key}][{other}] := {value}", f"{name}.q[{key}][{other}].w := {value}"]
                forms += [f"{name}[{key}][{other}] contains {value}", f"{name}[{key}].q[{other}] := {value}"]
            clauses.append(self._head(self._random.choice(forms), body or ["true"]))
        self._known["any"].append(name)
        if self._chance(0.3):
            clauses.append(self._head(f"{name}.z {self._assign()} {self._constant('s')}", ["true"]))
        return "\n\n".join(clauses)

    def _write_check(self, name: str) -> str:
        body, scope = self._body()
        if self._chance(0.02):
            for number in range(self._random.choice((15, 25))):
                items = "[1, 2]" if number % 5 == 0 else "[1]"
                body.append(f"{self._declare(scope, 'n')} = {items}[{self._fresh('i')}]")
        elif self._chance(0.01):
            for _ in range(300):
                before = self._random.choice(scope.get("n", ["1"]))
                body.append(f"{self._declare(scope, 'n')} := {before} + 0")
        self._known["b"].append(name)
        return self._head(name, body or ["true"])

    def _write_selection(self, name: str) -> str:
        """Write a rule of what is at keys of documents of which others are in error."""
        scope: dict[str, list[str]] = {}
        body = [self._select(scope, self._random.randrange(12, 16))]
        if self._chance(0.5):
            key = self._declare({}, "s")
            # OPA's index of rules looks up a variable that is a constant.
            value = self._random.choice(("input.t[_]", 'lower("A")'))
            body.insert(0, f"{key} := {value}")
            body.append(self._select({"s": [key]}, self._random.randrange(12, 16)))
        self._known["e"].append(name)
        value = scope["any"][-1]
        return self._head(f"{name}[{value}]" if self._old else f"{name} contains {value}", body)

    def _write_function(self, name: str) -> str:
        kinds = "".join(self._random.choice("nsnsao") for _ in range(self._random.choice((1, 1, 2))))
        kind, clauses = self._random.choice("nsb"), []
        for _ in range(self._random.choice((1, 1, 2, 3))):
            scope: dict[str, list[str]] = {}
            arguments = [self._parameter(each, scope) for each in kinds]
            body, scope = self._body(scope)
            value = self._expression(kind, scope)
            clause = self._head(f"{name}({', '.join(arguments)}) {self._assign()} {value}", body or ["true"])
            if self._chance(0.2) and all(each.isidentifier() for each in arguments):
                clause += " " + self._head(f"else {self._assign()} {self._constant(kind)}", ["true"])
            clauses.append(clause)
        self._functions.setdefault(kind, []).append((name, kinds))
        return "\n\n".join(clauses)

    def _parameter(self, kind: str, scope: dict[str, list[str]]) -> str:
        if self._chance(0.2):
            return self._constant(kind)
        name = self._fresh("x")
        if kind == "a" and self._chance(0.3):
            scope.setdefault("any", []).append(name)
            return self._random.choice((f"[{name}, _]", f"[{name}]", f"[{name}, [_, 1]]", f"[{name}, {name}]"))
        if kind == "o":
            scope.setdefault("any", []).append(name)
            return self._random.choice((f'{{"a": {name}}}', f'{{"a": {name}, "k": 1}}', name))
        scope.setdefault(kind, []).append(name)
        return name

    # Bodies

    def _body(self, scope: dict[str, list[str]] | None = None) -> tuple[list[str], dict[str, list[str]]]:
        """Write literals, and return them with the variables by kind that they bind."""
        scope = {kind: list(names) for kind, names in (scope or {}).items()}
        literals = []
        for _ in range(self._random.choice((0, 1, 1, 2, 2, 3))):
            writer = self._random.choice((self._bind, self._bind, self._condition, self._condition, self._iterate))
            literals.append(writer(scope))
        return literals, scope

    def _declare(self, scope: dict[str, list[str]], kind: str) -> str:
        name = self._fresh("v")
        if self._chance(0.003):
            name = self._random.choice(("count", "upper", "base", "r1", "input", *self._rules[:1]))
        scope.setdefault(kind, []).append(name)
        return name

    def _bind(self, scope: dict[str, list[str]]) -> str:
        kind = self._random.choice("nnssaeob")
        value = self._expression(kind, scope)
        pattern = self._chance(0.3)
        if pattern and kind in "ao":
            # OPA finds the variables of a pattern unsafe if the other side is a constant of another form.
            value = self._random.choice(self._known[kind])
        if pattern and kind == "a":
            names = [self._declare(scope, "any") for _ in range(self._random.choice((1, 2)))]
            return f"[{', '.join(names)}] = {value}"
        if pattern and kind == "s":
            other = self._expression("n", scope)
            first, second = self._declare(scope, "s"), self._declare(scope, "n")
            return f"[{first}, [{second}, _]] {self._random.choice(('=', ':='))} [{value}, [{other}, 1]]"
        if pattern and kind == "o":
            member = f'"{self._random.choice(_KEYS)}": {self._declare(scope, "n")}'
            return f"{{{member}}} = {value}"
        modifier = self._with(scope) if self._chance(0.1) else ""
        return f"{self._declare(scope, kind)} {self._random.choice((':=', ':=', '='))} {value}{modifier}"

    def _iterate(self, scope: dict[str, list[str]]) -> str:
        form = self._random.randrange(16)
        if form == 0:
            user = self._random.choice(self._known["u"])
            name = self._declare(scope, "user")
            scope.setdefault("s", []).append(f"{name}.name")
            scope.setdefault("n", []).append(f"{name}.age")
            scope.setdefault("a", []).append(f"{name}.tags")
            return self._random.choice((f"some {name} in {user}", f"{name} := {user}[_]"))
        if form > 11:
            return self._select(scope, form)
        if form > 5:
            return self._find(scope, form)
        kind = self._random.choice("ae")
        collection = self._expression(kind, scope, plain=form >= 3)
        if form == 1:
            key = self._declare(scope, "any")
            return f"some {key}, {self._declare(scope, 'any')} in {collection}"
        if form == 2:
            # OPA looks up the members of an object that it has not yet computed.
            collection = self._expression("o", scope, plain=True)
            key = self._declare(scope, "s")
            return f"some {key}, {self._declare(scope, 'n')} in {collection}"
        if form == 3:
            return f"{self._declare(scope, 'any')} := {collection}[_]"
        if form == 4:
            index = self._declare(scope, "any")
            around = self._random.choice(("{}", "{}", "[{}, 1]", '{{"k": [{}]}}', "{{{}}}"))
            assign = self._random.choice(("=", ":="))
            return f"{self._declare(scope, 'any')} {assign} {around.format(f'{collection}[{index}]')}"
        return f"some {self._declare(scope, 'any')} in {collection}"

    def _find(self, scope: dict[str, list[str]], form: int) -> str:
        """Write a search with variables or patterns in unusual places."""
        base = self._random.choice((self._library, "input", f"data.base.{self._name}"))
        if form == 6:
            key = self._declare(scope, "any")
            return f"{self._declare(scope, 'any')} = {base}[{key}]"
        if form == 7:
            key, index = self._declare(scope, "s"), self._declare(scope, "any")
            return f"{self._declare(scope, 'any')} := {base}[{key}][{index}]"
        if form == 8:
            value = self._random.choice(self._known["any"])
            path, found = self._declare(scope, "any"), self._declare(scope, "any")
            return f"walk({value}, [{self._random.choice((path, '_', '[_]'))}, {found}])" if path else found
        if form == 9:
            user = self._random.choice(self._known["u"])
            name, age = self._declare(scope, "s"), self._declare(scope, "n")
            return self._random.choice(
                (
                    f'some {{"name": {name}, "age": {age}, "tags": _}} in {user}',
                    f"{user}[_].name = {name}; {user}[_].age = {age}",
                    f'some i, {{"name": {name}, "age": {age}, "tags": [_, i]}} in {user}',
                    f"{name} := {user}[{age}].name",
                )
            )
        if form == 10:
            found = self._expression(self._random.choice("ns"), scope)
            key = self._declare(scope, "any")
            return f"{found} = {self._random.choice(self._known['a'])}[{key}]"
        arrays = self._random.choice(self._known["u"])
        index, other = self._declare(scope, "n"), self._declare(scope, "n")
        return f"{self._declare(scope, 's')} := {arrays}[{index}].tags[{other}]"

    def _select(self, scope: dict[str, list[str]], form: int) -> str:
        """Write a reference with parts that are bound, of which others may be in error."""
        bound = scope.get("s") or [self._atom("s", scope)]
        key = self._random.choice((*bound[-2:], *(json.dumps(key) for key in _KEYS)))
        kin = f"{self._library}.kin[{key}]"
        other = self._random.choice((self._atom("s", scope), self._atom("n", scope), "_"))
        if self._chance(0.4) and form > 12:
            other = self._declare(scope, "any")
        found = self._declare(scope, "any")
        match form:
            case 12:
                return f"{found} := {kin}.{self._random.choice(('n', 'n', 'o', 'e'))}"
            case 13:
                return f"{found} := {kin}.{self._random.choice(('o', 'o', 'e', 'm', 'm.a', 'm[_]'))}[{other}]"
            case 14:
                rule = self._random.choice(("many", "many", "o", "e", "kin[_].o", f"kin[{other}].e"))
                path = self._random.choice((f"[{other}]", f"[{other}]", f"[{other}].n"))
                return f"{found} := {self._library}.{rule}[{key}]{path}"
        rules = [name for kind in "oe" for name in self._known[kind] if name.isidentifier()] or [kin]
        rule = self._random.choice(rules)
        return self._random.choice(
            (f"{rule}[{key}] != {other}; {found} := 1", f"{found} := data.{self._name}.{rule}[{other}]")
        )

    def _condition(self, scope: dict[str, list[str]]) -> str:
        chance = self._random.random()
        if chance < 0.15:
            modifier = self._with(scope) if self._chance(0.1) else ""
            return f"not {self._test(scope)}{modifier}"
        if chance < 0.2:
            key, name = self._fresh("y"), self._fresh("y")
            inner = {**scope, "s": [*scope.get("s", []), key], "any": [name]}
            test = f"{name} != {self._atom('n', inner)}; {key} >= {self._atom('s', inner)}"
            if self._chance(0.5):
                test = "; ".join([test, self._iterate(inner), self._test(inner)])
            return f"every {key}, {name} in {self._expression('o', scope, plain=True)} {{ {test} }}"
        if chance < 0.25:
            name = self._fresh("y")
            test = f"{name} {self._random.choice(('!=', '<', '>='))} {self._atom('n', scope)}"
            if self._chance(0.3):
                test += f"; {self._test({**scope, 'any': [name]})}"
            return f"every {name} in {self._expression('a', scope)} {{ {test} }}"
        text = self._test(scope)
        return f"{text}{self._with(scope)}" if chance < 0.35 else text

    def _test(self, scope: dict[str, list[str]]) -> str:
        kind = self._random.choice("nnss")
        left = self._expression(kind, scope)
        match self._random.randrange(11):
            case 0:
                return self._expression("b", scope)
            case 7:
                pattern = self._random.choice(('"^a"', '"b$"', '"[ab]+"', "`^.?$`"))
                return f"regex.match({pattern}, {self._expression('s', scope)})"
            case 8:
                known = self._random.choice(self._known["any"])
                return f"{known} == {self._expression(self._random.choice('aeo'), scope)}"
            case 9:
                return f"{self._atom('s', scope)}, {self._atom('any', scope)} in {self._expression('o', scope)}"
            case 10:
                return self._random.choice((self._random.choice(self._known["any"]), *self._rules[-3:]))
            case 1:
                # Of the members of an array, OPA finds only those that are constant if there are any.
                return f"{left} in {self._atom(self._random.choice('ae'), scope)}"
            case 2:
                test = self._random.choice(("startswith", "endswith", "contains"))
                return f"{test}({self._expression('s', scope)}, {self._expression('s', scope)})"
            case 3:
                return f"is_{self._random.choice(('number', 'string', 'array', 'object'))}({self._atom('any', scope)})"
            case 4:
                return f"{self._atom('any', scope)} {self._random.choice(('==', '!=', '<', '>='))} {left}"
        operator = self._random.choice(("==", "!=", "<", "<=", ">", ">="))
        return f"{left} {operator} {self._expression(kind, scope)}"

    def _with(self, scope: dict[str, list[str]]) -> str:
        member, kind = self._random.choice((("n", "n"), ("s", "s"), ("a", "a"), ("o", "o")))
        targets = [f"input.{member}", f"data.base.{self._name}.{member}"]
        if self._chance(0.2):
            return f" with count as {self._constant('n')}"
        if self._chance(0.15) and self._functions.get("n"):
            name, kinds = self._random.choice(self._functions["n"])
            other = self._random.choice([one for one, others in self._functions["n"] if len(others) == len(kinds)])
            if len(kinds) > 1:
                return f" with {name} as {other}"
            return f" with {name} as {other}" if self._chance(0.5) else f" with abs as {name}"
        if self._chance(0.15) and self._rules:
            return f" with data.{self._name}.{self._random.choice(self._rules)} as {self._expression(kind, scope)}"
        if self._chance(0.1):
            return f" with {self._library}.{member} as {self._expression(kind, scope)}"
        if self._chance(0.1):
            return self._random.choice(
                (" with upper as lower", " with input as {}", f' with input as {{"{member}": 1}}')
            )
        modifier = f" with {self._random.choice(targets)} as {self._expression(kind, scope)}"
        return modifier + (self._with(scope) if self._chance(0.1) else "")

    # Expressions

    def _constant(self, kind: str) -> str:
        match kind:
            case "n":
                if self._chance(0.1):
                    return self._random.choice(("1.0", "12345678901234567890123", "0.1", "-0.5", "2.25"))
                return self._random.choice(("0", "1", "2", "3", "10", "1.5", "-1"))
            case "s":
                return json.dumps(self._random.choice(_STRINGS), ensure_ascii=False)
            case "b":
                return self._random.choice(("true", "false"))
            case "a":
                members = "nnnnnnnnsbe" if self._chance(0.05) else "n"
                drawn = [self._constant(self._random.choice(members)) for _ in range(self._random.randrange(1, 4))]
                return f"[{', '.join(drawn)}]"
            case "e":
                members = "nnnnsbaeo" if self._chance(0.1) else "n"
                drawn = [self._constant(self._random.choice(members)) for _ in range(self._random.randrange(1, 4))]
                return f"{{{', '.join(drawn)}}}"
            case "o":
                keys = self._random.sample(_KEYS, self._random.randrange(1, 3))
                items = [f'"{key}": {self._constant("n")}' for key in keys]
                return f"{{{', '.join(items)}}}"
        return self._random.choice(("null", self._constant("n"), self._constant("s")))

    def _atom(self, kind: str, scope: dict[str, list[str]]) -> str:
        """Write a reference or a constant; seldom one that nothing defines."""
        if self._chance(0.01):
            return self._random.choice(("input.missing", f"data.base.{self._name}.none", f"{self._library}.inner.none"))
        if self._chance(0.0007):
            return self._random.choice(("v1", "x2", "count", "base"))
        names = scope.get(kind, [])
        if names and self._chance(0.6):
            return self._random.choice(names)
        if self._known.get(kind) and self._chance(0.6):
            known = self._random.choice(self._known[kind])
            return f"{known}[{self._constant('n')}]" if kind == "any" and self._chance(0.2) else known
        return self._constant(kind)

    def _expression(self, kind: str, scope: dict[str, list[str]], depth: int = 0, *, plain: bool = False) -> str:
        """Write an expression.

        Args:
            kind: n for a number, s for a string, b for a boolean, a for an array, e for a set, o for an object.
            scope: variables that are bound, by kind.
            depth: of nesting.
            plain: write only what may be followed by brackets.
        """
        if plain or depth > 1 or self._chance(0.4):
            atom = self._atom(kind, scope)
            return self._random.choice(self._known["a"]) if plain and atom[0] in "[{s" else atom
        if self._functions.get(kind) and self._chance(0.2):
            name, kinds = self._random.choice(self._functions[kind])
            return f"{name}({', '.join(self._expression(each, scope, depth + 1) for each in kinds)})"

        def inner(kind: str) -> str:
            return self._expression(kind, scope, depth + 1)

        forms: dict[str, list[Callable[[], str]]] = {
            "n": [
                lambda: f"({inner('n')} {self._random.choice('+-*')} {inner('n')})",
                lambda: f"({inner('n')} {self._random.choice(('/', '%', '+'))} {inner('n')})",
                lambda: f"count({inner(self._random.choice('aeos'))})",
                lambda: f"{self._random.choice(('sum', 'max', 'min'))}({inner('a')})",
                lambda: f"abs({inner('n')})",
                lambda: f"object.get({inner('o')}, {inner('s')}, {inner('n')})",
            ],
            "s": [
                lambda: f"concat({inner('s')}, [{inner('s')}, {inner('s')}])",
                lambda: f'sprintf("%v-%d", [{inner("s")}, {inner("n")}])',
                lambda: f"{self._random.choice(('upper', 'lower', 'trim_space'))}({inner('s')})",
                lambda: f"replace({inner('s')}, {inner('s')}, {self._constant('s')})",
                lambda: self._template(scope),
            ],
            "b": [
                lambda: f"({inner('n')} in {inner('e')})",
                lambda: f"regex.match({self._constant('s')}, {inner('s')})",
                lambda: f"({inner('n')} < {inner('n')})",
                lambda: f"({inner('s')} == {inner('s')})",
                lambda: f"startswith({inner('s')}, {inner('s')})",
            ],
            "a": [
                lambda: f"[{inner('n')}, {inner('n')}]",
                lambda: self._comprehension("[", "]", scope, depth),
                lambda: f"array.concat({inner('a')}, {inner('a')})",
                lambda: f"[{inner('a')}, {inner('b')}]",
                lambda: f"[{inner('o')}, {inner('e')}]",
                lambda: f'regex.find_n("[ab]", {inner("s")}, -1)',
                lambda: f"sort({inner('e')})",
                lambda: f"split({inner('s')}, {inner('s')})",
                lambda: f"array.slice({inner('a')}, {self._constant('n')}, {self._constant('n')})",
            ],
            "e": [
                # Of calls in a set, OPA evaluates those first whose names come first.
                lambda: f"{{{inner('n')}, {self._atom('s', scope)}}}",
                lambda: f"{{{inner(self._random.choice('aeo'))}, {self._atom('b', scope)}}}",
                lambda: self._comprehension("{", "}", scope, depth),
                lambda: f"({inner('e')} {self._random.choice('|&-')} {inner('e')})",
            ],
            "o": [
                # A key that is there twice is looked up as another value than it has.
                lambda: f'{{"other": {inner("n")}, {inner("s")}: {inner("n")}}}',
                lambda: self._comprehension("{", "}", scope, depth, key=True),
                lambda: f"{{{inner(self._random.choice('naeob'))}: {inner('n')}}}",
                lambda: f"object.union({inner('o')}, {inner('o')})",
                lambda: f"object.remove({inner('o')}, [{inner('s')}])",
            ],
        }
        return self._random.choice(forms[kind])()

    def _template(self, scope: dict[str, list[str]]) -> str:
        if self._old:
            return self._constant("s")
        kind = self._random.choice("nsa")
        return f'$"<{{{self._atom(kind, scope)}}}|{{{self._atom("any", scope)}}}>"'

    def _comprehension(
        self, start: str, end: str, scope: dict[str, list[str]], depth: int, *, key: bool = False
    ) -> str:
        inner = {kind: list(names) for kind, names in scope.items()}
        literals = [self._iterate(inner)]
        if self._chance(0.5):
            literals.append(self._test(inner))
        head = self._expression(self._random.choice("ns"), inner, depth + 1)
        if key:
            head = f"{self._expression('s', inner, depth + 1)}: {head}"
        return f"{start}{head} | {'; '.join(literals)}{end}"


def run_opa(opa: Path, programs: list[Program], *, is_strict: bool = True) -> list[Result]:
    """Evaluate the packages of programs in one process of OPA for each version of Rego.

    Args:
        opa: the program.
        programs: what to evaluate.
        is_strict: a builtin that fails is an error; otherwise it is undefined.
    """
    with ExitStack() as stack:
        servers = {}
        for old in {program.old for program in programs}:
            server = stack.enter_context(running(opa, *(["--v0-compatible"] if old else [])))
            connection = http.client.HTTPConnection(urlsplit(server.url).netloc)
            servers[old] = stack.enter_context(closing(connection))
        found: list[Result] = []
        for start in range(0, len(programs), _CHUNK):
            chunk = programs[start : start + _CHUNK]
            for connection in servers.values():
                _request(connection, "PUT", "/v1/data/base", {program.name: program.data for program in chunk})
            found += [_run(servers[program.old], program, is_strict=is_strict) for program in chunk]
    return found


def _run(connection: http.client.HTTPConnection, program: Program, *, is_strict: bool) -> Result:
    # A policy takes the place of the one before, because OPA compiles all that it has for each one that comes.
    _request(connection, "DELETE", "/v1/policies/program", "")
    response = _request(connection, "PUT", "/v1/policies/library", program.library)
    assert response == {}, (program.library, response)
    response = _request(connection, "PUT", "/v1/policies/program", program.source)
    if "code" in response:
        return Result("compile", [each["code"] for each in response.get("errors", ())])
    path = f"/v1/data/{program.name}?strict-builtin-errors={str(is_strict).lower()}"
    response = _request(connection, "POST", path, {"input": program.input})
    if "code" in response:
        return Result("error", [each["code"] for each in response.get("errors", ())])
    return Result("value", response["result"]) if "result" in response else Result("undefined")


def _request(connection: http.client.HTTPConnection, method: str, path: str, body: Any) -> Any:
    connection.request(method, path, (body if isinstance(body, str) else json.dumps(body)).encode())
    content = connection.getresponse().read()
    return json.loads(content, parse_int=parse_number, parse_float=parse_number) if content else {}


def run_ours(program: Program, *, is_strict: bool = True) -> Result:
    """Evaluate the package of a program with this engine; see `run_opa`."""
    data = {"base": {program.name: program.data}}
    try:
        texts = {"program.rego": program.source, "library.rego": program.library}
        modules = [rego.parse_module(file, text, 0 if program.old else 1) for file, text in texts.items()]
        compiled = rego.link(modules, data, lenient=() if is_strict else texts)
    except rego.RegoError as error:
        return Result("compile", [each.code for each in error.diagnostics])
    try:
        value = compiled.query(f"data.{program.name}", program.input)
    except rego.EvaluationError as error:
        # What OPA makes of an empty string to replace is not UTF-8.
        return Result("refused" if "must not be empty" in str(error) else "error", [error.code])
    return Result("undefined") if value is rego.UNDEFINED else Result("value", to_json(value))


def agree(ours: Result, theirs: Result) -> bool:
    """Return whether two results are the same; which error comes first may differ, and OPA checks types."""
    if ours.kind == "refused" or (theirs.kind == "compile" and "rego_type_error" in theirs.value):
        return True
    if ours.kind != theirs.kind:
        return False
    return ours.kind != "value" or equal(ours.value, theirs.value)
