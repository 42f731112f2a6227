"""Compiled modules with their data: give each thread what evaluates their rules, and run queries on them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from types import CodeType
from typing import TYPE_CHECKING

from policyeng.rego.budget import UNLIMITED, EvaluationLimits
from policyeng.rego.builtins import load_function
from policyeng.rego.compiled import Compiled
from policyeng.rego.errors import Diagnostic, ModuleText, RegoError
from policyeng.rego.markers import Undecided
from policyeng.rego.paths import read_path
from policyeng.rego.thread import Cover, Print, Thread
from policyeng.rego.values import UNDEFINED, Value

if TYPE_CHECKING:
    from policyeng.rego.clock_thread import ClockThread
    from policyeng.rego.decided_results import DecidedResult, HandledThread, MarkedThread
    from policyeng.rego.linked import Linked
    from policyeng.rego.syntax import Body, Module


class Program:
    """Compiled modules with their base data. Several threads may use it at once."""

    def __init__(
        self,
        compiled: Compiled,
        data: Value,
        linked: Linked | None = None,
        print_: Print | None = None,
        *,
        cover: Cover | None = None,
        names: Mapping[str, str] | None = None,
        handled: Callable[[], Compiled] | None = None,
    ) -> None:
        """Take compiled code.

        Args:
            compiled: of the modules.
            data: base data, which nothing may change afterwards.
            linked: the rules, without which only rules and documents of them can be queried.
            print_: called by `print`.
            cover: called by code that was compiled for it.
            names: how errors of evaluations name files, where it is not as compiled.
            handled: gives the code of the form that handles markers, where there are no rules to compile it from.
        """
        for name in compiled.builtins:
            load_function(name)
        self.compiled = compiled
        self._data = data
        self._linked = linked
        self._print = print_
        self._cover = cover
        self._names = names or {}
        self._local = threading.local()
        self._queries: dict[str, str] = {}
        #: The code of queries and of what they need.
        self._later: list[CodeType] = []
        self._lock = threading.Lock()
        self._compile_handled = handled or self.compile_handled
        self._handled: Compiled | None = None

    @property
    def linked(self) -> Linked:
        """The rules.

        Raises:
            ValueError: the program was loaded without them.
        """
        if self._linked is None:
            raise ValueError("this program has no rules to compile")
        return self._linked

    def compile_handled(self) -> Compiled:
        """Compile the form that handles markers.

        Raises:
            RegoError: loops are nested too deeply for it, in a reference with very many variables.
            ValueError: there are no rules to compile it from.
        """
        return self.linked.compile_handled()

    def marked_thread(self) -> MarkedThread:
        """Return what evaluates rules in this thread over an input with markers; what meets one raises `Undecided`."""
        from policyeng.rego.decided_results import MarkedThread  # imported when a document has markers

        found: MarkedThread | None = getattr(self._local, "marked", None)
        if found is None:
            found = self._local.marked = MarkedThread(self.compiled, self._data, self._print, self._cover, self._names)
        return found

    def clock_thread(self) -> ClockThread:
        """Return what evaluates rules in this thread and records what they compare the clock with."""
        from policyeng.rego.clock_thread import ClockThread  # imported when it is needed

        found: ClockThread | None = getattr(self._local, "clock", None)
        if found is None:
            found = self._local.clock = ClockThread(self.compiled, self._data, self._print, self._cover, self._names)
        return found

    def handled_thread(self) -> HandledThread:
        """Return the evaluator of this thread that finds the results that do not depend on unknown values."""
        from policyeng.rego.decided_results import HandledThread  # as above

        found: HandledThread | None = getattr(self._local, "handled", None)
        if found is None:
            compiled = self.handled_form()
            found = self._local.handled = HandledThread(compiled, self._data, None, None, self._names)
        return found

    def handled_form(self) -> Compiled:
        """Return the form that handles markers, which is compiled for the first call.

        Raises:
            RegoError, ValueError: as for `compile_handled`.
        """
        with self._lock:
            if self._handled is None:
                self._handled = self._compile_handled()
            return self._handled

    def decide(self, path: str, input: Value) -> DecidedResult:  # noqa: A002  # as below
        """Return the decided result of a rule over an input with markers, and the causes of the unknown rest.

        Args:
            path: such as `data.authz.allow`.
            input: the document `input`.

        Raises:
            EvaluationError: a builtin, a conflict or a limit ended it.
            KeyError: there is no such rule.
        """
        from policyeng.rego.decided_results import outcome_of  # as above

        marked = self.marked_thread()
        marked.begin(input)
        try:
            return outcome_of(marked.call(marked.function(path)))
        except Undecided:
            handled = self.handled_thread()
            handled.begin(input)
            return handled.decide(handled.function(path))

    def thread(self) -> Thread:
        """Return what evaluates rules in this thread."""
        found: Thread | None = getattr(self._local, "thread", None)
        if found is None:
            found = self.new_thread()
        return found

    def new_thread(self) -> Thread:
        """Replace what evaluates rules in this thread, as after an exception from another thread."""
        self._local.marked = self._local.handled = self._local.clock = None
        found = self._local.thread = Thread(self.compiled, self._data, self._print, self._cover, self._names)
        return found

    def query(
        self,
        path: str,
        input: Value = UNDEFINED,  # noqa: A002  # the name that Rego has for it
        time: str | None = None,
    ) -> Value:
        """Return the value of a rule or document below `data`, or `UNDEFINED`.

        Args:
            path: such as `data.authz.allow`, `data.hooks["test.target"].deny` or `data.authz.roles[0]`.
            input: the document `input`; `UNDEFINED` for none.
            time: of the evaluation, as in RFC 3339, for `time.now_ns()`.

        Raises:
            EvaluationError: a builtin, a conflict or a limit ended it.
            KeyError: it is a function.
            ValueError: it is not a path of names, texts in brackets and indices of arrays.
        """
        names = read_path(path)
        thread = self.thread()
        if names in self.compiled.functions:
            raise KeyError(f"{path} is a function")
        if self._linked is not None:
            with self._lock:
                self._later += self._linked.compile_part(names)
        self._load_later(thread)
        thread.begin(input, time=time)
        return thread.call(partial(thread.reach, (), names))

    def _load_later(self, thread: Thread) -> None:
        """Define the functions that queries needed in addition to those of the program."""
        if thread.loaded < len(self._later):
            code = self._later[thread.loaded :]
            thread.load(code, self.compiled)
            thread.loaded += len(code)

    def bindings(
        self,
        query: str,
        input: Value = UNDEFINED,  # noqa: A002  # as above
        time: str | None = None,
    ) -> list[dict[str, Value]]:
        """Return the values of the variables of a query for each of its solutions; see `query`.

        Raises:
            RegoError: the query cannot be compiled.
            EvaluationError: a builtin, a conflict or a limit ended it.
        """
        with self._lock:
            if query not in self._queries:
                self._queries[query] = self._compile(lambda linked: linked.compile_query(query), query)
            name = self._queries[query]
        return self._solve(name, input, time=time)

    def solutions(
        self, body: Body, module: Module, limits: EvaluationLimits = UNLIMITED, time: str | None = None
    ) -> list[dict[str, Value]]:
        """Return the values of the variables of a query, written in the words of a module, for each of its solutions.

        Args:
            body: the query, as parsed.
            module: of this program, as parsed: names mean what they mean there.
            limits: of the evaluation.
            time: of the evaluation; see `query`.

        Raises:
            RegoError: the query cannot be compiled.
            EvaluationError: a builtin, a conflict or a limit ended it.
        """
        with self._lock:
            name = self._compile(lambda linked: linked.compile_body(body, module), "")
        return self._solve(name, UNDEFINED, limits, time)

    def _solve(
        self, name: str, input_: Value, limits: EvaluationLimits = UNLIMITED, time: str | None = None
    ) -> list[dict[str, Value]]:
        thread = self.thread()
        self._load_later(thread)
        thread.begin(input_, limits, time)
        return list(thread.call(thread.globals[name]))

    def _compile(self, compile_: Callable[[Linked], tuple[list[CodeType], str, Compiled | None]], query: str) -> str:
        if self._linked is None:
            raise RegoError(Diagnostic("query", "this program answers no queries", ModuleText("query", query), 0))
        code, name, recompiled = compile_(self._linked)
        if recompiled is not None:
            self.compiled = recompiled
            self._local = threading.local()
            self._handled = None
            self._queries.clear()
            self._later = []
        self._later += code
        return name
