"""Write the form of a program that handles markers: what is undecided ends a body or an iteration, not the evaluation.

Each body of a rule and each iteration of a loop catches `Undecided` by itself and continues. What is left decides: a
constant rule needs one definite body, a set or comprehension keeps its definite members and records that there may be
others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial

from policyeng.rego.checker import Checker
from policyeng.rego.compiler import (
    _DEEPEST,
    _KINDS,
    Compiler,
    _is_constant,
    _Names,
    _names_of,
    _Writer,
)
from policyeng.rego.resolver import Definition, operator_name
from policyeng.rego.syntax import (
    ArrayComprehension,
    Body,
    Call,
    Every,
    Expr,
    ObjectComprehension,
    Scalar,
    Set,
    SetComprehension,
    Term,
    Var,
    constant_names,
    results_of,
)
from policyeng.rego.tree import DataNode
from policyeng.rego.values import Value


class HandledCompiler(Compiler):
    """Compiles the rules of a program to the form that handles markers."""

    def __init__(
        self, root: DataNode, checker: Checker, data: Value, *, inlines: bool = True, lenient: Collection[str] = ()
    ) -> None:
        """Take the rules, with ordered bodies, and what the checker found about them."""
        super().__init__(root, checker, data, inlines=inlines, lenient=lenient)
        self.writer = _HandledWriter

    def is_remembered(self, node: DataNode) -> bool:  # noqa: ARG002  # as of the other form
        """Keep nothing: an argument that is not known is not touched before the function does."""
        return False


#: Comparisons of types and identities, which no class can answer for.
_TYPE = re.compile(r"\btype\((\w+)\)")
_IDENTITY = re.compile(r"\b(\w+) (is|is not) (None|True|False|k\d+)\b")


@dataclass(slots=True)
class _Handler:
    """Where undecided code is caught.

    Attributes:
        depth: of its `try`.
        bound: the variables that have values where the `try` begins.
        kinds: what is known about their types there.
        is_last: no loop is within the `try`.
    """

    depth: int
    bound: dict[str, str]
    kinds: dict[str, str]
    is_last: bool = True


#: Writes what is done where something undecided is caught.
_Caught = Callable[[_Handler], None]


class _HandledWriter(_Writer):
    """Writes functions that go on where a part of them is undecided."""

    def __init__(self, compiler: Compiler, source: Value, *, ordered: bool = False) -> None:
        super().__init__(compiler, source, ordered=ordered)
        #: The names that the loops of the block bind, whose values may belong to entries that are absent.
        self.targets: list[str] = []
        #: Of the block; None where it does not catch.
        self.handlers: list[_Handler] | None = None
        #: The variables that what is caught needs.
        self.mentioned: dict[str, None] = {}

    def line(self, text: str) -> None:
        """Write a line that touches markers where it compares types and identities."""
        super().line(_IDENTITY.sub(r"touched(\1) \2 \3", _TYPE.sub(r"\1.__class__", text)))

    # Parts.

    def begin_parts(self, found: str = "") -> None:
        super().begin_parts(found)
        self.line("why = ()")

    def part(self) -> AbstractContextManager[None]:
        return self.catching("why")

    def end_parts(self) -> None:
        self.line("if why: raise Undecided(*why)")

    def return_found(self) -> None:
        self.line("return partial(found, why) if why else found")

    @contextmanager
    def block(self) -> Iterator[None]:
        before = self.handlers, self.targets, self.mentioned
        self.handlers, self.targets, self.mentioned = None, [], {}
        with super().block():
            yield
        self.handlers, self.targets, self.mentioned = before

    @contextmanager
    def catching(
        self, why: str, leave: str = "", caught: _Caught | None = None, mentioned: Iterable[str] = ()
    ) -> Iterator[None]:
        """Write a block in which each iteration of a loop, and the rest, catches what is undecided.

        Args:
            why: the name that collects causes.
            leave: a name; the loops end where it is true.
            caught: writes what else is done.
            mentioned: the variables that it needs.
        """
        with self.block():
            self.mentioned = dict.fromkeys(mentioned)
            handlers = self.handlers = []
            self._begin_try()
            yield
            for index in range(len(handlers) - 1, -1, -1):
                handler = handlers[index]
                self.depth = handler.depth
                self.line(f"except Undecided as error: {why} = error.join({why})")
                if caught is not None:
                    # Python takes no second line after the first, which is short.
                    self.lines[-1] = " " * self.depth + "except Undecided as error:"
                    self.depth += 1
                    self.line(f"{why} = error.join({why})")
                    caught(handler)
                    self.depth -= 1
                if leave and index:
                    self.depth -= 1
                    self.line(f"if {leave}: break")

    def _begin_try(self, names: Iterable[str] = ()) -> None:
        """Begin to catch what is undecided, with names that have values here; not if Python allows no more blocks."""
        if self.handlers is None:
            return
        if self.nested >= _DEEPEST:
            self.handlers[-1].is_last = False
            return
        self.line("try:")
        # A wildcard has no value.
        bound = {name: code for name in self.mentioned if (code := self.bound.get(name, "UNDEFINED")) != "UNDEFINED"}
        bound |= {f"@{name}": name for name in names}
        kinds = {code: self.kinds[code] for code in bound.values() if code in self.kinds}
        self.handlers.append(_Handler(self.depth, bound, kinds))
        if len(self.handlers) > 1:
            self.handlers[-2].is_last = False
        self.depth += 1
        self.nested += 1

    def loop(self, header: str) -> None:
        super().loop(header)
        names = header[len("for ") : header.index(" in ")].strip("()").replace(",", " ").split()
        # Keys are known; the values that a function found have been settled there.
        self.targets += names[-1:] if "(" not in header[: header.index(" in ")] else []
        self._begin_try(names)

    def body(self, body: Body, succeed: Callable[[], None]) -> None:
        first = len(self.targets)

        def settle() -> None:
            # Only if the entry that a value belongs to exists, the result counts.
            for name in self.targets[first:]:
                self.line(f"settle({name})")
            succeed()

        super().body(body, settle)

    def join(self, body: Body) -> bool:  # noqa: ARG002  # as of the other form
        """Write no such loop: each iteration decides by itself."""
        return False

    def require_index(self, body: Body, heads: list[Term]) -> None:
        start, handlers = len(self.lines), self.handlers
        marks = self.known.mark(), self.kinds.mark()
        self.handlers = None
        self.line("try:")
        self.depth += 1
        super().require_index(body, heads)
        self.depth -= 1
        self.line("except Undecided: pass")
        if len(self.lines) == start + 2:
            del self.lines[start:], self.places[start:]
        self.handlers = handlers
        self.known.undo(marks[0])
        self.kinds.undo(marks[1])

    # Expressions.

    def holds(self, body: Body) -> str:
        flag, why = self.fresh(), self.fresh("w")
        if self.nested + 2 >= _DEEPEST:
            self.call_outlined(body, [])
            self.line(f"{flag} = bool({self.last_call})")
            return flag
        self.line(f"{flag} = False")
        self.line(f"{why} = ()")
        with self.catching(why, flag), self.in_order(body):

            def succeed() -> None:
                self.line(f"{flag} = True")
                self.line("break")

            self.body(body, succeed)
        self.line(f"if {why} and not {flag}: raise Undecided(*{why})")
        return flag

    def every(self, every: Every) -> None:
        if self.nested + 4 >= _DEEPEST:
            self.call_outlined([Expr(every.start, every.end, every)], [])
            self.require(self.last_call)
            return
        domain = self.value(every.domain)
        self.require(f"is_collection({domain})")
        flag, why = self.fresh(), self.fresh("w")
        self.line(f"{flag} = True")
        self.line(f"{why} = ()")
        with self.catching(why), self.in_order(every.body):
            item = self.fresh()
            if every.key is not None and not every.key.is_wildcard:
                place = self.fresh()
                self.loop(f"for {place}, {item} in {self.iterate('pairs', domain)}:")
                self.bound[every.key.name] = place
            else:
                self.loop(f"for {item} in {self.iterate('values', domain)}:")
            self.bound[every.value.name] = item
            inner = self.holds(every.body)
            self.line(f"if not {inner}:")
            self.line(f" settle({item})")
            self.line(f" {flag} = False")
            self.line(" break")
        self.line(f"if {why} and {flag}: raise Undecided(*{why})")
        self.require(flag)

    def call(self, call: Call, *, is_statement: bool) -> None:
        output = call.arguments[-1]
        node = self.compiler.root.find(constant_names(call.operator.path)) if operator_name(call) is None else None
        if (
            node is None
            or is_statement
            or not isinstance(output, Var)
            or output.name in self.bound
            or not _is_total(node)
            or self.compiler.replaced_by(node.path)
        ):
            super().call(call, is_statement=is_statement)
            return
        # A function that always has a value has one that is not known.
        codes = [self.value(argument) for argument in call.arguments[:-1]]
        self.at(call.start)
        found = self.fresh()
        self.line(f"try: {found} = {self.compiler.function_of(node)}({', '.join(codes)})")
        self.line(f"except Undecided as error: {found} = Unknown(*error.causes[0])")
        self.defined(found)
        self.bound[output.name] = found

    def inline(self, name: str, inputs: list[Term], codes: list[str]) -> tuple[str, str] | None:
        if name == "object.get":
            return None
        if name == "count":
            return f"{self.builtin(name)}({codes[0]})", "int"
        return super().inline(name, inputs, codes)

    def inlined(self, call: Call, codes: list[str]) -> tuple[str, str, bool] | None:
        handlers, targets = len(self.handlers or ()), len(self.targets)
        found = super().inlined(call, codes)
        if found is None:
            del self.targets[targets:]
            if self.handlers is not None:
                del self.handlers[handlers:]
        return found

    def iterate(self, how: str, base: str) -> str:
        return f"{'ordered_' if self.ordered else ''}{how}({base})"

    # Terms.

    def value(self, term: Term) -> str:
        if isinstance(term, Set) and not _is_constant(term):
            codes = [self.value(item) for item in term.items]
            return self.weigh(self.keep(f"set_of([{', '.join(codes)}])", "set"), codes)
        return super().value(term)

    def weigh_now(self, found: str) -> None:
        self.line(f"weigh({found})")

    def comprehension(self, term: ArrayComprehension | SetComprehension | ObjectComprehension) -> str:
        if self.nested + 2 >= _DEEPEST:
            return self.outlined_comprehension(term)
        kind = _KINDS[type(term)]
        found = self.keep({"list": "[]", "set": "set()", "dict": "{}"}[kind], kind)
        why, perhaps, is_open = self.keep("()"), self.keep("[]"), self.keep("False")
        head = term.key if isinstance(term, ObjectComprehension) else term.term

        def caught(handler: _Handler) -> None:
            is_one = handler.is_last or kind != "list"
            self._keep_possible(term.body, head, handler, perhaps, is_open, is_one=is_one)

        names = _names_of([*term.body, *(Expr(part.start, part.end, part) for part in results_of(term))])
        self.collect(term, found, partial(self.catching, why, caught=caught, mentioned=names))
        self.line(f"if {why}: {found} = make_partial({kind}, {found}, {why}, {perhaps}, open_={is_open})")
        return found

    def _keep_possible(
        self, body: Body, head: Term, handler: _Handler, perhaps: str, is_open: str, *, is_one: bool
    ) -> None:
        """Write what computes the member that an undecided iteration may contribute, if that is known here.

        Only names count that have their values where the `try` begins: others may have those of an earlier iteration.
        """
        known = set(handler.bound.values())
        bound = _Names(
            {name: self.bound[name] for name in self.mentioned if name in self.bound and self.bound[name] in known}
        )
        needed = self._support_of(body, head, set(bound))
        if needed is None or not is_one:
            self.line(f"{is_open} = True")
            return
        saved = self.bound, self.known, self.kinds, self.handlers, self.loops
        self.bound, self.known, self.kinds, self.handlers = bound, _Names(), _Names(handler.kinds), None
        self.line("try:")
        self.depth += 1
        with self.block():
            for expression in needed:
                self.expression(expression)
            self.line(f"{perhaps}.append({self.value(head)})")
        self.depth -= 1
        self.line(f"except Undecided: {is_open} = True")
        self.bound, self.known, self.kinds, self.handlers, self.loops = saved

    def _support_of(self, body: Body, head: Term, bound: set[str]) -> list[Expr] | None:
        """Return the expressions of a body that compute what a head needs; None if loops or conditions do it."""
        needed = [name for name in _names_of([Expr(head.start, head.end, head)]) if name not in bound]
        found: list[Expr] = []
        for expression in reversed(body):
            call = expression.value
            if not isinstance(call, Call) or expression.withs or expression.negated:
                continue
            if operator_name(call) in {"eq", "equal"}:
                free: list[Term] = [one for one in call.arguments if isinstance(one, Var) and one.name in needed]
                outputs = free[:1]
                inputs = [one for one in call.arguments if one not in outputs]
            else:
                arity = self.compiler.checker.arity(call)
                inputs, outputs = call.arguments[:arity], call.arguments[arity:]
            output = outputs[0] if outputs else None
            if isinstance(output, Var) and output.name in needed and operator_name(call) != "walk":
                needed.remove(output.name)
                found.insert(0, expression)
                more = _names_of([Expr(one.start, one.end, one) for one in inputs])
                needed += [name for name in more if name not in bound and name not in needed]
        return None if needed else found


def _is_total(node: DataNode) -> bool:
    """Return whether a function has a value for all arguments, unless it ends in an error."""
    return node.is_function and any(
        definition.default or _is_unconditional(definition) for definition in node.definitions
    )


def _is_unconditional(definition: Definition) -> bool:
    """Return whether the last `else` of a function is a constant without a condition."""
    names = [argument.name for argument in definition.arguments or () if isinstance(argument, Var)]
    last = definition.branches[-1]
    return (
        len(set(names)) == len(definition.arguments or ())
        and last.value is not None
        and _is_constant(last.value)
        and all(isinstance(one.value, Scalar) and one.value.value is True for one in last.body)
    )
