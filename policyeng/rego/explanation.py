"""Explain an evaluation: each expression with its outcome, the values it read and the rules it evaluated.

A program is compiled once more, in the form that handles markers, with calls that report what happens. A step is an
expression as it is written; the expressions that the resolver made of its parts belong to it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, cast

from policyeng.rego.budget import UNLIMITED, EvaluationLimits
from policyeng.rego.checker import Checker
from policyeng.rego.compiled import Compiled
from policyeng.rego.compiler import Compiler, _Writer
from policyeng.rego.decided_results import DecidedResult, HandledThread
from policyeng.rego.errors import ModuleText
from policyeng.rego.linked import Linked
from policyeng.rego.marker_handling import HandledCompiler, _HandledWriter
from policyeng.rego.markers import Cause, Undecided
from policyeng.rego.parser import parse_query
from policyeng.rego.program import Program
from policyeng.rego.resolver import Branch, operator_name
from policyeng.rego.syntax import Body, Call, Expr, Ref, Scalar, Term, Var
from policyeng.rego.tree import DataNode
from policyeng.rego.values import UNDEFINED, Value

#: The evaluations of expressions that an explanation contains; a loop over a large snapshot has more.
MOST_RECORDED = 100_000
#: The variable of a query that has the value of its term, and the operators that give values to variables.
_RESULT = "value_of_query"
_UNIFICATIONS = frozenset(("assign", "eq"))
#: The first letters of variables that the resolver and the compiler name.
_GENERATED = ("@", "$", "captured ")


class ExpressionOutcome(StrEnum):
    """What an expression or a rule came to."""

    TRUE = "true"
    FALSE = "false"
    UNDEFINED = "undefined"
    UNKNOWN = "unknown"
    VALUE = "value"


class Step(NamedTuple):
    """An expression as it is written.

    Attributes:
        file, line: where it begins.
        text: on one line.
        parent: the number of the step that contains it, such as a comprehension; -1 for one of the body of a rule.
        reads: the references and variables in it, as they are written.
    """

    file: str
    line: int
    text: str
    parent: int
    reads: list[str]


@dataclass(slots=True)
class ExpressionEvaluation:
    """One evaluation of an expression.

    Attributes:
        values: what its references, calls and variables were, by their text.
        solutions: how often it held: more than once where it is a loop.
        causes: what is not known.
        parts: what was evaluated within it.
    """

    step: Step
    values: dict[str, Value] = field(default_factory=dict)
    solutions: int = 0
    causes: tuple[Cause, ...] = ()
    parts: list[ExpressionEvaluation | RuleEvaluation] = field(default_factory=list)

    @property
    def outcome(self) -> ExpressionOutcome:
        """Whether it held."""
        if self.solutions:
            return ExpressionOutcome.TRUE
        if self.causes:
            return ExpressionOutcome.UNKNOWN
        return ExpressionOutcome.UNDEFINED if self.missing else ExpressionOutcome.FALSE

    @property
    def missing(self) -> str:
        """The first reference that has no value; empty if each has one."""
        return "" if self.solutions else next((text for text in self.step.reads if text not in self.values), "")


@dataclass(slots=True)
class RuleEvaluation:
    """One evaluation of a rule, or the query that was asked.

    Attributes:
        path: of the rule, below `data`; empty for a query.
        file, line: of its first definition.
        arguments: of a function.
        value: what it gave, or `UNDEFINED`.
        causes: what is not known.
        parts: the expressions of its bodies in the order of their evaluation.
    """

    path: tuple[str, ...]
    file: str
    line: int
    arguments: tuple[Value, ...] = ()
    value: Value = field(default_factory=lambda: UNDEFINED)
    causes: tuple[Cause, ...] = ()
    parts: list[ExpressionEvaluation | RuleEvaluation] = field(default_factory=list)

    @property
    def outcome(self) -> ExpressionOutcome:
        """What it came to."""
        if self.value is UNDEFINED:
            return ExpressionOutcome.UNKNOWN if self.causes else ExpressionOutcome.UNDEFINED
        return ExpressionOutcome.VALUE


class _RuleFrame:
    """The evaluation of a rule that is under way.

    Attributes:
        latest: the latest evaluation of each step, by its number.
        current: the number of the step that is being evaluated; -1 for none.
    """

    __slots__ = ("current", "evaluation", "latest")

    def __init__(self, evaluation: RuleEvaluation) -> None:
        self.evaluation = evaluation
        self.latest: dict[int, ExpressionEvaluation] = {}
        self.current = -1

    def parts_of(self, number: int) -> list[ExpressionEvaluation | RuleEvaluation]:
        """Return where the parts of a step belong: to its latest evaluation, or else to the rule."""
        entry = self.latest.get(number)
        return self.evaluation.parts if entry is None else entry.parts


class _Recorder:
    """Takes the reports of compiled code."""

    def __init__(self, steps: list[Step], evaluation: RuleEvaluation) -> None:
        self._steps = steps
        self._frames = [_RuleFrame(evaluation)]
        self.remaining = MOST_RECORDED

    def begin(self, number: int) -> None:
        frame, step = self._frames[-1], self._steps[number]
        frame.current = number
        frame.latest[number] = entry = ExpressionEvaluation(step)
        self.remaining -= 1
        if self.remaining > 0:
            frame.parts_of(step.parent).append(entry)

    def see(self, number: int, text: str, value: Value) -> None:
        self._frames[-1].latest[number].values[text] = value

    def hold(self, number: int, values: dict[str, Value]) -> None:
        frame = self._frames[-1]
        entry = frame.latest[number]
        entry.solutions += 1
        entry.values |= values
        frame.current = entry.step.parent

    def meet(self, error: Undecided) -> Undecided:
        """Note that the step that is being evaluated met something unknown."""
        frame = self._frames[-1]
        if (entry := frame.latest.get(frame.current)) is not None:
            entry.causes = error.join(entry.causes)
            frame.current = entry.step.parent
        return error

    @contextmanager
    def rule(self, evaluation: RuleEvaluation) -> Iterator[None]:
        """Evaluate a rule within the step that reads it."""
        frame = self._frames[-1]
        if self.remaining > 0:
            frame.parts_of(frame.current).append(evaluation)
        self._frames.append(_RuleFrame(evaluation))
        try:
            yield
        except Undecided as error:
            self.meet(error)
            evaluation.causes = error.causes
            raise
        finally:
            self._frames.pop()


class ExplainedCompiler(HandledCompiler):
    """Compiles rules to the form that reports what happens.

    Attributes:
        steps: the expressions, by number.
        owners: the extent of the expression that one which the resolver made belongs to, by file and extent.
    """

    def __init__(self, root: DataNode, checker: Checker, data: Value, *, lenient: Collection[str] = ()) -> None:
        """Take the rules, with ordered bodies, and what the checker found about them."""
        super().__init__(root, checker, data, inlines=False, lenient=lenient)
        self.writer = _ExplainedWriter
        self.steps: list[Step] = []
        self.owners: dict[tuple[str, int, int], tuple[int, int]] = {}

    def renewed(self, checker: Checker) -> Compiler:
        """Return a compiler of the same rules and form, for what the checker has found since."""
        return ExplainedCompiler(self.root, checker, self.data, lenient=self.lenient)

    def place_of(self, path: tuple[str, ...]) -> tuple[str, int]:
        """Return the file and line of a rule."""
        node = self.root.find(path)
        definitions = [*node.definitions, *node.dynamic] if node is not None else []
        if not definitions:
            return "", 0
        return definitions[0].source.file, definitions[0].source.position(definitions[0].start)[0]


class _ExplainedWriter(_HandledWriter):
    """Writes functions that report what happens."""

    compiler: ExplainedCompiler

    def __init__(self, compiler: ExplainedCompiler, source: ModuleText, *, ordered: bool = False) -> None:
        super().__init__(compiler, source, ordered=ordered)
        #: The number of the step that is being written; -1 outside of one.
        self.step_number = -1
        #: The numbers of the steps whose beginning is written, by extent.
        self.begun: dict[tuple[int, int], int] = {}
        self.is_silent = False

    def outline(self) -> _Writer:
        inner = super().outline()
        if isinstance(inner, _ExplainedWriter):
            inner.step_number, inner.begun, inner.is_silent = self.step_number, dict(self.begun), self.is_silent
        return inner

    def line(self, text: str) -> None:
        super().line(text.replace("error.join(", "MEET(error).join(").replace("*error.causes", "*MEET(error).causes"))

    def body(self, body: Body, succeed: Callable[[], None]) -> None:
        file = self.written_in.file
        written = [(each.start, each.end) for each in body if not each.generated]
        for part in (expression for expression in body if expression.generated):
            holders = (extent for extent in written if extent[0] <= part.start and part.end <= extent[1])
            self.compiler.owners[file, part.start, part.end] = next(holders, (part.start, part.end))
        super().body(body, succeed)

    def expression(self, expression: Expr) -> None:
        extent = expression.start, expression.end
        owner = self.compiler.owners.get((self.written_in.file, *extent), extent) if expression.generated else extent
        before = self.step_number
        is_same = before >= 0 and self.begun.get(extent) == before
        if self.is_silent or is_same or isinstance(expression.value, Scalar) or expression.end <= expression.start:
            super().expression(expression)
            return
        self.step_number = self._begin(owner)
        bound = set(self.bound)
        super().expression(expression)
        if expression.generated and isinstance(expression.value, Call):
            for argument in expression.value.arguments:
                if isinstance(argument, Var) and argument.name in set(self.bound) - bound:
                    self.see(self.text_of(*extent), self.bound[argument.name])
        if owner == extent:
            names = {name.partition("@")[0]: name for name in self.bound if name not in bound and _is_written(name)}
            values = ", ".join(f"{self.compiler.scalar(shown)}: {self.bound[name]}" for shown, name in names.items())
            self.line(f"HOLD({self.step_number}, {{{values}}})")
        self.step_number = before

    def _begin(self, extent: tuple[int, int]) -> int:
        if extent not in self.begun:
            line = self.written_in.position(extent[0])[0]
            number = self.begun[extent] = len(self.compiler.steps)
            self.compiler.steps.append(Step(self.written_in.file, line, self.text_of(*extent), self.step_number, []))
            self.line(f"BEGIN({number})")
        return self.begun[extent]

    def text_of(self, start: int, end: int) -> str:
        return " ".join(self.written_in.text[start:end].split()).removeprefix(f"{_RESULT} := ")

    def see(self, text: str, code: str) -> None:
        """Write the report of a value."""
        reads = self.compiler.steps[self.step_number].reads
        if text not in reads:
            reads.append(text)
        self.line(f"SEE({self.step_number}, {self.compiler.scalar(text)}, {code})")

    def value(self, term: Term) -> str:
        parts = [term, *term.path] if isinstance(term, Ref) else [term]
        # The value of a reference with a variable that the resolver made is a member, which the loop shows.
        is_read = isinstance(term, Ref | Var) and all(_is_written(part.name) for part in parts if isinstance(part, Var))
        is_reported = is_read and self.step_number >= 0 and not self.is_silent and term.end > term.start
        if (
            is_reported
            and (text := self.text_of(term.start, term.end)) not in self.compiler.steps[self.step_number].reads
        ):
            self.compiler.steps[self.step_number].reads.append(text)  # before it, because it may have no value
        code = super().value(term)
        if is_reported:
            self.see(self.text_of(term.start, term.end), code)
        return code

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Write what repeats a part of a body without reports."""
        before = self.is_silent
        self.is_silent = True
        yield
        self.is_silent = before

    def require_index(self, body: Body, heads: list[Term]) -> None:
        with self.silent():
            super().require_index(body, heads)

    def _keep_possible(self, *args: Value, **options: Value) -> None:
        with self.silent():
            super()._keep_possible(*args, **options)

    def at_head(self, branch: Branch) -> None:
        self.step_number = -1
        super().at_head(branch)


