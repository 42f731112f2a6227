"""Infer the types of variables and rules, and find what can never be, as OPA's type checker does.

It follows `v1/ast/check.go` and `env.go` of OPA: `_unify` is `unify1` there, `_unify_both` is `unify2`. Like OPA, it
checks only the references inside of bodies of `every`, `not`, `and` and `or`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from policyeng.rego import types
from policyeng.rego.budget import compile_at
from policyeng.rego.builtins import UnsupportedError, signatures
from policyeng.rego.checker import Checker
from policyeng.rego.errors import Diagnostic, ModuleText
from policyeng.rego.resolver import TYPE_ERROR, Branch, Definition, operator_name
from policyeng.rego.syntax import (
    Array,
    ArrayComprehension,
    Body,
    Call,
    Every,
    Expr,
    Logical,
    Not,
    Number,
    Object,
    ObjectComprehension,
    Ref,
    Scalar,
    Set,
    SetComprehension,
    Template,
    Term,
    Var,
    constant_names,
    root_name,
    walk_terms,
)
from policyeng.rego.tree import DataNode, path_text
from policyeng.rego.types import (
    ANY,
    BOOLEAN,
    NULL,
    NUMBER,
    STRING,
    UNKNOWN,
    Function,
    Key,
    Tree,
    Type,
    Union,
    is_unknown,
)
from policyeng.rego.values import sort_key

_ROOTS = frozenset(("data", "input"))
_DATA = (STRING.rank, "data")
_KINDS = {types.ObjectType: "objects", types.ArrayType: "arrays", types.SetType: "sets"}


_Visit = tuple[Definition, Iterator[tuple[Definition, tuple[str, ...]]]]


def _place(found: tuple[Definition, tuple[str, ...]]) -> tuple[str, int]:
    return found[0].source.file, found[0].start


def check_types(root: DataNode, checker: Checker) -> list[Diagnostic]:
    """Return what is wrong with the types of rules; the types go to `checker.types`.

    Args:
        root: the rules, with ordered bodies.
        checker: it has checked them, and found no recursion.
    """
    checker.types = Tree()
    found = _TypeChecker(root, checker, checker.types)
    found.check_rules()
    return sorted(dict.fromkeys(found.faults), key=lambda fault: (fault.source.file, fault.offset))


def check_query_types(root: DataNode, checker: Checker, source: ModuleText, body: Body) -> list[Diagnostic]:
    """Return what is wrong with the types of an ordered query, after `check_types`."""
    found = _TypeChecker(root, checker, checker.types or Tree())
    # A query may compare two values; in a rule where they are never equal, OPA takes it for a mistake.
    found.equalities = frozenset(("eq",))
    found.source = source
    found.check_body(_TypeScope(found.scope), body)
    return list(dict.fromkeys(found.faults))


class _TypeScope:
    """The types that are known in a body.

    Attributes:
        outer: where it is.
        tree: of documents that have other types here.
    """

    __slots__ = ("outer", "tree", "variables")

    def __init__(
        self, outer: _TypeScope | None, tree: Tree | None = None, variables: dict[str, Type] | None = None
    ) -> None:
        self.outer = outer
        self.tree = tree
        self.variables: dict[str, Type] = {} if variables is None else variables

    def find(self, name: str) -> Type:
        scope: _TypeScope | None = self
        while scope is not None:
            if name in scope.variables:
                return scope.variables[name]
            scope = scope.outer
        return UNKNOWN

    def put(self, name: str, found: Type) -> None:
        if found != UNKNOWN:
            self.variables[name] = types.bounded(found)

    def documents(self, name: str) -> Iterable[tuple[_TypeScope, Tree]]:
        """Yield what is known about a root document, from the inside to the outside."""
        scope: _TypeScope | None = self
        while scope is not None:
            if scope.tree is not None and (tree := scope.tree.children.get((STRING.rank, name))) is not None:
                yield scope, tree
            scope = scope.outer


class _TypeChecker:
    def __init__(self, root: DataNode, checker: Checker, tree: Tree) -> None:
        self.root = root
        self.checker = checker
        self.scope = _TypeScope(None, tree)
        self.tree = tree
        self.source = ModuleText("", "")
        self.faults: list[Diagnostic] = []
        self.equalities = frozenset(("eq", "equal"))
        self.closures: dict[int, Type] = {}
        self.dependents: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
        self.count = 0

    def fail(self, at: int, message: str, *hints: str) -> None:
        self.faults.append(Diagnostic(TYPE_ERROR, message, self.source, at, hints))

    # Rules.

    def check_rules(self) -> None:
        for definition in self.ordered_definitions():
            self.source = definition.source
            compile_at(definition.source, definition.start)
            for branch in definition.branches:
                try:
                    self.check_branch(definition, branch)
                except RecursionError:
                    self.fail(branch.start, "the type of this rule, or of one that it reads, is nested too deeply")
                    return

    def ordered_definitions(self) -> Iterator[Definition]:
        """Yield each definition after those of the rules that it reads, and otherwise by file and place, as OPA.

        What is not checked yet may have any type, so the order decides what is refused.
        """
        own = {node.path: [*node.definitions, *node.dynamic] for node in self.root.below()}
        visited: set[int] = set()
        unvisited = dict(self.checker.reads)

        def visit(definition: Definition, path: tuple[str, ...]) -> _Visit:
            visited.add(id(definition))
            # What one of a path reads, the others read as well: the first one visits it all.
            reads = unvisited.pop(path, set()) - {path}
            return definition, iter(sorted(((each, read) for read in reads for each in own.get(read, ())), key=_place))

        for first in sorted(((each, path) for path, found in own.items() for each in found), key=_place):
            stack = [visit(*first)] if id(first[0]) not in visited else []
            while stack:
                rest = stack[-1][1]
                following = next((each for each in rest if id(each[0]) not in visited), None)
                if following is not None:
                    stack.append(visit(*following))
                else:
                    yield stack.pop()[0]

    def check_branch(self, definition: Definition, branch: Branch) -> None:
        before = len(self.faults)
        scope = _TypeScope(self.scope, self.tree_of(branch) if branch.schemas else None)
        self.check_body(scope, branch.body)
        key = None if definition.key is None else self.capture(scope, definition.key)
        value = None if branch.value is None else self.capture(scope, branch.value)
        ground: list[Key] = [_DATA]
        for part in definition.path:
            if (constant := types.constant_key(part)) is None:
                break
            ground.append(constant)
        is_ground = len(ground) > len(definition.path)
        if len(self.faults) > before:
            # What reads the rule is not wrong as well.
            if is_ground:
                self.tree.put(ground, ANY)
            return
        if definition.arguments is not None:
            for term in (part for argument in definition.arguments for part in walk_terms(argument)):
                if isinstance(term, Var) and scope.find(term.name) == UNKNOWN:
                    scope.put(term.name, ANY)
        found = UNKNOWN if value is None else self.type_of(scope, value)
        if definition.arguments is not None:
            arguments = [self.type_of(scope, argument) for argument in definition.arguments]
            self.tree.insert(tuple(ground), types.function(arguments, found))
            return
        if key is not None and (member := self.type_of(scope, key)) != UNKNOWN:
            found = types.set_(member)
        for part in reversed(definition.path[len(ground) - 1 :]):
            part_type = self.type_of(scope, part)
            found = UNKNOWN if UNKNOWN in (found, part_type) else types.object_((), (part_type, found))
        if found != UNKNOWN:
            self.tree.insert(tuple(ground), found)

    def tree_of(self, branch: Branch) -> Tree:
        """Return the types that schemas in annotations give to documents in a body of a rule."""
        from policyeng.rego.builtins.schemas import SchemaError
        from policyeng.rego.schema_types import put_schema  # few modules have schemas

        tree = Tree()
        for schema in branch.schemas:
            path = [sort_key(part) for part in schema["path"]]
            try:
                put_schema(tree, path, schema["definition"])
            except (SchemaError, UnsupportedError) as error:
                self.fail(branch.start, f"unable to read the schema of {schema['path'][0]}: {error}")
        return tree

    # Bodies.

    def check_body(self, scope: _TypeScope, body: Body) -> None:
        for expression in body:
            self.check_expression(scope, expression)

    def check_expression(self, scope: _TypeScope, expression: Expr) -> None:
        if expression.withs:
            scope = self.replacing(scope, expression)
        value = expression.value
        match value:
            case Call():
                self.check_call(scope, expression, value)
            case Every() | Not() | Logical():
                if isinstance(value, Every):
                    self._unify(scope, value.domain, ANY)
                self.check_inside(scope, expression)
            case _:
                self.infer(scope, self.settle(scope, value))  # type: ignore[arg-type]  # no other node is left

    def check_inside(self, scope: _TypeScope, expression: Expr) -> None:
        """Check the references and comprehensions of an expression and of the bodies inside of it."""
        value = expression.value
        bodies: list[Body] = []
        terms: list[Term] = []
        match value:
            case Every():
                bodies = [value.body]
            case Not():
                bodies = [value.body]
            case Logical():
                bodies = [value.left, value.right]
            case Call():
                terms = value.arguments
            case _:
                terms = [value]  # type: ignore[list-item]  # no other node is left
        if isinstance(value, Every | Logical):
            terms = [part for modifier in expression.withs for part in (modifier.target, modifier.value)]
        for term in terms:
            for found in walk_terms(term):
                self.infer(scope, found)
        for body in bodies:
            for inner in body:
                self.check_inside(scope, inner)

    def check_call(self, scope: _TypeScope, expression: Expr, call: Call) -> None:
        name = operator_name(call)
        if name == "print":
            return
        before = len(self.faults)
        if name in self.equalities and len(call.arguments) == 2:
            left, right = (self.settle(scope, term) for term in call.arguments)
            self.infer(scope, left)
            self.infer(scope, right)
            left_type, right_type = self.type_of(scope, left), self.type_of(scope, right)
            if not self._unify_both(scope, left, left_type, right, right_type):
                self._mismatch(expression, before, left_type, right_type)
            return
        arguments = [self.capture(scope, term) for term in call.arguments]
        if name in {"internal.member_2", "internal.member_3"} and not self._is_member(
            scope, expression, before, arguments[: int(name[-1])]
        ):
            return
        signature = self.type_of_ref(scope, call.operator) if name is None else _builtin(name)
        if name is None and not isinstance(signature, Function) and signature != ANY:
            # A rule may be called without arguments as long as nothing is known about its value.
            self.fail(call.start, f"undefined function {path_text(call.operator.path)}")
        elif isinstance(signature, Function):
            self._check_arguments(scope, expression, call, before, arguments, signature)

    def _check_arguments(
        self, scope: _TypeScope, expression: Expr, call: Call, before: int, arguments: list[Term], signature: Function
    ) -> None:
        wanted = [*signature.arguments, ANY if signature.result == UNKNOWN else signature.result]
        given = [self.type_of(scope, argument) for argument in arguments]
        for argument, found, want in zip(arguments, given, wanted, strict=False):
            if not is_unknown(found) and not types.may_equal(found, want):
                break
            if not self._unify(scope, argument, want):
                given = [self.type_of(scope, argument) for argument in arguments]
                break
        else:
            return
        if len(self.faults) > before and any(map(is_unknown, given)):
            return
        count = len(signature.arguments)
        name = operator_name(call) or path_text(call.operator.path)
        if len(given) > count and (given[count] == UNKNOWN or types.may_equal(given[count], wanted[count])):
            # The result is right: what is wrong is written between the parentheses.
            given, wanted = given[:count], wanted[:count]
        hints = [f"have: {_texts(given)}", f"want: {_texts(wanted[: len(given)])}"]
        if name == "plus" and STRING in given:
            hints.append("join texts with `concat` or in a template string")
        self.fail(expression.start, f"{name}: invalid argument(s)", *hints)

    def _is_member(self, scope: _TypeScope, expression: Expr, before: int, arguments: list[Term]) -> bool:
        """Return whether `x in xs` or `k, x in xs` may be; a value that has no members is not a mistake."""
        collection = self.type_of(scope, arguments[-1])
        wanted = [types.keys(collection), types.values(collection)]
        if wanted[1] == UNKNOWN:
            return True
        for term, want in zip(arguments[:-1], wanted[3 - len(arguments) :], strict=True):
            if is_unknown(want):
                continue
            have = self.type_of(scope, term)
            possible = is_unknown(have) or types.may_equal(have, want)
            if not possible or not self._unify(scope, term, want):
                self._mismatch(expression, before, have, want)
                return False
        return True

    def _mismatch(self, expression: Expr, before: int, left: Type, right: Type) -> None:
        if len(self.faults) > before and (is_unknown(left) or is_unknown(right)):
            return
        hints = [f"left: {types.text(left)}", f"right: {types.text(right)}"]
        if type(left) is type(right) and type(left) in _KINDS:
            hints.append(f"both are {_KINDS[type(left)]} but their types differ, so they can never be equal")
        self.fail(expression.start, "match error", *hints)

    # Modifiers.

    def replacing(self, scope: _TypeScope, expression: Expr) -> _TypeScope:
        """Return the scope of an expression, where what its `with` replaces, and the rules that read it, differ."""
        inner = scope
        replaced: list[tuple[list[Key], Type]] = []
        for modifier in expression.withs:
            target, value = modifier.target, modifier.value
            if isinstance(value, Call):
                value = value.operator
            old = self.type_of_ref(scope, target)
            new = self.type_of_ref(scope, value) if isinstance(value, Ref) else UNKNOWN
            if not isinstance(new, Function):
                new = self.type_of(scope, self.capture(scope, value))
            if target.head == Var(0, 0, "data"):
                path = constant_names(target.path)
                tree = Tree()
                for reader in self.readers(path) - ({path} if isinstance(old, Function) else set()):
                    tree.put([_DATA, *((STRING.rank, name) for name in reader)], ANY)
                inner = _TypeScope(inner, tree, scope.variables)
            if isinstance(old, Function):
                if isinstance(new, Function) and not types.may_equal(old, new):
                    name = ".".join([root_name(target), *constant_names(target.path)])
                    hints = [f"have: {_texts(new.arguments)}", f"want: {_texts(old.arguments)}"]
                    self.fail(modifier.start, f"{name}: arity mismatch", *hints)
                continue
            ground = [(STRING.rank, root_name(target))]
            for part in target.path:
                if (key := types.constant_key(part)) is None:
                    break
                ground.append(key)
            is_ground = len(ground) > len(target.path)
            both = types.either(old, new) if is_ground and UNKNOWN not in (old, new) else UNKNOWN
            replaced.append((ground, ANY if both == UNKNOWN else both))
        if replaced:
            # The innermost, so that a replaced document has this type whatever else is replaced.
            tree = Tree()
            for path_keys, found in replaced:
                tree.put(path_keys, found)
            inner = _TypeScope(inner, tree, scope.variables)
        return inner

    def readers(self, path: tuple[str, ...]) -> set[tuple[str, ...]]:
        """Return the paths of the rules at a path, around and below it, and of all that read these."""
        if not self.dependents:
            for reader, read in self.checker.reads.items():
                for name in read:
                    self.dependents.setdefault(name, set()).add(reader)
        nodes = [self.root.find(path[:count]) for count in range(len(path))]
        around = [node for node in nodes if node is not None]
        last = self.root.find(path)
        below = [] if last is None else list(last.below())
        rest = [node.path for node in [*around, *below] if node.definitions or node.dynamic]
        found = set(rest)
        while rest:
            more = self.dependents.get(rest.pop(), set()) - found
            found |= more
            rest += more
        return found

    # Terms that OPA evaluates before the expression they are in.

    def capture(self, scope: _TypeScope, term: Term) -> Term:
        """Check the references and comprehensions in a term; return it with variables in their places."""
        match term:
            case Ref() | ArrayComprehension() | SetComprehension() | ObjectComprehension():
                settled = self.settle(scope, term)
                before = len(self.faults)
                found = self.infer(scope, settled)
                if found == UNKNOWN and len(self.faults) == before:
                    self.fail(term.start, "match error", "left: ???", "right: ???")
                self.count += 1
                variable = Var(term.start, term.end, f"@@{self.count}")
                scope.put(variable.name, found)
                return variable
            case Array() | Set():
                items = [self.capture(scope, item) for item in term.items]
                return type(term)(term.start, term.end, items)
            case Object():
                pairs = [(self.capture(scope, key), self.capture(scope, value)) for key, value in term.items]
                return Object(term.start, term.end, pairs)
        return term

    def settle(self, scope: _TypeScope, term: Term) -> Term:
        """Capture the parts of a term, but not the term itself if it is a reference or a comprehension."""
        match term:
            case Ref():
                return Ref(term.start, term.end, term.head, [self.capture(scope, part) for part in term.path])
            case ArrayComprehension() | SetComprehension() | ObjectComprehension():
                return term
        return self.capture(scope, term)

    def infer(self, scope: _TypeScope, term: Term) -> Type:
        """Check a reference or a comprehension and return its type; other terms have nothing to check."""
        match term:
            case Ref():
                return self.check_ref(scope, term)
            case ArrayComprehension() | SetComprehension() | ObjectComprehension():
                inner = _TypeScope(scope)
                before = len(self.faults)
                self.check_body(inner, term.body)
                if len(self.faults) > before:
                    found: Type = UNKNOWN
                elif isinstance(term, ObjectComprehension):
                    found = types.object_((), (self.type_of(inner, term.key), self.type_of(inner, term.value)))
                elif isinstance(term, ArrayComprehension):
                    found = types.array((), self.type_of(inner, term.term))
                else:
                    found = types.set_(self.type_of(inner, term.term))
                self.closures[id(term)] = found
                return found
        return UNKNOWN

    def type_of(self, scope: _TypeScope, term: Term) -> Type:
        """Return the type of a term as far as it is known."""
        match term:
            case Var():
                return scope.find(term.name)
            case Scalar():
                return STRING if isinstance(term.value, str) else NULL if term.value is None else BOOLEAN
            case Number():
                return NUMBER
            case Template():
                return STRING
            case Ref():
                return self.type_of_ref(scope, term)
            case Array():
                return types.array(self.type_of(scope, item) for item in term.items)
            case Set():
                return types.set_(types.any_of(self.type_of(scope, item) for item in term.items))
            case Object():
                static: list[tuple[Key, Type]] = []
                dynamic: tuple[Type, ...] = ()
                for key, value in term.items:
                    found = self.type_of(scope, value)
                    if (constant := types.constant_key(key)) is not None:
                        static.append((constant, found))
                        continue
                    both = (self.type_of(scope, key), found)
                    dynamic = tuple(map(types.either, dynamic, both)) if dynamic else both
                return types.object_(static, dynamic)
        return self.closures.get(id(term), UNKNOWN)

    def type_of_ref(self, scope: _TypeScope, ref: Ref) -> Type:
        name = root_name(ref)
        keys = [_key(part) for part in ref.path]
        if name in _ROOTS:
            for _, tree in scope.documents(name):
                found = _document(tree, keys)
                if found is not None:
                    return found
            return ANY
        found = scope.find(name)
        return _builtin(".".join([name, *constant_names(ref.path)])) if found == UNKNOWN else _follow(found, keys)

    # References.

    def check_ref(self, scope: _TypeScope, ref: Ref) -> Type:
        """Check a reference, infer the types of the variables in it and return its own type."""
        before = len(self.faults)
        found = self.type_of_ref(scope, ref)
        name = root_name(ref)
        if isinstance(found, Function):
            self.fail(
                ref.start, f"function {self.ref_text(ref)} used as reference, not called", f"have: {types.text(found)}"
            )
        elif name in _ROOTS:
            self._check_document(scope, ref, name)
        else:
            known = scope.find(name)
            if known == UNKNOWN:
                known = ANY
                scope.put(name, ANY)
            self._check_path(scope, ref, known, 0)
        return UNKNOWN if len(self.faults) > before else self.type_of_ref(scope, ref)

    def _check_document(self, scope: _TypeScope, ref: Ref, name: str) -> None:
        for layer, tree in scope.documents(name):
            node = tree
            for place, part in enumerate(ref.path):
                if node.type != UNKNOWN:
                    return self._check_path(scope, ref, node.type, place)
                key = _key(part)
                if place < 2 and (
                    isinstance(part, Array | Object | Set) or (key is not None and key[0] != STRING.rank)
                ):
                    return self._invalid(scope, ref, place, STRING, node.children)
                if isinstance(part, Var) and not self._enumerates(scope, part, types.keys(node.extent())):
                    return self._invalid(scope, ref, place, types.keys(node.extent()), node.children)
                child = None if key is None else node.children.get(key)
                if child is None:
                    if layer.outer is None:
                        # It is base data, or any of several rules.
                        return self._check_path(scope, ref, ANY, place)
                    break
                node = child
            else:
                return None
        return self._check_path(scope, ref, ANY, 0)

    def _check_path(self, scope: _TypeScope, ref: Ref, found: Type, first: int) -> None:
        for place in range(first, len(ref.path)):
            part = ref.path[place]
            if types.is_empty(found):
                return self._invalid(scope, ref, place, UNKNOWN, ())
            names = types.keys(found)
            if names == UNKNOWN:
                before = Ref(ref.start, ref.end, ref.head, ref.path[:place])
                have = f"{self.ref_text(before)} is {types.text(found)}"
                return self.fail(ref.start, f"undefined ref: {self.ref_text(ref)}", f"have: {have}")
            key = _key(part)
            if key is not None:
                inner = types.select(found, key)
                if inner == UNKNOWN:
                    return self._invalid(scope, ref, place, names, _known_keys(found))
                found = inner
                continue
            if isinstance(part, Var):
                possible = self._enumerates(scope, part, names)
            else:
                possible = not isinstance(part, Array | Object | Set) or self._unify(scope, part, names)
            if not possible:
                return self._invalid(scope, ref, place, names, _known_keys(found))
            found = types.values(found)
        return None

    def _enumerates(self, scope: _TypeScope, variable: Var, names: Type) -> bool:
        known = scope.find(variable.name)
        if known != UNKNOWN:
            return types.may_equal(known, names)
        scope.put(variable.name, names)
        return True

    def _invalid(self, scope: _TypeScope, ref: Ref, place: int, want: Type, known: Iterable[Key]) -> None:
        from difflib import get_close_matches  # for messages only

        part = ref.path[place]
        names = [types.key_text(key) for key in sorted(known)]
        key = _key(part)
        have = types.text(self.type_of(scope, part)) if key is None else types.key_text(key)
        wanted = f"one of: {', '.join(names)}" if names or want == UNKNOWN else types.text(want)
        similar = () if key is None else get_close_matches(have, names, 1, 0.6)
        hints = [f"have: {have}", f"want: {wanted}", *(f"did you mean {found}?" for found in similar)]
        self.fail(ref.start, f"undefined ref: {self.ref_text(ref)}", *hints)

    def ref_text(self, ref: Ref) -> str:
        """Return a reference with the names that are written, and the text of what the resolver has names for."""
        head = root_name(ref)
        text = self.source.text[ref.head.start : ref.head.end] if head.startswith("@") else head.partition("@")[0]
        for part in ref.path:
            if not isinstance(part, Var) or part.name[0] not in "@$":
                text += path_text([part]).removeprefix("data")
            elif part.name[0] == "$" or part.start < ref.start:
                # The second is the key that `some x in xs` does not name.
                text += "[_]"
            else:
                text += f"[{self.source.text[part.start : part.end]}]"
        return text

    # Unification.

    def _unify(self, scope: _TypeScope, term: Term, want: Type, *, union: bool = False) -> bool:
        """Return whether a term may have a type; its variables without a type get one.

        Where the type is one of a `union`, a variable gets it in addition to what it has.
        """
        match term:
            case Var():
                known = scope.find(term.name)
                if known != UNKNOWN and not union:
                    return types.may_equal(known, want)
                scope.put(term.name, types.either(known, want))
                return True
            case Array() | Set() | Object() if isinstance(want, Union):
                if want == ANY:
                    for part in _parts(term):
                        self._unify(scope, part, ANY, union=True)
                    return True
                # Each gives types to the variables.
                return True in [self._unify(scope, term, member, union=True) for member in want.members]
            case Array():
                if not isinstance(want, types.ArrayType) or (
                    len(term.items) != len(want.static) and want.dynamic == UNKNOWN
                ):
                    return False
                return all(
                    self._unify(scope, item, types.select(want, (NUMBER.rank, index)), union=union)
                    for index, item in enumerate(term.items)
                )
            case Set():
                return isinstance(want, types.SetType) and all(
                    self._unify(scope, item, want.of, union=union) for item in term.items
                )
            case Object():
                return isinstance(want, types.ObjectType) and self._unify_object(scope, term, want, union=union)
        return types.may_equal(self.type_of(scope, term), want)

    def _unify_object(self, scope: _TypeScope, term: Object, want: types.ObjectType, *, union: bool) -> bool:
        if len(term.items) != len(want.static) and not want.dynamic:
            return False
        for key, value in term.items:
            constant = types.constant_key(key)
            if constant is None:
                self._unify(scope, value, ANY, union=union)
                continue
            found = types.select(want, constant)
            if found == UNKNOWN or not self._unify(scope, value, found, union=union):
                return False
        return True

    def _unify_both(self, scope: _TypeScope, left: Term, left_type: Type, right: Term, right_type: Type) -> bool:
        """Return whether two terms may be equal; variables without a type get that of the other side."""
        left_unknown, right_unknown = is_unknown(left_type), is_unknown(right_type)
        if left_unknown and not right_unknown:
            return self._unify(scope, left, right_type)
        if right_unknown and not left_unknown:
            return self._unify(scope, right, left_type)
        if not left_unknown:
            return types.may_equal(left_type, right_type)
        if isinstance(left, Var) and isinstance(right, Array | Object):
            left, left_type, right, right_type = right, right_type, left, left_type
        match left, right:
            case ((Array() | Object() | Var()), Var()):
                return self._unify(scope, left, ANY) and self._unify(scope, right, self.type_of(scope, left))
            case Array(), Array():
                return len(left.items) == len(right.items) and all(
                    self._unify_terms(scope, *pair) for pair in zip(left.items, right.items, strict=True)
                )
            case Object(), Object():
                pairs = [(value, other) for key, value in left.items for name, other in right.items if key == name]
                return len(left.items) == len(right.items) == len(pairs) and all(
                    self._unify_terms(scope, *pair) for pair in pairs
                )
            case ((Array() | Object()), _):
                return False
        for term, known, other in ((left, left_type, right_type), (right, right_type, left_type)):
            if isinstance(term, Var) and known == UNKNOWN != other:
                return self._unify(scope, term, other)
        return False

    def _unify_terms(self, scope: _TypeScope, left: Term, right: Term) -> bool:
        return self._unify_both(scope, left, self.type_of(scope, left), right, self.type_of(scope, right))


@cache
def _builtin(name: str) -> Type:
    signature = signatures().get(name)
    if signature is None:
        return UNKNOWN
    return types.function(map(types.from_json, signature["arguments"]), types.from_json(signature.get("result")))


def _texts(found: Iterable[Type]) -> str:
    return f"({', '.join(map(types.text, found))})"


def _key(part: Term) -> Key | None:
    return types.constant_key(part) if isinstance(part, Scalar | Number) else None


def _follow(found: Type, keys: list[Key | None]) -> Type:
    for key in keys:
        found = types.values(found) if key is None else types.select(found, key)
    return found


def _document(node: Tree, keys: list[Key | None]) -> Type | None:
    """Return the type of a document, None if nothing is known at its path."""
    for place, key in enumerate(keys):
        child = None if key is None else node.children.get(key)
        if child is None:
            if node.type == UNKNOWN and key is not None:
                return None
            return _follow(node.extent(), keys[place:])
        node = child
    return node.extent()


def _known_keys(found: Type) -> set[Key]:
    match found:
        case types.ObjectType():
            return {key for key, _ in found.static}
        case Union():
            return {key for member in found.members for key in _known_keys(member)}
    return set()


def _parts(term: Array | Set | Object) -> list[Term]:
    return [part for pair in term.items for part in pair] if isinstance(term, Object) else term.items
