"""Draw small Rego modules with and without mistakes of types."""

from __future__ import annotations

import random
from collections.abc import Callable

from policyeng.rego.builtins import REFUSED, signatures

_SCALARS = ("null", "true", "1", "2.5", '"a"', '"b"', "0")
_KEYS = ("a", "b", "c")
_CALLED = (
    "abs",
    "array.concat",
    "concat",
    "count",
    "io.jwt.decode",
    "is_string",
    "json.marshal",
    "json.patch",
    "max",
    "net.cidr_contains_matches",
    "numbers.range",
    "object.get",
    "object.keys",
    "object.union",
    "regex.match",
    "sort",
    "split",
    "sprintf",
    "startswith",
    "sum",
    "time.clock",
    "to_number",
    "trim",
    "union",
    "upper",
    "walk",
)
#: Builtins that are refused or that no policy calls.
_UNSUITED = {*REFUSED, "print", "internal.print", "internal.test_case", "assign", "eq", "internal.template_string"}
_UNSUITED |= {"rego.metadata.chain", "rego.metadata.rule", "internal.member_2", "internal.member_3"}
_INFIX = ("+", "-", "*", "/", "%", "&", "|")
_COMPARED = ("==", "==", "==", "!=", "<", ">", "=")


class Module:
    """Draws one module.

    Attributes:
        rules: names of rules that those after them may refer to.
        functions: the same of functions, with their number of arguments.
    """

    def __init__(self, package: str, draw: random.Random) -> None:
        """Take the name of the package and what decides."""
        self.package = package
        self.draw = draw
        self.rules: list[str] = []
        self.functions: dict[str, int] = {}
        self.count = 0

    def text(self) -> str:
        """Return the text of a module of a few rules."""
        makers = (self.value, self.value, self.partial, self.function, self.object, self.chain)
        rules = [self.draw.choice(makers)() for _ in range(self.draw.randrange(1, 4))]
        return f"package {self.package}\n\n" + "\n".join(rules) + "\n"

    def name(self, prefix: str) -> str:
        """Return a new name."""
        self.count += 1
        return f"{prefix}{self.count}"

    # Rules.

    def value(self) -> str:
        """Return one or more rules of the same name."""
        name = self.name("r")
        found = []
        for _ in range(self.draw.choice((1, 1, 2))):
            body, known = self.body([])
            found.append(f"{name} := {self.term(known, 2)} if {{ {body} }}")
            if self.draw.random() < 0.2:
                found[-1] += f" else := {self.term([], 1)}"
        if self.draw.random() < 0.2:
            found.append(f"default {name} := {self.literal(1)}")
        self.rules.append(name)
        return "\n".join(found)

    def partial(self) -> str:
        """Return rules that contribute to a set."""
        name = self.name("s")
        found = []
        for _ in range(self.draw.choice((1, 2))):
            body, known = self.body([])
            found.append(f"{name} contains {self.term(known, 1)} if {{ {body} }}")
        self.rules.append(name)
        return "\n".join(found)

    def object(self) -> str:
        """Return rules that contribute to an object."""
        name = self.name("o")
        found = []
        for _ in range(self.draw.choice((1, 2))):
            body, known = self.body([])
            key = self.draw.choice((".a", ".b.c", '["d"]', "[1]", *(f"[{variable}]" for variable in known)))
            found.append(f"{name}{key} := {self.term(known, 1)} if {{ {body} }}")
        self.rules.append(name)
        return "\n".join(found)

    def chain(self) -> str:
        """Return a constant rule."""
        name = self.name("k")
        self.rules.append(name)
        return f"{name} := {self.literal(3)}"

    def function(self) -> str:
        """Return a function of one or two definitions."""
        name = self.name("f")
        count = self.draw.choice((1, 1, 2))
        found = []
        for _ in range(self.draw.choice((1, 1, 2))):
            known = [self.name("x") for _ in range(count)]
            patterns = (str, str, str, lambda x: f"[{x}, 1]", lambda x: f'{{"a": {x}}}', lambda _: '"a"')
            arguments = [self.draw.choice(patterns)(x) for x in known]
            known = [x for x, argument in zip(known, arguments, strict=True) if x in argument]
            body, known = self.body(known)
            found.append(f"{name}({', '.join(arguments)}) := {self.term(known, 1)} if {{ {body} }}")
        self.functions[name] = count
        return "\n".join(found)

    # Bodies.

    def body(self, known: list[str], depth: int = 2) -> tuple[str, list[str]]:
        """Return a body and the variables that are known after it."""
        known = list(known)
        found = []
        for _ in range(self.draw.randrange(1, 3)):
            makers: list[Callable[[list[str], int], str]] = [self.assign, self.assign, self.compare, self.compare]
            makers += [self.some, self.reference, self.call, self.member, self.destructure, self.unify]
            if depth > 1:
                makers += [self.every, self.negated, self.replaced]
            found.append(self.draw.choice(makers)(known, depth - 1))
        return "; ".join(found), known

    def assign(self, known: list[str], depth: int) -> str:
        """Return an assignment."""
        term = self.term(known, depth + 1)
        known.append(self.name("v"))
        return f"{known[-1]} := {term}"

    def destructure(self, known: list[str], depth: int) -> str:
        """Return an assignment to a pattern."""
        pattern = self.draw.choice(("[{}, {}]", '{{"a": {}, "b": {}}}', "[{}, [{}]]"))
        matching = pattern.format(self.term(known, 0), self.term(known, 0))
        term = self.draw.choice((matching, matching, "input.x", self.ref(known, depth)))
        names = [self.name("v"), self.name("v")]
        known += names
        return f"{pattern.format(*names)} := {term}"

    def unify(self, known: list[str], depth: int) -> str:
        """Return a unification that enumerates."""
        source = self.subject(known, depth)
        index, name = self.name("v"), self.name("v")
        known += [index, name]
        return f"some {index}, {name}; {name} = {source}[{index}]"

    def compare(self, known: list[str], depth: int) -> str:
        """Return a comparison."""
        operator = self.draw.choice(_COMPARED)
        left = self.term(known, depth)
        right = self.draw.choice((left, "input.y", self.term(known, depth)))
        return f"{left} {operator} {right}"

    def some(self, known: list[str], depth: int) -> str:
        """Return a loop."""
        source = self.subject(known, depth)
        names = [self.name("v") for _ in range(self.draw.choice((1, 2)))]
        known += names
        return f"some {', '.join(names)} in {source}"

    def reference(self, known: list[str], depth: int) -> str:
        """Return a reference on its own."""
        return self.ref(known, depth)

    def member(self, known: list[str], depth: int) -> str:
        """Return a test for a member."""
        return f"{self.term(known, 1)} in {self.subject(known, depth)}"

    def every(self, known: list[str], depth: int) -> str:
        """Return `every`."""
        name = self.name("e")
        source = self.subject(known, depth)
        body, _ = self.body([*known, name], 1)
        return f"every {name} in {source} {{ {name} != null; {body} }}"

    def negated(self, known: list[str], depth: int) -> str:
        """Return a negated expression."""
        return f"not {self.draw.choice((self.compare, self.reference, self.call))(known, depth)}"

    def replaced(self, known: list[str], depth: int) -> str:
        """Return an expression with a modifier."""
        inner = self.draw.choice((self.compare, self.reference, self.call))(known, depth)
        targets = ["input", "input.x", *(f"data.{self.package}.{name}" for name in self.rules)]
        return f"{inner} with {self.draw.choice(targets)} as {self.term(known, 1)}"

    def call(self, known: list[str], depth: int) -> str:
        """Return a call."""
        if self.functions and self.draw.random() < 0.5:
            name, count = self.draw.choice(list(self.functions.items()))
        else:
            name = self.draw.choice(_CALLED)
            arguments = [_sample(wanted, self.draw) for wanted in signatures()[name]["arguments"]]
            place = self.draw.randrange(3 * len(arguments))
            if place < len(arguments):
                arguments[place] = self.term(known, depth)
            return f"{name}({', '.join(arguments)})"
        return f"{name}({', '.join(self.term(known, depth) for _ in range(count))})"

    # Terms.

    def term(self, known: list[str], depth: int) -> str:
        """Return a term."""
        makers: list[Callable[[list[str], int], str]] = [lambda _, depth: self.literal(depth), self.subject]
        if known:
            makers += [lambda known, _: self.draw.choice(known)] * 2
        if depth > 0:
            makers += [self.composite, self.ref, self.call, self.comprehension, self.infix]
        return self.draw.choice(makers)(known, depth - 1)

    def literal(self, depth: int) -> str:
        """Return a constant."""
        if depth <= 0 or self.draw.random() < 0.5:
            return self.draw.choice(_SCALARS)
        return self.composite([], depth - 1)

    def composite(self, known: list[str], depth: int) -> str:
        """Return an array, an object or a set."""
        items = [self.term(known, depth) if known else self.literal(depth) for _ in range(self.draw.randrange(3))]
        kind = self.draw.randrange(3)
        if kind == 0:
            return f"[{', '.join(items)}]"
        if kind == 1:
            return f"{{{', '.join(items)}}}" if items else "set()"
        return f"{{{', '.join(f'{self.key(known)}: {item}' for item in items)}}}"

    def key(self, known: list[str]) -> str:
        """Return a key of an object."""
        return self.draw.choice((*(f'"{name}"' for name in _KEYS), "1", *known[:2]))

    def subject(self, known: list[str], depth: int) -> str:
        """Return what a reference may begin with."""
        choices = ["input.x", "input.y", *known, *self.rules, *self.rules]
        if self.rules and self.draw.random() < 0.2:
            return f"data.{self.package}.{self.draw.choice(self.rules)}"
        if self.draw.random() < 0.3:
            return self.composite(known, depth)
        return self.draw.choice(choices)

    def ref(self, known: list[str], depth: int) -> str:
        """Return a reference."""
        text = self.subject(known, depth)
        if text.endswith("()"):
            text = self.draw.choice(("input", *self.rules))
        for _ in range(self.draw.randrange(1, 3)):
            parts = [f".{self.draw.choice(_KEYS)}", f'["{self.draw.choice(_KEYS)}"]', "[0]", *["[_]"] * 5]
            parts += [f"[{name}]" for name in known[-2:]]
            if depth > 0:
                parts.append(f"[{self.term(known, 0)}]")
            text += self.draw.choice(parts)
        return text

    def comprehension(self, known: list[str], depth: int) -> str:
        """Return a comprehension."""
        body, inner = self.body(known, min(depth, 1))
        pattern = self.draw.choice(("[{} | {}]", "{{{} | {}}}", '{{"a": {} | {}}}', '{{sprintf("%v", [{}]): 1 | {}}}'))
        return pattern.format(self.term(inner, 0), body)

    def infix(self, known: list[str], depth: int) -> str:
        """Return a calculation."""
        operand = self.draw.choice(
            ("{1}", "set()", "input.y") if (operator := self.draw.choice(_INFIX)) in "&|" else ("1",)
        )
        right = self.draw.choice((operand, operand, self.term(known, depth)))
        return f"({self.draw.choice((operand, self.term(known, depth)))} {operator} {right})"