def _is_written(name: str) -> bool:
    return not name.startswith(_GENERATED) and name.partition("@")[0] != _RESULT


class ExplainedThread(HandledThread):
    """Evaluates the form that reports what happens.

    Attributes:
        evaluation: contains what was evaluated, in its order.
    """

    def __init__(self, compiled: Compiled, compiler: ExplainedCompiler, query: str = "") -> None:
        """Define the functions of compiled code; `query` is what the evaluation is of, if it is no rule."""
        self.evaluation = RuleEvaluation((), query, 1)
        self._compiler, self._recorder = compiler, _Recorder(compiler.steps, self.evaluation)
        super().__init__(compiled, compiler.data, None, None, {})

    @property
    def is_whole(self) -> bool:
        """Whether everything was recorded, because the evaluation had less than `MOST_RECORDED` expressions."""
        return self._recorder.remaining > 0

    def load(self, code: Value, compiled: Compiled) -> None:
        """Define the functions of compiled modules."""
        recorder = self._recorder
        self.globals |= {"BEGIN": recorder.begin, "SEE": recorder.see, "HOLD": recorder.hold, "MEET": recorder.meet}
        super().load(code, compiled)
        for path, name in compiled.rules.items():
            evaluated = name if path in compiled.functions else f"{name}_"
            if evaluated in self.globals:
                self.globals[evaluated] = self._explained(path, self.globals[evaluated])

    def _explained(self, path: tuple[str, ...], function: Callable[..., Value]) -> Callable[..., Value]:
        file, line = self._compiler.place_of(path)

        def evaluate(*arguments: Value) -> Value:
            evaluation = RuleEvaluation(path, file, line, arguments)
            with self._recorder.rule(evaluation):
                evaluation.value = function(*arguments)
            return evaluation.value

        return evaluate


