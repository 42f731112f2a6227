"""Evaluate the rules of a program in one thread."""

from __future__ import annotations

import dis
import linecache
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from time import monotonic
from types import CodeType, TracebackType
from typing import Any

from policyeng.rego import runtime, values
from policyeng.rego.budget import BUDGET, UNLIMITED, BudgetExceededError, EvaluationLimits, charge
from policyeng.rego.builtins import NOW, BuiltinError, UnsupportedError, load_function, load_pattern
from policyeng.rego.compiled import Compiled, PartialRule
from policyeng.rego.markers import Cause, Undecided
from policyeng.rego.numbers import NumberTooLargeError
from policyeng.rego.paths import read_path
from policyeng.rego.values import UNDEFINED, Value

_MISSING = object()
#: A part of a path that is not given.
_FREE = object()
#: Parts of a set or object that an evaluation asks for before the whole of it is evaluated.
_MOST_PARTS = 2
#: Characters of a line that an error repeats.
_LONGEST_LINE = 120
#: Errors of values, which end an evaluation that reaches them.
ERRORS = (BuiltinError, UnsupportedError, runtime.ConflictError, NumberTooLargeError)
_EVALUATION_ERRORS = (*ERRORS, BudgetExceededError)


#: Called with the file and line of a `print`, and for each argument a list of its value, empty if there is none.
Print = Callable[[str, int, list[list[Value]]], None]
#: Called with the file and offset of an expression, or of the head of a rule, each time that it is evaluated.
Cover = Callable[[tuple[str, int]], None]


class EvaluationError(Exception):
    """A query that has no answer because a builtin, a conflict or a limit ended it.

    Attributes:
        code: as OPA names it.
        message: without the place; that of a builtin begins with its name.
        file: of the policy, empty where it is not known.
        line: from 1, 0 where it is not known.
        text: of that line, empty where it is not known.
    """

    def __init__(self, code: str, message: str, file: str = "", line: int = 0, text: str = "") -> None:
        """Take the reason and the place."""
        place = f"{file}:{line}: " if file else ""
        shown = text if len(text) <= _LONGEST_LINE else f"{text[:_LONGEST_LINE]}..."
        super().__init__(f"{place}{code}: {message}{f': `{shown}`' if text else ''}")
        self.code, self.message, self.file, self.line, self.text = code, message, file, line, text


class _Function:
    """A function in the place of another one."""

    def __init__(self, function: Callable[..., Value]) -> None:
        self.function = function


