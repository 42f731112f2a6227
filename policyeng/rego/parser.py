"""Rego text to nodes: versions 0 and 1 with every future keyword, as OPA 1.22 parses them.

The parser tries one reading after another where Rego is ambiguous, as in `{a | b}`. Each term is read once at
each place, so nested ambiguity takes no longer than its text is long.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import NoReturn, TypeVar

from policyeng.frozen import replace
from policyeng.rego.budget import UNLIMITED, CompilationLimitError, EvaluationLimits, compiling, spend
from policyeng.rego.errors import LIMIT_ERROR, Diagnostic, ModuleText, RegoError
from policyeng.rego.lexer import PARSE_ERROR, RegoToken, tokenize
from policyeng.rego.syntax import (
    Array,
    ArrayComprehension,
    Body,
    Call,
    Every,
    Expr,
    Head,
    Import,
    Logical,
    Module,
    Not,
    Number,
    Object,
    ObjectComprehension,
    Ref,
    Rule,
    Scalar,
    Set,
    SetComprehension,
    Some,
    SomeIn,
    Template,
    Term,
    Var,
    With,
)

_Value = TypeVar("_Value")
_ALWAYS = frozenset({"package", "import", "as", "default", "else", "not", "some", "with", "null", "true", "false"})
_SINCE_1 = frozenset({"in", "every", "contains", "if"})
_SINCE_2 = frozenset({"not", "and", "or"})
_ROOTS = frozenset({"data", "input"})
#: The operators from the one that binds least, and the builtins behind them.
_LEVELS = (
    {"==": "equal", "!=": "neq", "<": "lt", ">": "gt", "<=": "lte", ">=": "gte"},
    {"|": "or"},
    {"&": "and"},
    {"+": "plus", "-": "minus"},
    {"*": "mul", "/": "div", "%": "rem"},
)
_CONSTANTS: dict[str, bool | None] = {"null": None, "true": True, "false": False}
#: So deep may terms and bodies be nested; each level takes several frames of Python.
MAX_DEPTH = 100
#: So many operators, or parts of a reference, may follow each other; each makes a term one level deeper.
MAX_CHAIN = 250
SPLIT_HINT = "divide it among several rules and modules"
#: What follows a keyword that is used as the name of a rule.
_RULE_SIGNS = frozenset({":=", "=", "if", "contains", "("})
_REFUSED_RULE_NAMES = {
    "every": _RULE_SIGNS,
    "if": _RULE_SIGNS,
    "in": _RULE_SIGNS,
    "some": _RULE_SIGNS,
    "as": _RULE_SIGNS,
    "package": frozenset({":=", "=", "("}),
    "import": frozenset({":=", "=", "("}),
    "not": _RULE_SIGNS - {"("},
    "and": _RULE_SIGNS - {"("},
    "or": _RULE_SIGNS - {"("},
    "contains": frozenset({"if", "contains"}),
}


#: What other languages have, by two tokens of which the second cannot be read, and what to write instead.
_MISTAKES = {
    ("&", "&"): "write each condition on a line of its own, or separate conditions by `;`",
    ("|", "|"): "write a rule for each alternative: one that holds is sufficient",
    ("==", "="): "compare with `==`",
    ("!=", "="): "compare with `!=`",
}
_WORDS = {
    "for": "write `some x in xs` on a line of its own instead of `for`",
    "foreach": "write `some x in xs` on a line of its own instead of `foreach`",
    "return": "write the value of a function in its head: `f(x) := value if { ... }`",
    "elif": "write `else := value if { ... }` instead of `elif`",
    "elseif": "write `else := value if { ... }` instead of `elseif`",
    "and": "write each condition on a line of its own, or separate conditions by `;`",
    "or": "write a rule for each alternative: one that holds is sufficient",
}


def parse_module(file: str, text: str, version: int = 1, limits: EvaluationLimits = UNLIMITED) -> Module:
    """Parse a module.

    Args:
        file: how messages name it.
        text: what it contains.
        version: of Rego, 0 or 1; a module of version 0 may import `rego.v1`.
        limits: of what is compiled.

    Raises:
        RegoError: the text is not Rego of that version, or is beyond a limit.
    """
    source = ModuleText(file, text)
    if len(text) > limits.characters:
        message = f"the module has more than {limits.characters:,} characters (limit `characters`)"
        # What follows is not read, so the message is about the beginning.
        raise RegoError(Diagnostic(LIMIT_ERROR, message, source, 0, (SPLIT_HINT,)))
    with compiling(limits):
        parser = _RegoParser(source, version, limits)
        return parser.run(parser.module)


def parse_query(text: str, version: int = 1, imports: tuple[str, ...] = ()) -> Body:
    """Parse a query, such as `x := data.authz.allow`.

    Args:
        text: expressions, separated by `;` or lines.
        version: of Rego, 0 or 1.
        imports: future keywords that it may use.

    Raises:
        RegoError: the text is not a query.
    """
    parser = _RegoParser(ModuleText("query", text), version)
    parser.add_keywords(imports)
    return parser.run(lambda: parser.query("eof"))


class _UnreadableError(Exception):
    """One way to read the text does not work."""

    def __init__(self, diagnostic: Diagnostic, at: int) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic, self.at = diagnostic, at


class _RegoParser:
    def __init__(self, source: ModuleText, version: int, limits: EvaluationLimits = UNLIMITED) -> None:
        self.source, self.version, self.limits = source, version, limits
        self.tokens, self.comments = tokenize(source)
        self.at = self.wildcards = self.depth = 0
        self.keywords = _ALWAYS | (_SINCE_1 if version else frozenset())
        self.not_bodies = False
        self.terms: dict[int, tuple[Term, int] | _UnreadableError] = {}
        #: Where an expression begins with a keyword that is the name of a reference: `some.x == 1`.
        self.leading: set[int] = set()

    # Tokens

    @property
    def token(self) -> RegoToken:
        return self.tokens[self.at]

    @property
    def following(self) -> RegoToken:
        return self.tokens[min(self.at + 1, len(self.tokens) - 1)]

    def is_sign(self, *signs: str) -> bool:
        return self.token.kind in signs

    def is_keyword(self, *words: str) -> bool:
        """Return whether this is one of some keywords, and not the name of a reference such as `if.x`."""
        token = self.token
        is_one = token.kind == "name" and token.text in words and token.text in self.keywords
        return is_one and not self.begins_ref()

    def is_name(self) -> bool:
        """Return whether this can be a variable; `contains` is a keyword in the head of a rule alone."""
        token = self.token
        return token.kind == "name" and (token.text not in self.keywords or token.text == "contains")

    def begins_ref(self) -> bool:
        """Return whether this is a name that a reference begins with; a keyword can be one there."""
        return self.token.kind == "name" and self.following.kind in (".", "[") and not self.following.spaced

    def take(self) -> RegoToken:
        token = self.token
        self.at += token.kind != "eof"
        return token

    def expect(self, sign: str) -> RegoToken:
        if not self.is_sign(sign):
            self.fail(f"unexpected {self.described()}: expected `{sign}`")
        return self.take()

    def described(self) -> str:
        token = self.token
        if token.kind == "eof":
            return "end of file"
        if token.kind == "name" and token.text in self.keywords:
            return f"keyword `{token.text}`"
        return f"{token.kind} `{token.text}`" if token.kind in ("name", "number", "string") else f"`{token.text}`"

    def fail(self, message: str, *hints: str, at: int | None = None) -> NoReturn:
        here = self.last_end if self.is_sign("eof") else self.token.start
        offset = here if at is None else at
        raise _UnreadableError(Diagnostic(PARSE_ERROR, message, self.source, offset, hints), self.at)

    @property
    def last_end(self) -> int:
        return self.tokens[self.at - 1].end if self.at else 0

    def limit_chain(self, count: int, what: str) -> None:
        """Refuse a chain that makes a term deeper than the functions that read it can follow."""
        if count > MAX_CHAIN:
            self.fail(f"there are more than {MAX_CHAIN} {what} in a row")

    @contextmanager
    def nested(self) -> Iterator[None]:
        if self.depth >= MAX_DEPTH:
            self.fail(f"terms are nested more than {MAX_DEPTH} deep")
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    def attempt(self, read: Callable[[], _Value]) -> _Value | None:
        """Read something, or return None and go back to where it would begin."""
        at, depth = self.at, self.depth
        try:
            return read()
        except _UnreadableError:
            # Not the count of wildcards: `terms` keeps what was read, with its names.
            self.at, self.depth = at, depth
            return None

    # Statements

    def run(self, read: Callable[[], _Value]) -> _Value:
        """Read something that has no other reading."""
        try:
            return read()
        except _UnreadableError as failure:
            fault = failure.diagnostic
            raise RegoError(replace(fault, hints=(*fault.hints, *self.find_mistake(failure.at)))) from None
        except CompilationLimitError as error:
            raise self.limit_error(f"the module {error}") from None

    def limit_error(self, message: str, at: int | None = None) -> RegoError:
        offset = self.token.start if at is None else at
        return RegoError(Diagnostic(LIMIT_ERROR, message, self.source, offset, (SPLIT_HINT,)))

    def find_mistake(self, at: int) -> Iterator[str]:
        """Yield what to write instead of something that other languages have, from the tokens around a fault."""
        before, token = self.tokens[at - 1] if at else RegoToken("", "", 0, 0, False, False), self.tokens[at]
        follows = self.tokens[min(at + 1, len(self.tokens) - 1)]
        words = before.text, token.text
        yield from (hint for pair, hint in _MISTAKES.items() if pair == words)
        if before.text in _WORDS:
            yield _WORDS[before.text]
        elif token.text in _WORDS:
            yield _WORDS[token.text]
        elif token.text == "/" == follows.text:
            yield "a comment begins with `#`"
        elif token.kind == "string" and before.kind == "name" and not token.spaced:
            yield f"a text with values is a template string such as `${token.text}`, or a call of `sprintf`"
        elif token.kind == "-" and any(one.text == "package" for one in self.tokens[max(at - 2, 0) : at]):
            yield 'write `_` instead of `-` in the name of a package, or a part in brackets: `package a["b-c"]`'

    def module(self) -> Module:
        if not self.is_keyword("package"):
            self.fail("package expected" if self.token.kind != "eof" else "empty module")
        package = self.package()
        imports: list[Import] = []
        rules: list[Rule] = []
        while not self.is_sign("eof"):
            self.refuse_keyword_as_rule_name()
            if self.is_keyword("package"):
                self.fail("unexpected package")
            elif self.is_keyword("import"):
                imports.append(self.import_())
                self.terms.clear()  # a new keyword makes other terms of the same text
            else:
                rules.extend(self.rules())
                if len(rules) > self.limits.rules:
                    message = f"the module has more than {self.limits.rules:,} rules (limit `rules`)"
                    raise self.limit_error(message, rules[-1].start)
        if self.version:
            faults = tuple(fault for rule in rules for fault in self.faults_of(rule))
            if faults:
                raise RegoError(*faults)
        return Module(self.source, self.version, package, imports, rules, self.comments)

    def refuse_keyword_as_rule_name(self, *, default: bool = False) -> None:
        signs = _REFUSED_RULE_NAMES.get(self.token.text)
        if signs is None or self.token.kind != "name" or self.token.text not in self.keywords:
            return
        follows = self.following
        sign = follows.text if follows.kind != "name" or follows.text in self.keywords else ""
        if default or sign in signs:
            self.fail(f"{self.token.text} keyword cannot be used for rule name")

    def package(self) -> Ref:
        start = self.take().start
        path = self.path("package")
        if not isinstance(path.head, Var):
            self.fail("expected a name", at=path.start)
        for part in path.path:
            if not (isinstance(part, Scalar) and isinstance(part.value, str)):
                self.fail("expected a string in the path of a package", at=part.start)
        head = Scalar(path.head.start, path.head.end, path.head.name)
        return Ref(start, path.end, Var(start, start, "data"), [head, *path.path])

    def path(self, keyword: str) -> Ref:
        """Read the path of a package or an import; it may begin with a keyword."""
        if self.token.kind != "name":
            self.fail(f"unexpected {self.described()}: expected the path of the {keyword}")
        token = self.take()
        term = self.after(Var(token.start, token.end, token.text))
        if isinstance(term, Var):
            return Ref(term.start, term.end, term, [])
        if not isinstance(term, Ref):
            self.fail("expected path", at=term.start)
        return term

    def import_(self) -> Import:
        start, keywords = self.take().start, self.keywords
        self.keywords -= _SINCE_1 | {"and", "or"}
        try:
            path = self.path("import")
        finally:
            self.keywords = keywords
        for part in path.path:
            if not (isinstance(part, Scalar) and isinstance(part.value, str)):
                self.fail("expected a string in the path of an import", at=part.start)
        names = [path.head.name if isinstance(path.head, Var) else ""]
        names += [str(part.value) for part in path.path if isinstance(part, Scalar)]
        if names[0] not in (*_ROOTS, "future", "rego"):
            message = "unexpected import path, must begin with one of: data, future, input, rego"
            self.fail(f"{message}, got: {names[0]}", at=path.start)
        alias = self.alias()
        imported = Import(start, self.last_end, path, alias)
        if names[0] == "future":
            self.import_keywords(imported, names)
        elif names[0] == "rego":
            self.import_version(imported, names)
        elif alias is None and names[-1] in (_ALWAYS | (_SINCE_1 if self.version else frozenset())):
            hint = "import a different path or use an alias"
            self.fail(f"unexpected import path, must not end with a keyword, got: {names[-1]}", hint, at=path.start)
        return imported

    def alias(self) -> str | None:
        if not self.is_keyword("as"):
            return None
        self.take()
        if not self.is_name():
            self.fail(f"unexpected {self.described()}: expected var")
        if self.token.text in _ROOTS:
            self.fail(f"unexpected import alias, must not be a reserved name, got: {self.token.text}")
        return self.take().text

    def import_keywords(self, imported: Import, names: list[str]) -> None:
        known = _SINCE_1 | _SINCE_2
        if names[1:2] != ["keywords"]:
            self.fail("invalid import, must be `future.keywords`", at=imported.path.start)
        if imported.alias:
            self.fail("`future` imports cannot be aliased", at=imported.start)
        if len(names) > 2 and names[2] not in known:
            from difflib import get_close_matches  # for messages only

            close = [f"did you mean `{name}`?" for name in get_close_matches(names[2], known, 1)]
            self.fail(f"unexpected keyword, must be one of {', '.join(sorted(known))}", *close, at=imported.path.start)
        self.add_keywords(names[2:3] if len(names) > 2 else known)

    def import_version(self, imported: Import, names: list[str]) -> None:
        if names not in (["rego", "v1"], ["rego", "v2"]):
            self.fail("invalid import, must be `rego.v1` or `rego.v2`", at=imported.path.start)
        if imported.alias:
            self.fail("`rego` imports cannot be aliased", at=imported.start)
        self.add_keywords(_SINCE_1 if names[1] == "v1" else _SINCE_1 | _SINCE_2)
        self.version = max(self.version, int(names[1][1:]))

    def add_keywords(self, names: Iterable[str]) -> None:
        names = frozenset(names)
        self.keywords |= names | ({"in"} if "every" in names else frozenset())
        self.not_bodies |= "not" in names

    # Rules

    def rules(self) -> list[Rule]:
        start = self.token.start
        default = self.is_keyword("default")
        if default:
            self.take()
            if not self.begins_ref():
                self.refuse_keyword_as_rule_name(default=True)
        if not self.is_name() and not self.begins_ref():
            self.fail(f"unexpected {self.described()}: expected a rule, an import or the end of the file")
        head = self.head()
        if default:
            return [self.default(start, head)]
        if head.key is None and self.is_keyword("if"):
            pass
        elif head.key is None and head.value is None and head.args is None and len(head.ref.path) == 1:
            head = replace(head, ref=replace(head.ref, path=[]), key=head.ref.path[0])  # `p[x]` of version 0
        body = self.rule_body(head)
        if body is None:
            return [self.rule_without_body(start, head)]
        head, expressions = body
        rule = Rule(start, self.last_end, self.with_value(head), expressions)
        if self.is_keyword("else"):
            if any(not isinstance(part, Scalar | Number) for part in head.ref.path):
                self.fail("else keyword cannot be used on rules with variables in head")
            if head.key is not None:
                self.fail("else keyword cannot be used on multi-value rules")
            rule.otherwise = self.otherwise(head)
            rule.end = self.last_end
        return [rule, *self.more_bodies(rule)]

    def with_value(self, head: Head) -> Head:
        """Return the head of a rule that has a body: without a value it is `true`."""
        if head.key is not None or head.value is not None:
            return head
        return replace(head, value=Scalar(head.start, head.end, True), implied_value=True)

    def rule_body(self, head: Head) -> tuple[Head, Body] | None:
        """Read the body behind a head, if there is one."""
        if self.is_keyword("if"):
            self.take()
            head = replace(head, keywords=head.keywords | {"if"})
            braced = self.is_sign("{")
            at = self.at
            try:
                expression = self.literal()
                if not (braced and isinstance(expression.value, Set)):
                    return head, [expression]
            except _UnreadableError:
                if not braced:
                    raise
            self.at = at
        elif not self.is_sign("{"):
            return None
        return head, self.braced_body()

    def rule_without_body(self, start: int, head: Head) -> Rule:
        """Make a rule that is always so, such as `p := 1`."""
        if self.is_sign(";"):
            self.fail(
                "multiple expressions cannot be used for rule head", "a rule ends with its line, without `;`", at=start
            )
        if self.is_keyword("with"):
            self.fail("expressions using with keyword cannot be used for rule head", at=start)
        if head.value is None and head.key is None:
            if head.args is None and not head.ref.path:
                self.fail_without_body(head, start)
            if head.args == []:
                self.fail("rule argument list must take at least one argument", at=start)
        true = Expr(start, self.last_end, Scalar(start, self.last_end, True))
        rule = Rule(start, self.last_end, self.with_value(head), [true], implied_body=True)
        if not head.keywords and head.key is not None:
            rule.implied_body = False
        return rule

    def fail_without_body(self, head: Head, start: int) -> NoReturn:
        token = self.token
        if token.text in ("if", "contains") and token.kind == "name" and not token.newline:
            hint = f"`import future.keywords.{token.text}`, or `import rego.v1`"
            self.fail("var cannot be used for rule name", hint, at=start)
        name = head.ref.head.name if isinstance(head.ref.head, Var) else ""
        from difflib import get_close_matches  # for messages only

        close = get_close_matches(name, self.keywords, 1)
        self.fail("var cannot be used for rule name", *(f"did you mean `{word}`?" for word in close), at=start)

    def more_bodies(self, rule: Rule) -> Iterator[Rule]:
        """Read further bodies of the same head: `p { ... } { ... }`."""
        while self.is_sign("{"):
            if rule.otherwise:
                self.fail("expected else keyword")
            start = self.token.start
            body = self.braced_body()
            yield Rule(start, self.last_end, self.with_other_wildcards(rule.head), body)

    def with_other_wildcards(self, head: Head) -> Head:
        if not head.args:
            return head
        args = [self.wildcard(arg) if isinstance(arg, Var) and arg.is_wildcard else arg for arg in head.args]
        return replace(head, args=args)

    def wildcard(self, place: RegoToken | Var) -> Var:
        name, self.wildcards = f"${self.wildcards}", self.wildcards + 1
        return Var(place.start, place.end, name)

    def default(self, start: int, head: Head) -> Rule:
        if head.value is None:
            self.fail("illegal default rule (must have a value)", at=start)
        for kind, name in ((Ref, "ref"), (Var, "var"), (Call, "call")):
            if any(isinstance(term, kind) for term in _outside_closures(head.value)):
                self.fail(f"illegal default rule (value cannot contain {name})", at=start)
        if head.args is not None:
            names = [arg.name for arg in head.args if isinstance(arg, Var)]
            if len(names) < len(head.args):
                self.fail("illegal default rule (arguments cannot contain values)", at=start)
            if len(set(names)) < len(names):
                self.fail("illegal default rule (arguments cannot be repeated)", at=start)
        return Rule(start, self.last_end, head, [Expr(start, start, Scalar(start, start, True))], default=True)

    def otherwise(self, head: Head) -> Rule:
        first = last = self.alternative(head)
        while self.is_keyword("else") and not last.implied_body:
            last.otherwise = self.alternative(last.head)
            last = last.otherwise
        return first

    def alternative(self, head: Head) -> Rule:
        start = self.take().start
        head = self.with_other_wildcards(replace(head, start=start, keywords=frozenset()))
        if self.is_sign("{") or self.is_keyword("if"):
            head = replace(head, value=Scalar(start, self.last_end, True), implied_value=True)
        elif self.is_sign(":=", "="):
            assigned = self.take().kind == ":="
            head = replace(head, value=self.infix(), assigned=assigned, implied_value=False)
        else:
            self.fail(f"unexpected {self.described()}: expected else value term or rule body")
        if self.is_keyword("if"):
            self.take()
            head = replace(head, keywords=frozenset({"if"}))
            body, implied = (self.braced_body() if self.is_sign("{") else [self.literal()]), False
        elif self.is_sign("{"):
            body, implied = self.braced_body(), False
        else:
            body, implied = [Expr(start, start, Scalar(start, start, True))], True
        return Rule(start, self.last_end, head, body, implied_body=implied)

    def head(self) -> Head:
        token = self.take()
        name: Term = self.wildcard(token) if token.text == "_" else Var(token.start, token.end, token.text)
        # A blank may come before the arguments of a function, but not within a reference.
        term = self.parts_after(name) if self.is_sign("(", ".", "[") and self.may_follow_name() else name
        ref, args = self.ref_of_head(term)
        head = Head(token.start, self.last_end, ref, args)
        if self.is_keyword("contains"):
            if args is not None:
                self.fail("the contains keyword can only be used with multi-value rule definitions")
            self.take()
            head.key, head.keywords = self.infix(), frozenset({"contains"})
        elif self.is_sign(":=", "="):
            head.assigned = self.take().kind == ":="
            head.value = self.infix()
        head.end = self.last_end
        return head

    def may_follow_name(self) -> bool:
        return not self.token.newline

    def ref_of_head(self, term: Term) -> tuple[Ref, list[Term] | None]:
        ref = term.operator if isinstance(term, Call) else term
        if isinstance(ref, Var):
            ref = Ref(ref.start, ref.end, ref, [])
        if not isinstance(ref, Ref) or not isinstance(ref.head, Var):
            self.fail("expected rule head name", at=term.start)
        return ref, term.arguments if isinstance(term, Call) else None

    def faults_of(self, rule: Rule) -> Iterator[Diagnostic]:
        """Yield the faults of a rule under the additional requirements of version 1."""
        kind = "rule" if rule.head.args is None else "function"
        name = rule.head.ref.head.name if isinstance(rule.head.ref.head, Var) else ""
        one: Rule | None = rule
        while one:
            head = one.head
            messages = (
                (
                    f"{name} keyword cannot be used for rule name",
                    not head.ref.path and name in _ALWAYS | _SINCE_1,
                    "use another name",
                ),
                (
                    f"{kind} must have value assignment and/or body declaration",
                    one.implied_body and head.implied_value,
                    f"write a value, such as `{name} := true`, or a body",
                ),
                (
                    f"`if` keyword is required before {kind} body",
                    not one.implied_body and "if" not in head.keywords and not one.default,
                    f"write `{name} ... if {{ ... }}`; the module is read as Rego v1",
                ),
                (
                    "`contains` keyword is required for partial set rules",
                    head.key is not None and "contains" not in head.keywords,
                    f"write `{name} contains member if {{ ... }}`",
                ),
            )
            for message, is_fault, hint in messages:
                if is_fault:
                    yield Diagnostic(PARSE_ERROR, message, self.source, one.start, (hint,))
            one = one.otherwise

    # Bodies

    def braced_body(self) -> Body:
        opened = self.source.position(self.token.start)[0]
        self.expect("{")
        body = self.query("}", opened)
        self.take()
        return body

    def query(self, end: str, opened: int = 0) -> Body:
        """Read expressions up to a sign, which is left.

        Args:
            end: the sign.
            opened: the line of the sign that it belongs to, if it is known.
        """
        with self.nested():
            if self.is_sign(end):
                self.fail("found empty body")
            body = [self.literal()]
            while not self.is_sign(end):
                if self.is_sign(";"):
                    self.take()
                elif not self.token.newline or self.is_sign("eof"):
                    self.fail_between_expressions(end, opened)
                body.append(self.literal())
                if len(body) > self.limits.expressions:
                    message = f"a body has more than {self.limits.expressions:,} expressions (limit `expressions`)"
                    raise self.limit_error(message, body[-1].start)
            return body

    def fail_between_expressions(self, end: str, opened: int) -> NoReturn:
        hints = []
        if self.token.kind == "name" and self.token.text in ("in", "and", "or"):
            hints = [f"`import future.keywords.{self.token.text}`"]
        if self.is_sign("eof") and end in "}])":
            hints = [f"a `{end}` is missing{f' for the one that line {opened} opens' if opened else ''}"]
        self.fail(f"unexpected {self.described()}: expected \\n or ; or {end}", *hints)

    def literal(self) -> Expr:
        start = self.token.start
        expression = self.attempt(self.grouped) if self.logical_is_active else None
        if expression is None:
            expression = self.literal_of_version_1()
        expression.start, expression.end = start, self.last_end
        return expression

    @property
    def logical_is_active(self) -> bool:
        return bool({"and", "or"} & self.keywords) and self.is_sign("{", "(")

    def grouped(self) -> Expr:
        """Read an expression that begins with a group: `{ body } and ...` or `(a or b)`."""
        start = self.token.start
        body, explicit = self.operand(speculative=True)
        if self.is_keyword("and", "or"):
            return self.with_modifiers(self.logical(body, explicit, start))
        if explicit or not isinstance(body[0].value, Logical | Not):
            self.fail("expected a group")
        return self.with_modifiers(body[0])

    def literal_of_version_1(self) -> Expr:
        start = self.token.start
        if self.begins_ref():
            if self.at not in self.leading:
                self.leading.add(self.at)
                self.terms.pop(self.at, None)
            return self.expression(start, negated=False)
        negated = self.is_keyword("not")
        if negated:
            self.take()
        if negated and self.not_bodies and self.is_sign("{"):
            expression = Expr(start, start, Not(start, start, self.braced_body(), explicit=True))
            return self.logical_or_modifiers(expression, start)
        for word, read in (("some", self.some), ("every", self.every)):
            if self.is_keyword(word):
                if negated:
                    self.fail(f"illegal negation of '{word}'")
                return self.with_modifiers(read())
        return self.expression(start, negated=negated)

    def expression(self, start: int, *, negated: bool) -> Expr:
        if negated and self.not_bodies and self.is_sign("(") and {"and", "or"} & self.keywords:
            body = self.attempt(self.group)
            if body is not None:
                inner, explicit = body
                return self.logical_or_modifiers(Expr(start, start, Not(start, start, inner, explicit)), start)
        expression = Expr(start, start, self.assignment())
        modifier = self.token.start
        withs = self.modifiers()
        if negated and self.not_bodies:
            expression.end = self.last_end
            expression = Expr(start, start, Not(start, self.last_end, [expression], explicit=False))
        else:
            expression.negated = negated
        expression.withs = withs
        if self.is_keyword("and", "or"):
            if withs:
                hint = "put the operand in parentheses, or move `with` behind the whole expression"
                self.fail(f"`with` modifier is not allowed on operand of `{self.token.text}`", hint, at=modifier)
            return self.with_modifiers(self.logical([expression], False, start))
        return expression

    def logical_or_modifiers(self, expression: Expr, start: int) -> Expr:
        if self.is_keyword("and", "or"):
            expression = self.logical([expression], False, start)
        return self.with_modifiers(expression)

    def assignment(self) -> Term:
        left = self.infix()
        if not self.is_sign(":=", "="):
            return left
        token = self.take()
        return self.call({":=": "assign", "=": "eq"}[token.kind], token, left, self.infix())

    def with_modifiers(self, expression: Expr) -> Expr:
        expression.withs += self.modifiers()
        return expression

    def modifiers(self) -> list[With]:
        found = []
        while self.is_keyword("with"):
            start = self.take().start
            if not self.is_name():
                self.fail(f"unexpected {self.described()}: expected ident")
            target = self.term()
            if isinstance(target, Var):
                target = Ref(target.start, target.end, target, [])
            if not isinstance(target, Ref):
                self.fail("expected with target path", at=target.start)
            if not self.is_keyword("as"):
                self.fail(f"unexpected {self.described()}: expected as keyword")
            self.take()
            found.append(With(start, self.last_end, target, self.infix()))
        return found

    def some(self) -> Expr:
        start = self.take().start
        at = self.at
        term = self.attempt(self.infix)
        if isinstance(term, Call):
            if _name_of(term.operator) not in ("internal.member_2", "internal.member_3"):
                self.fail("expected `x in xs` or `x, y in xs` expression")
            return Expr(start, self.last_end, SomeIn(start, self.last_end, term))
        self.at = at
        names = []
        while True:
            if not self.is_name():
                self.fail(f"unexpected {self.described()}: expected var")
            token = self.take()
            names.append(self.wildcard(token) if token.text == "_" else Var(token.start, token.end, token.text))
            if not self.is_sign(","):
                if self.token.text == "in" and self.token.kind == "name":
                    self.fail("unexpected name `in`", "`import future.keywords.in` for `some x in xs` expressions")
                return Expr(start, self.last_end, Some(start, self.last_end, names))
            self.take()

    def every(self) -> Expr:
        start = self.take().start
        term = self.infix()
        name = _name_of(term.operator) if isinstance(term, Call) else ""
        if not isinstance(term, Call) or name not in ("internal.member_2", "internal.member_3"):
            self.fail("expected `x[, y] in xs { ... }` expression", at=term.start)
        *keys, value, domain = term.arguments
        key = keys[0] if keys else None
        if key is not None and not isinstance(key, Var):
            self.fail("expected key to be a variable", at=key.start)
        if not isinstance(value, Var):
            self.fail("expected value to be a variable", at=value.start)
        if not self.is_sign("{"):
            self.fail(
                f"unexpected {self.described()}: missing body",
                "write its conditions in braces: `every x in xs { ... }`",
            )
        body = self.braced_body()
        return Expr(start, self.last_end, Every(start, self.last_end, key, value, domain, body))

    # `and`, `or` and `not` of bodies

    def logical(self, left: Body, explicit: bool, start: int) -> Expr:
        """Read a chain of `and` and `or` behind its first operand; `and` binds tighter."""
        with self.nested():
            if self.is_keyword("and"):
                left, explicit = [self.conjunction(left, explicit, start)], False
            while self.is_keyword("or"):
                self.take()
                right_start = self.token.start
                right, right_explicit = self.operand()
                if self.is_keyword("and"):
                    right, right_explicit = [self.conjunction(right, right_explicit, right_start)], False
                node = Logical(start, self.last_end, "or", left, right, (explicit, right_explicit))
                left, explicit = [Expr(start, self.last_end, node)], False
            return left[0]

    def conjunction(self, left: Body, explicit: bool, start: int) -> Expr:
        while self.is_keyword("and"):
            self.take()
            right, right_explicit = self.operand()
            node = Logical(start, self.last_end, "and", left, right, (explicit, right_explicit))
            left, explicit = [Expr(start, self.last_end, node)], False
        return left[0]

    def operand(self, *, speculative: bool = False) -> tuple[Body, bool]:
        """Read one operand, and whether it is a body in braces."""
        start = self.token.start
        if self.is_sign("{"):
            return self.braced_body(), True
        negated = self.is_keyword("not")
        if negated:
            self.take()
            if self.not_bodies and self.is_sign("{"):
                return [Expr(start, self.last_end, Not(start, self.last_end, self.braced_body(), True))], False
        if self.is_sign("(") and (not negated or self.not_bodies):
            group = self.attempt(self.group)
            if group is not None:
                if not negated:
                    return group
                return [Expr(start, self.last_end, Not(start, self.last_end, *group))], False
        if speculative and not negated:
            self.fail("expected a group")
        expression = Expr(start, self.last_end, self.assignment())
        if negated and self.not_bodies:
            expression = Expr(start, self.last_end, Not(start, self.last_end, [expression], explicit=False))
        else:
            expression.negated = negated
        return [expression], False

    def group(self) -> tuple[Body, bool]:
        """Read a parenthesized operand: a chain, a negation, another group or an operand with modifiers."""
        with self.nested():
            start = self.expect("(").start
            body, explicit = self.operand()
            if self.is_keyword("and", "or"):
                body, explicit = [self.with_modifiers(self.logical(body, explicit, start))], False
            elif self.is_keyword("with") and not explicit:
                body[0].withs = self.modifiers()
            elif explicit or not (body[0].negated or isinstance(body[0].value, Logical | Not)):
                self.fail("expected a group")
            self.expect(")")
            return body, explicit

    # Terms

    def infix(self, *, in_list: bool = False) -> Term:
        """Read a term with operators; a list has no `key, value in collection` of its own."""
        with self.nested():
            left = self.level(0)
            if not in_list and self.is_sign(","):
                member = self.attempt(lambda: self.member_with_key(left))
                left = member or left
            while self.is_keyword("in"):
                left = self.call("internal.member_2", self.take(), left, self.level(0))
            return left

    def member_with_key(self, key: Term) -> Term:
        self.take()
        value = self.level(0)
        if not self.is_keyword("in"):
            self.fail("expected in")
        return self.call("internal.member_3", self.take(), key, value, self.level(0))

    def level(self, number: int) -> Term:
        if number == len(_LEVELS):
            return self.term()
        left = self.level(number + 1)
        count = 0
        while name := _LEVELS[number].get(self.token.kind):
            count += 1
            self.limit_chain(count, "operators")
            left = self.call(name, self.take(), left, self.level(number + 1))
        return left

    def call(self, name: str, place: RegoToken, *arguments: Term) -> Call:
        head, *path = name.split(".")
        parts: list[Term] = [Scalar(place.start, place.end, part) for part in path]
        operator = Ref(place.start, place.end, Var(place.start, place.end, head), parts)
        return Call(arguments[0].start, self.last_end, operator, list(arguments))

    def term(self) -> Term:
        """Read a term without operators; what was read at a place before is not read again."""
        spend()
        at = self.at
        known = self.terms.get(at)
        if isinstance(known, _UnreadableError):
            self.at = known.at
            raise known
        if known is not None:
            term, self.at = known
            return term
        try:
            with self.nested():
                term = self.new_term()
        except _UnreadableError as failure:
            self.terms[at] = failure
            raise
        self.terms[at] = term, self.at
        return term

    def new_term(self) -> Term:
        token = self.token
        if token.kind in ("string", "raw string"):
            return self.after(Scalar(token.start, token.end, self.string(self.take())))
        if token.kind in ("template", "template end"):
            return self.after(self.template())
        if token.kind in ("number", "."):
            return self.after(self.number(""))
        if token.kind == "-":
            return self.negative()
        if token.kind in ("[", "{", "("):
            return self.after({"[": self.array, "{": self.set_or_object, "(": self.parenthesized}[token.kind]())
        is_call = token.text in ("and", "or") and self.following.kind == "(" and not self.following.spaced
        if self.is_name() or self.at in self.leading or (token.kind == "name" and is_call):
            return self.after(self.var())
        if token.kind != "name" or token.text not in _CONSTANTS:
            self.fail(f"unexpected {self.described()}")
        self.take()
        return self.after(Scalar(token.start, token.end, _CONSTANTS[token.text]))

    def var(self) -> Var:
        token = self.take()
        return self.wildcard(token) if token.text == "_" else Var(token.start, token.end, token.text)

    def negative(self) -> Term:
        """Read a negative number, or `-x` as `0 - x`."""
        token = self.take()
        if self.is_name():
            operand = self.after(self.var())
            return self.call("minus", token, Number(token.start, token.end, "0"), operand)
        return self.after(self.number("-"))

    def number(self, prefix: str) -> Number:
        start = self.token.start - len(prefix)
        if self.is_sign("."):
            self.take()
            prefix += "."
        if self.token.kind != "number":
            self.fail(f"unexpected {self.described()}: expected number")
        text = self.token.text
        if len(text) > 1 and text[0] == "0" and text[1].isdigit() and not prefix.endswith("."):
            self.fail("expected number without leading zero")
        return Number(start, self.take().end, prefix + text)

    def string(self, token: RegoToken) -> str:
        text = token.text[1:-1]
        if token.kind == "raw string" or "\\" not in text:
            return text
        return self.unescaped(token.text, token)

    def unescaped(self, text: str, token: RegoToken) -> str:
        try:
            value = json.loads(text, strict=False)
        except ValueError:
            self.fail(f"illegal string literal: {token.text}", at=token.start)
        # Go replaces half of a surrogate pair by U+FFFD.
        return str(value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    def template(self) -> Template:
        start, parts = self.token.start, list[Scalar | Number | Expr]()
        while True:
            token = self.take()
            quote, text = token.text[0], token.text[1:].replace("\\{", "{")
            if quote == '"' and "\\" in text:
                text = self.unescaped(f'"{text}"', token)
            if text:
                parts.append(Scalar(token.start, token.end, text))
            if token.kind == "template end":
                return Template(start, token.end, parts)
            comments = self.comments_before(self.at)
            expression = self.literal()
            self.check_template(expression)
            plain = isinstance(expression.value, Scalar | Number) and not expression.withs and not comments
            parts.append(expression.value if plain else expression)  # type: ignore[arg-type]  # just tested
            self.expect("}")

    def comments_before(self, at: int) -> bool:
        start, end = self.tokens[at - 1].end, self.tokens[at].start
        return any(start <= comment.start < end for comment in self.comments)

    def check_template(self, expression: Expr) -> None:
        value = expression.value
        name = _name_of(value.operator) if isinstance(value, Call) else ""
        faults = {
            "negation ('not')": expression.negated,
            "unification ('=')": name == "eq",
            "assignment (':=')": name == "assign",
            "'every'": isinstance(value, Every),
            "'some'": isinstance(value, Some | SomeIn),
        }
        for what, is_fault in faults.items():
            if is_fault:
                self.fail(f"unexpected {what} in template-string expression", at=expression.start)

    def parenthesized(self) -> Term:
        self.take()
        term = self.infix()
        if not self.is_sign(")"):
            self.fail("non-terminated expression")
        self.take()
        return term

    def after(self, term: Term) -> Term:
        """Read what is written on to a term without a blank: `.a`, `[b]`, `(c)`."""
        if self.is_sign(".", "[", "(") and not self.token.spaced:
            return self.parts_after(term)
        if isinstance(term, Var) and term.name in _ROOTS:
            return Ref(term.start, term.end, term, [])
        return term

    def parts_after(self, head: Term) -> Term:
        if isinstance(head, Scalar | Number | Template):
            self.fail("illegal ref (head cannot be a scalar)", at=head.start)
        while self.is_sign(".", "[", "(") and (head is not None):
            path: list[Term] = []
            while self.is_sign(".", "[") and (path == [] or not self.token.spaced):
                path.append(self.ref_part())
                self.limit_chain(len(path), "parts of a reference")
            term: Term = Ref(head.start, self.last_end, head, path) if path else head
            if not self.is_sign("(") or (path and self.token.spaced):
                return term
            head = self.arguments(term)
            if self.token.spaced or not self.is_sign(".", "["):
                return head
        return head

    def ref_part(self) -> Term:
        if self.take().kind == "[":
            part = self.infix()
            if not self.is_sign("]"):
                self.fail(f"unexpected {self.described()}: expected `]`")
            self.take()
            return part
        if self.token.kind != "name" or self.token.spaced:
            self.fail(f"unexpected {self.described()}: expected identifier")
        token = self.take()
        return Scalar(token.start, token.end, token.text)

    def arguments(self, operator: Term) -> Term:
        if isinstance(operator, Var):
            operator = Ref(operator.start, operator.end, operator, [])
        if not isinstance(operator, Ref):
            self.fail("expected the name of a function", at=operator.start)
        self.take()
        arguments = self.terms_until(")")
        end = self.take().end
        if not arguments and _name_of(operator) == "set":
            return Set(operator.start, end, [])
        return Call(operator.start, end, operator, arguments)

    def terms_until(self, end: str, first: list[Term] | None = None) -> list[Term]:
        """Read terms with commas up to a sign, which is left; the last may have a comma behind it."""
        terms = first or []
        while not self.is_sign(end):
            terms.append(self.infix(in_list=True))
            if self.is_sign(","):
                self.take()
            elif not self.is_sign(end):
                self.fail(f"unexpected {self.described()}: expected `,` or `{end}`")
        return terms

    def comprehension_body(self, end: str) -> Body | None:
        """Read the body of a comprehension; None where the `|` turns out to be an operator in a list."""
        try:
            self.take()
            return self.query(end)
        except _UnreadableError:
            if not self.is_sign(","):
                raise
            return None

    def array(self) -> Term:
        start = self.take().start
        if self.is_sign("]"):
            return Array(start, self.take().end, [])
        comma = self.is_sign(",")
        if comma:
            self.take()
        at, depth = self.at, self.depth
        head = self.term()
        if self.is_sign("|") and not comma:
            body = self.comprehension_body("]")
            if body is not None:
                return ArrayComprehension(start, self.take().end, head, body)
        self.at, self.depth = at, depth
        items = self.terms_until("]")
        return Array(start, self.take().end, items)

    def set_or_object(self) -> Term:
        start = self.take().start
        if self.is_sign("}"):
            return Object(start, self.take().end, [])
        comma = self.is_sign(",")
        if comma:
            self.take()
        at, depth = self.at, self.depth
        head = self.term()
        if self.is_sign("|") and not comma:
            body = self.comprehension_body("}")
            if body is not None:
                return SetComprehension(start, self.take().end, head, body)
        if self.is_sign(":"):
            return self.object(start, head, comma=comma)
        self.at, self.depth = at, depth
        first = self.infix(in_list=True)
        if self.is_sign(":"):
            return self.object(start, first, comma=comma)
        if self.is_sign(","):
            self.take()
        elif not self.is_sign("}"):
            self.fail(f"unexpected {self.described()}: non-terminated set")
        items = self.terms_until("}", [first])
        return Set(start, self.take().end, items)

    def object(self, start: int, key: Term, *, comma: bool) -> Term:
        self.take()
        at, depth = self.at, self.depth
        value = self.term()
        if self.is_sign("|") and not comma:
            body = self.attempt(lambda: self.comprehension_body("}"))
            if body is not None:
                return ObjectComprehension(start, self.take().end, key, value, body)
        self.at, self.depth = at, depth
        pairs = [(key, self.infix(in_list=True))]
        while self.is_sign(","):
            self.take()
            if self.is_sign("}"):
                break
            key = self.infix(in_list=True)
            if not self.is_sign(":"):
                self.fail(f"unexpected {self.described()}: expected `:`")
            self.take()
            pairs.append((key, self.infix(in_list=True)))
        if not self.is_sign("}"):
            self.fail(f"unexpected {self.described()}: expected `,` or `}}`", "separate the members with `,`")
        return Object(start, self.take().end, pairs)


def _name_of(operator: Ref) -> str:
    """Return the dotted name of a function; empty if the operator does not name one."""
    parts = [operator.head.name if isinstance(operator.head, Var) else ""]
    parts += [str(part.value) if isinstance(part, Scalar) else "" for part in operator.path]
    return ".".join(parts) if all(parts) else ""


def _outside_closures(term: Term) -> Iterator[Term]:
    """Yield a term and the terms in it, except those in comprehensions."""
    yield term
    inner: list[Term] = []
    if isinstance(term, Array | Set):
        inner = term.items
    elif isinstance(term, Object):
        inner = list(chain.from_iterable(term.items))
    for one in inner:
        yield from _outside_closures(one)
