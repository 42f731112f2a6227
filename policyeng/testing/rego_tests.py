"""Run the Rego unit tests of a bundle as `opa test` does, and find the lines that no test reaches."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from policyeng.bundle import Bundle
from policyeng.engines.embedded import LIMITS, modules_of
from policyeng.errors import EngineError
from policyeng.rego import EvaluationError, Program, RegoError, link, load_function, parse_module
from policyeng.rego.paths import write_part, write_path
from policyeng.rego.syntax import (
    Call,
    Expr,
    Module,
    Ref,
    Rule,
    Scalar,
    Term,
    Var,
    constant_names,
    lines_of,
    walk,
)
from policyeng.rego.values import UNDEFINED, Value, make_set, to_key, to_text

Outcome = Literal["passed", "failed", "error", "skipped"]
#: The first argument of a `print` that reports one case of a test with several; no text of a policy equals it.
_CASE = "\0case"
_PRINT = re.compile(r"^[^#\n]*\bprint\(", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class UnitTest:
    """The result of one Rego unit test.

    Attributes:
        package: such as `data.lib.words_test` or `data.hooks["test.target"]`.
        name: the name of the rule; the second one of a name in a package ends in `#01`, as in OPA.
        reason: empty for a test that passed.
    """

    file: str
    line: int
    package: str
    name: str
    outcome: Outcome
    reason: str = ""


@dataclass(slots=True)
class Session:
    """The Rego modules of a bundle with their unit tests, compiled to print and to record coverage.

    Attributes:
        program: of all modules.
        modules: the modules that coverage is measured for.
        tests: the modules of unit tests.
        reached: the file and line of each expression and head that was evaluated.
        cases: the cases that the running unit test has begun.
    """

    program: Program
    modules: list[Module]
    tests: list[Module]
    reached: set[tuple[str, int]] = field(default_factory=set)
    cases: list[Value] = field(default_factory=list)


def open_session(bundle: Bundle, show: Callable[[str], None], *, whole: bool = True, cover: bool = False) -> Session:
    """Compile the modules of a bundle with its unit tests; only its own directories are searched, not the lent ones.

    Args:
        bundle: the bundle with the policies to test.
        show: called with each line that `print` in Rego writes.
        whole: take all unit tests and modules, not only those in the folders of the active policies.
        cover: record what is evaluated.

    Raises:
        EngineError: they do not compile.
    """
    reached: set[tuple[str, int]] = set()
    cases: list[Value] = []

    def print_(file: str, line: int, values: list[list[Value]]) -> None:
        if values and values[0] == [_CASE]:
            cases.extend(values[1])
            return
        for text in load_function("internal.print")([make_set(part) for part in values]):
            show(f"{file}:{line}: {text}")

    roots = [origin.root for origin in bundle.origins if not origin.lent and origin.root.is_dir()]
    folders = roots if whole else [root / Path(policy.file).parent for policy in bundle.policies for root in roots]
    try:
        files = sorted({path for folder in folders for path in folder.rglob("*_test.rego")})
        tests = [parse_module(str(path), path.read_text(encoding="utf-8")) for path in files]
        _number_duplicates(tests)
        for module in tests:
            for rule in _find_tests(module):
                _report_cases(rule)
        modules = modules_of(bundle)
        program = link(
            [*modules, *tests], bundle.data, print_=print_, cover=reached.add if cover else None, has_time=True
        )
    except RegoError as error:
        raise EngineError(f"the bundle and its tests do not compile:\n{error}", place=(bundle.name,)) from error
    own = [module for module in modules if any(Path(module.source.file).is_relative_to(folder) for folder in folders)]
    return Session(program, own, tests, reached, cases)


def needs_session(bundle: Bundle) -> bool:
    """Check whether a bundle has unit tests or prints; its cached program has neither."""
    roots = [origin.root for origin in bundle.origins if not origin.lent and origin.root.is_dir()]
    prints = any(_PRINT.search(text) for _, text in bundle.modules)
    return prints or any(path for root in roots for path in root.rglob("*_test.rego"))


def _find_tests(module: Module) -> Iterator[Rule]:
    for rule in module.rules:
        if isinstance(rule.head.ref.head, Var) and rule.head.ref.head.name.startswith(("test_", "todo_test_")):
            yield rule


def _number_duplicates(modules: Iterable[Module]) -> None:
    """Give the later of several tests with one name in a package a number, because OPA runs each rule separately."""
    seen: Counter[tuple[tuple[str, ...], str]] = Counter()
    for module in modules:
        for rule in _find_tests(module):
            head = rule.head.ref.head
            if isinstance(head, Var) and not rule.head.ref.path:
                key = constant_names(module.package.path), head.name
                if number := seen[key]:
                    rule.head.ref.head = Var(head.start, head.end, f"{head.name}#{number:02}")
                seen[key] += 1


def _report_cases(rule: Rule) -> None:
    """Make a test such as `test_x[note]` report each case that it begins, whether the case passes or not."""
    path = rule.head.ref.path
    names = {part.name for part in path if isinstance(part, Var)}
    if len(path) != 1 or not names:
        return
    for index, expression in enumerate(rule.body):
        names -= {node.name for node in walk(expression) if isinstance(node, Var)}
        if not names:
            at = expression.end
            marker: list[Term] = [Scalar(at, at, _CASE), path[0]]
            call = Call(at, at, Ref(at, at, Var(at, at, "print"), []), marker)
            rule.body.insert(index + 1, Expr(at, at, call))
            return


def run_unit_tests(session: Session) -> Iterator[UnitTest]:
    """Run each unit test, in the order of files and lines."""
    for module in session.tests:
        package = write_path(constant_names(module.package.path))
        for rule in _find_tests(module):
            head = rule.head.ref.head
            name = head.name if isinstance(head, Var) else ""
            outcome, reason = _run(session, f"{package}{write_part(name)}", name, rule)
            line = module.source.position(rule.start)[0]
            yield UnitTest(module.source.file, line, package, name, outcome, reason)


def _run(session: Session, path: str, name: str, rule: Rule) -> tuple[Outcome, str]:
    if name.startswith("todo_"):
        return "skipped", "to do"
    if rule.head.args:
        return "error", "a test must not have arguments"
    session.cases.clear()
    thread = session.program.thread()
    thread.begin(UNDEFINED, LIMITS)
    try:
        value = thread.call(thread.function(path))
    except EvaluationError as error:
        return "error", str(error)
    if rule.head.ref.path and isinstance(value, dict):
        failed = [to_text(case) for case in session.cases if value.get(to_key(case), UNDEFINED) is not True]
        if failed or not value:
            return "failed", f"the cases fail: {', '.join(failed)}" if failed else "the test has no cases"
        return "passed", ""
    if value is True:
        return "passed", ""
    return (
        "failed",
        "the result is undefined" if value is UNDEFINED else f"the result is {to_text(value)[:200]}, not true",
    )


def lines_missed(session: Session) -> Mapping[str, list[int]]:
    """Return the lines that no test reached, by file."""
    missed = {}
    for module in session.modules:
        file = module.source.file
        if found := sorted(line for line in lines_of(module) if (file, line) not in session.reached):
            missed[file] = found
    return missed