class ExplainedProgram:
    """A program in the form that explains evaluations."""

    def __init__(self, program: Program) -> None:
        """Compile the rules of a program once more.

        Raises:
            RegoError: loops are nested too deeply for it, in a reference with very many variables.
            ValueError: the program was loaded without its rules.
        """
        plain = program.linked.compiler
        compiler = ExplainedCompiler(plain.root, plain.checker, plain.data, lenient=plain.lenient)
        self._linked = Linked(plain.root, plain.checker, compiler)
        self._compiled = compiler.compile()

    @property
    def _compiler(self) -> ExplainedCompiler:
        # A query that replaces what no rule replaces is compiled with all rules again.
        return cast("ExplainedCompiler", self._linked.compiler)

    def new_thread(self) -> ExplainedThread:
        """Return what evaluates rules and explains their evaluation."""
        return ExplainedThread(self._compiled, self._compiler)

    def evaluate(
        self, query: str, input_: Value, limits: EvaluationLimits = UNLIMITED
    ) -> tuple[DecidedResult, ExplainedThread]:
        """Evaluate a query.

        Returns:
            the value, for a query of one term, or a list with the variables of each solution; and what explains it.

        Raises:
            EvaluationError: a builtin, a conflict or a limit ended it.
            RegoError: the query is not well formed.
        """
        is_term = _is_term(query)
        code, name, recompiled = self._linked.compile_query(f"{_RESULT} := {query}" if is_term else query)
        self._compiled = recompiled or self._compiled
        thread = ExplainedThread(self._compiled, self._compiler, query)
        HandledThread.load(thread, code, self._compiled)
        thread.begin(input_, limits)
        value, undecided = thread.decide(thread.globals[name])
        if is_term and value is not UNDEFINED:
            value = next((solution[_RESULT] for solution in list.__iter__(value)), UNDEFINED)
        return DecidedResult(value, undecided), thread


def _is_term(query: str) -> bool:
    """Check whether a query is one term, which has a value, and neither a condition with variables nor several."""
    body = parse_query(query)
    if len(body) != 1 or body[0].negated or not isinstance(body[0].value, Term):
        return False
    value = body[0].value
    return not isinstance(value, Call) or operator_name(value) not in _UNIFICATIONS