class Thread:
    """The state of a program in one thread.

    Attributes:
        globals: of the compiled code; the name of a rule's function is in `Compiled.rules`.
        kept: what callers keep with it.
        ignored: by name, the builtins that failed since `begin` in files that are lenient.
    """

    #: Whether it evaluates the whole of what it is asked for several parts of.
    joins_parts = True

    def __init__(
        self, compiled: Compiled, data: Value, print_: Print | None, cover: Cover | None, names: Mapping[str, str]
    ) -> None:
        """Define the functions of compiled code."""
        self._builtins = compiled.builtins
        self._names = names
        self.steps = runtime.Steps()
        self.weights = runtime.Weights()
        self.joins = self.new_joins()
        self._rules: Mapping[tuple[Value, ...], str] = compiled.rules
        self._functions = compiled.functions
        self._parts: Mapping[tuple[Value, ...], PartialRule] = compiled.parts
        self._part_counts: dict[str, int] = {}
        self._data = data
        self.replacements: dict[str | tuple[str, ...], Value] = {}
        self.kept: dict[int, Any] = {}
        #: The builtins that failed in this evaluation where that is undefined, once for each call.
        self.ignored: list[str] = []
        #: How much of the code of queries it has.
        self.loaded = 0
        self.time: Value = None
        self.globals: dict[str, Any] = {
            "__builtins__": {
                name: __builtins__[name] if isinstance(__builtins__, dict) else getattr(__builtins__, name)
                for name in (
                    "AttributeError",
                    "bool",
                    "dict",
                    "int",
                    "isinstance",
                    "len",
                    "list",
                    "map",
                    "set",
                    "str",
                    "type",
                )
            },
            "UNDEFINED": UNDEFINED,
            "MISSING": _MISSING,
            "INPUT": UNDEFINED,
            "DATA": data,
            "CACHE": {},
            "PROGRAM": {},
            "TICK": self.steps.tick,
            "PRINT": print_,
            "COVER": cover,
            "Function": _Function,
            "charge": charge,
            "weigh": self.weights.weigh,
            "COLLECTIONS": runtime.COLLECTIONS,
            "enter": self._enter,
            "leave": self._leave,
            "FREE": _FREE,
            "part": self._part,
            "reach": self.reach,
            "reach_each": self._reach_each,
            "replaced": self._replaced,
            "replaced_call": self._replaced_call,
            "call_replaced": self._call_replaced,
            "containing": self.joins.containing,
            "matching": self.joins.matching,
            "equal": values.equal,
            "is_less": values.is_less,
            "make_set": values.make_set,
            "to_key": values.to_key,
        }
        for name in [
            "Level",
            "Members",
            "Remembered",
            "add_at",
            "agree",
            "data_item",
            "finish",
            "is_collection",
            "is_member",
            "is_pair",
            "item",
            "join",
            "look_up",
            "ordered_pairs",
            "ordered_values",
            "pairs",
            "put",
            "put_at",
            "values",
        ]:
            self.globals[name] = getattr(runtime, name)
        self.load(compiled.code, compiled)

    def new_joins(self) -> runtime.Joins:
        """Return what finds members of lists by keys."""
        return runtime.Joins(self.steps, values.to_key, runtime.values, ERRORS)

    def load(self, code: Iterable[CodeType], compiled: Compiled) -> None:
        """Define the functions of compiled modules, with their constants and builtins."""
        for prefix, values_ in (("k", compiled.scalars), ("K", compiled.constants)):
            for index, value in enumerate(values_):
                self.globals[f"{prefix}{index}"] = value
        for path, short in compiled.base.items():
            self.globals[short] = runtime.look_up(self._data, path)
        for name, short in compiled.builtins.items():
            if short not in self.globals:
                self.globals[short] = self.now if name == NOW else load_function(name)
                self.globals[f"{short}_"] = self._forgiving(name, short)
        for text, short in compiled.patterns.items():
            if short not in self.globals:
                self.globals[short] = self._compiled_later(text, short)
        for module in code:
            exec(module, self.globals)  # noqa: S102  # made by the compiler from its own names and constants

    def _forgiving(self, name: str, short: str) -> Callable[..., Value]:
        """Return a builtin that is undefined where the builtin of a name fails, and counts that."""
        space, ignored = self.globals, self.ignored

        def evaluate(*arguments: Value) -> Value:
            try:
                return space[short](*arguments)
            except BuiltinError:
                ignored.append(name)
                return UNDEFINED

        return evaluate

    def _compiled_later(self, text: str, short: str) -> Callable[[str], object]:
        def compile_and_match(subject: str) -> object:
            matches = self.globals[short] = load_pattern(text)
            return matches(subject)

        return compile_and_match

    def function(self, path: str) -> Callable[[], Value]:
        """Return what computes a rule, by its path such as `data.authz.allow` or `data.hooks["test.target"].deny`.

        Raises:
            KeyError: there is no such rule.
            ValueError: it is not a path.
        """
        function: Callable[[], Value] = self.globals[self._rules[read_path(path)]]
        return function

    def uncached(self, path: str) -> Callable[[], Value]:
        """Return a function that computes a rule, for one call in each evaluation; a set is a `runtime.Members`.

        Raises:
            KeyError: there is no such rule.
            ValueError: it is not a path.
        """
        function: Callable[[], Value] = self.globals[f"{self._rules[read_path(path)]}_"]
        return function

    def now(self) -> Value:
        """Return what `time.now_ns()` is: the time of the evaluation.

        Raises:
            UnsupportedError: it has none.
        """
        return load_function("time.parse_rfc3339_ns" if self.time is not None else NOW)(self.time)

    def begin(self, input_: Value, limits: EvaluationLimits = UNLIMITED, time: Value = None) -> None:
        """Begin an evaluation: what rules gave for another input is forgotten, and what was used is not counted.

        Args:
            input_: the document `input`.
            limits: of the evaluation.
            time: of the evaluation, as in RFC 3339, for `time.now_ns()`.
        """
        space, weights, steps = self.globals, self.weights, self.steps
        space["INPUT"] = input_
        self.time = time
        space["CACHE"].clear()
        self._part_counts.clear()
        if self.ignored:
            # What was ignored counts in every evaluation that needs it, so it must not be remembered.
            self.ignored.clear()
            space["PROGRAM"].clear()
        if weights.weighed:
            weights.forget(space["PROGRAM"].values())
        steps.used, steps.limit = 0, limits.steps
        BUDGET.deadline = monotonic() + limits.seconds
        BUDGET.size = limits.size

    def call(self, function: Callable[[], Value]) -> Value:
        """Return what a function of the compiled code gives.

        Raises:
            EvaluationError: a builtin, a conflict or a limit ended it.
        """
        try:
            return function()
        except _EVALUATION_ERRORS as error:
            if isinstance(error, BudgetExceededError):
                self.steps.restart()
                self.globals["TICK"] = self.steps.tick
            raise self._located(error, str(error)) from error
        except RecursionError as error:
            raise self._located(error, "the evaluation, or one of its values, is nested too deeply") from error

    def _located(self, error: BaseException, message: str) -> EvaluationError:
        """Return an error with the name of its builtin and the place in the policy."""
        found = _place(error, self.globals)
        code = getattr(error, "code", BudgetExceededError.code)
        if isinstance(error, runtime.ConflictError):
            message = error.describe(self._names)
        if found is None:
            return EvaluationError(code, message)
        file, line = found.tb_frame.f_code.co_filename, found.tb_lineno
        is_of_builtin = isinstance(error, (BuiltinError, UnsupportedError))
        if is_of_builtin and (name := self._builtin_at(found)) and not message.startswith((f"{name}: ", f"{name} ")):
            message = f"{name}: {message}"
        text = linecache.getline(file, line).strip()
        return EvaluationError(code, message, self._names.get(file, file), line, text)

    def _builtin_at(self, place: TracebackType) -> str:
        """Return the builtin that was called at a place of compiled code; nothing if it may be one of several."""
        names = {short: name for name, short in self._builtins.items()}
        called = {
            names[instruction.argval]
            for instruction in dis.get_instructions(place.tb_frame.f_code)
            if instruction.positions and instruction.positions.lineno == place.tb_lineno and instruction.argval in names
        }
        if len(called) > 1 and place.tb_next is not None:
            code = place.tb_next.tb_frame.f_code
            called = {name for name in called if getattr(load_function(name), "__code__", None) is code}
        return called.pop() if len(called) == 1 else ""

    # Parts of documents.

    @cached_property
    def _children(self) -> dict[tuple[Value, ...], list[str]]:
        """The names directly below packages and other documents that no rule defines as a whole."""
        found: dict[tuple[Value, ...], list[str]] = {}
        for path in sorted(self._rules):
            if path:
                found.setdefault(path[:-1], []).append(path[-1])
        return found

    def reach(self, path: tuple[Value, ...], keys: tuple[Value, ...]) -> Value:
        """Return the value at keys below a package or document, or `UNDEFINED`; nothing else is evaluated.

        Args:
            path: of the document, which no rule defines as a whole.
            keys: all of which are values.
        """
        for found in self._walk((), path, keys):
            return found[0]
        return UNDEFINED

    def _reach_each(self, path: tuple[Value, ...], keys: tuple[Value, ...]) -> Iterator[tuple[Value, ...]]:
        """Yield the values at keys of which some are `FREE`, each after what those are for it."""
        return self._walk((), path, keys)

    def _walk(
        self, names: tuple[Value, ...], path: tuple[Value, ...], keys: tuple[Value, ...]
    ) -> Iterator[tuple[Value, ...]]:
        space = self.globals
        for place, key in enumerate(keys):
            if key is _FREE:
                base = space["look_up"](space["DATA"], path)
                found = [] if base is UNDEFINED else [name for name, _ in space["ordered_pairs"](base)]
                found += [name for name in self._children.get(path, ()) if name not in found]
                yield from self._each(
                    (name, self._walk((*names, name), path, (name, *keys[place + 1 :]))) for name in found
                )
                return
            below = (*path, key) if key.__class__ is str else ()
            function = self._rules.get(below) if below else None
            rest = keys[place + 1 :]
            if function is None:
                yield from self._follow(names, space["look_up"](space["DATA"], path), keys[place:], space["data_item"])
                return
            path = below
            if path in self._functions:
                return
            if path in self._parts and self._parts[path][0]:
                yield from self._follow(names, self._part(path, rest), rest, space["item"])
                return
            if path not in self._children:
                yield from self._follow(names, space[function](), rest, space["item"])
                return
        value = space[self._rules[path]]()
        if value is not UNDEFINED:
            yield (*names, value)

    def _follow(
        self, names: tuple[Value, ...], value: Value, keys: tuple[Value, ...], item: Callable[[Value, Value], Value]
    ) -> Iterator[tuple[Value, ...]]:
        """Yield what is at keys in a value, as `_walk` does."""
        for place, key in enumerate(keys):
            if value is UNDEFINED:
                return
            if key is _FREE:
                rest = keys[place + 1 :]
                yield from self._each(
                    (part, self._follow((*names, name), part, rest, item))
                    for name, part in self.globals["ordered_pairs"](value)
                )
                return
            value = item(value, key)
        if value is not UNDEFINED:
            yield (*names, value)

    def _each(self, parts: Iterable[tuple[Value, Iterator[tuple[Value, ...]]]]) -> Iterator[tuple[Value, ...]]:
        """Yield the results of parts; what is undecided in one of them is raised after those of the others."""
        causes: tuple[Cause, ...] = ()
        for value, found in parts:
            self.steps.tick()
            try:
                value.__class__  # noqa: B018  # a marker raises, because its part may be absent
                yield from found
            except Undecided as error:
                causes = error.join(causes)
        if causes:
            raise Undecided(*causes)

    def _part(self, path: tuple[Value, ...], keys: tuple[Value, ...]) -> Value:
        """Return what rules build together, or what of it is at the keys that are not `FREE`.

        The whole is evaluated where a part cannot be, and after some parts of it: to evaluate each member of a large
        set by itself takes longer. An error that the whole has does not matter to its parts.
        """
        space = self.globals
        whole = self._rules[path]
        longest, is_set, is_pure, functions = self._parts[path]
        mask = tuple([place for place, key in enumerate(keys[:longest]) if key is not _FREE])
        function = functions.get(mask)
        cache = space["PROGRAM" if is_pure else "CACHE"]
        if function is None or whole in cache:
            return space[whole]()
        if self.replacements and (found := self._replaced(path)) is not _MISSING:
            return found
        place = (function, *[space["to_key"](keys[index]) for index in mask])
        if (found := cache.get(place, _MISSING)) is not _MISSING:
            return found
        if self.joins_parts:
            count = self._part_counts[whole] = self._part_counts.get(whole, 0) + 1
            if count > _MOST_PARTS:
                try:
                    return space[whole]()
                except ERRORS:
                    self._part_counts[whole] = -1 << 62
        found = space[function](*[keys[index] for index in mask])
        found = space["make_set"](found) if is_set else space["finish"](found, space["look_up"](space["DATA"], path))
        cache[place] = found
        return found

    # Modifiers.

    def _enter(self, modifiers: list[tuple[str, list[str], Value]]) -> tuple[Value, ...]:
        space = self.globals
        saved = (space["INPUT"], space["DATA"], space["CACHE"], space["PROGRAM"], self.replacements)
        space["CACHE"] = {}
        for name, path, value in modifiers:
            if name == "input":
                space["INPUT"] = runtime.patch(space["INPUT"], tuple(path), value)
            else:
                space["PROGRAM"] = {}
                where: str | tuple[str, ...] = tuple(path) if name == "data" else name
                self.replacements = {**self.replacements, where: value}
                if name == "data" and not isinstance(value, _Function):
                    space["DATA"] = runtime.patch(space["DATA"], tuple(path), value)
        return saved

    def _leave(self, saved: tuple[Value, ...]) -> None:
        space = self.globals
        space["INPUT"], space["DATA"], space["CACHE"], space["PROGRAM"], self.replacements = saved

    def _replaced(self, path: Sequence[str]) -> Value:
        for count in range(len(path), -1, -1):
            value = self.replacements.get(tuple(path[:count]), _MISSING)
            if value is not _MISSING:
                return runtime.look_up(value, tuple(path[count:]))
        return _MISSING

    def _replaced_call(self, path: list[str], arguments: list[Value]) -> Value:
        return self._call_with(tuple(path), arguments)

    def _call_replaced(self, name: str, function: Callable[..., Value], arguments: list[Value]) -> Value:
        found = self._call_with(name, arguments)
        return function(*arguments) if found is _MISSING else found

    def _call_with(self, name: str | tuple[str, ...], arguments: list[Value]) -> Value:
        value = self.replacements.get(name, _MISSING)
        if not isinstance(value, _Function):
            return value
        # Within a replacement, every function is itself.
        space = self.globals
        before = space["CACHE"], space["PROGRAM"], self.replacements
        kept = {other: data for other, data in self.replacements.items() if not isinstance(other, str)}
        self.replacements = {path: data for path, data in kept.items() if not isinstance(data, _Function)}
        space["CACHE"], space["PROGRAM"] = {}, {}
        try:
            return value.function(*arguments)
        finally:
            space["CACHE"], space["PROGRAM"], self.replacements = before


def _place(error: BaseException, space: dict[str, Value]) -> TracebackType | None:
    """Return where compiled code was when an error came."""
    found = None
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_globals is space:
            found = traceback
        traceback = traceback.tb_next
    return found