def drawn_modules(count: int, seed: int) -> dict[str, str]:
    """Return modules of random rules by file name."""
    draw = random.Random(seed)  # noqa: S311  # no secret
    return {f"drawn{index}.rego": Module(f"drawn{index}", draw).text() for index in range(count)}


def builtin_modules(count: int, seed: int) -> dict[str, str]:
    """Return modules that call each builtin, by file name, most with one argument of another type than it takes."""
    draw = random.Random(seed)  # noqa: S311  # no secret
    found: dict[str, str] = {}
    for name, signature in signatures().items():
        if name in _UNSUITED:
            continue
        for _ in range(count):
            arguments = [_sample(wanted, draw) for wanted in signature["arguments"]]
            if arguments and draw.random() < 0.8:
                arguments[draw.randrange(len(arguments))] = Module("", draw).literal(2)
            result = draw.choice(
                (f"{draw.choice(_SCALARS)} == {{}}", "x := {}; x.a", "{}", "startswith({}, x); x := 1")
            )
            package = f"call{len(found)}"
            call = f"{name}({', '.join(arguments)})"
            found[f"{package}.rego"] = f"package {package}\n\np if {{ {result.format(call)} }}\n"
    return found


def _sample(wanted: dict, draw: random.Random) -> str:  # type: ignore[type-arg]
    kind = wanted["type"]
    if kind == "any":
        return _sample(draw.choice(wanted["of"]), draw) if "of" in wanted else draw.choice(_SCALARS)
    if kind == "array":
        items = [_sample(item, draw) for item in wanted.get("static", ())]
        if dynamic := wanted.get("dynamic"):
            items.append(_sample(dynamic, draw))
        return f"[{', '.join(items)}]"
    if kind == "set":
        return f"{{{_sample(wanted['of'], draw)}}}"
    if kind == "object":
        items = [f'"{entry["key"]}": {_sample(entry["value"], draw)}' for entry in wanted.get("static", ())]
        if dynamic := wanted.get("dynamic"):
            items.append(f'"k": {_sample(dynamic["value"], draw)}')
        return f"{{{', '.join(items)}}}"
    return {"null": "null", "boolean": "true", "number": "1", "string": '"1"'}[kind]
