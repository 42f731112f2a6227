"""Run the Rego unit tests of a bundle as `opa test` does, and find the lines that no test reaches."""

from __future__ import annotations

import hashlib
import pickle
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple

import orjson

from policyeng import cache
from policyeng.bundle import Bundle
from policyeng.bundle.analysis import analysis_of
from policyeng.bundle.files import text_of
from policyeng.bundle.left_out import LeftOutModule
from policyeng.engines.embedded import LIMITS, link_without_faulty
from policyeng.errors import BundleError, EngineError, UsageError
from policyeng.rego import (
    BuiltinError,
    Compiled,
    EvaluationError,
    Program,
    RegoError,
    UnsupportedError,
    link,
    load_function,
    load_pattern,
    parse_module,
)
from policyeng.rego.errors import remember_text
from policyeng.rego.paths import split_package, write_path
from policyeng.rego.syntax import (
    Call,
    CoveredPlace,
    Expr,
    Module,
    Ref,
    Rule,
    Scalar,
    Term,
    Var,
    constant_names,
    covered_places,
    root_name,
    walk,
)
from policyeng.rego.values import UNDEFINED, Value, make_set, to_key, to_text
from policyeng.testing.failing_expressions import FailingExpression, find_failing_expression

Outcome = Literal["passed", "failed", "error", "skipped"]
#: The first argument of a `print` that reports one case of a test with several; no text of a policy equals it.
_CASE = "\0case"
_PRINT = re.compile(r"^[^#\n]*\bprint\(", re.MULTILINE)
_TEST = re.compile(r"^[ \t]*(?:todo_)?test_", re.MULTILINE)
_NAMES = ("test_", "todo_test_")


@dataclass(frozen=True, slots=True)
class TestCase:
    """The result of one case of a test such as `test_x[note]`.

    Attributes:
        name: its key as Rego writes it, such as `"short"`; several keys are joined by commas.
        expression: where it fails, if that is known.
    """

    __test__ = False  # it is no test for pytest

    name: str
    outcome: Outcome
    expression: FailingExpression | None = None


@dataclass(frozen=True, slots=True)
class UnitTest:
    """The result of one Rego unit test.

    Attributes:
        package: as OPA writes it, such as `data.lib.words_test` or `data.hooks["test.target"]`.
        name: the name of the rule; the second one of a name in a package ends in `#01`, as in OPA.
        reason: empty for a test that passed.
        expression: where it fails, if that is known; each failing case has its own.
        cases: of a test with several, in the order in which they begin.
    """

    file: str
    line: int
    package: str
    name: str
    outcome: Outcome
    reason: str = ""
    expression: FailingExpression | None = None
    cases: tuple[TestCase, ...] = ()

    @property
    def outcomes(self) -> list[Outcome]:
        """What counts: the outcomes of its cases, or its own."""
        return [case.outcome for case in self.cases] or [self.outcome]


class TestRule(NamedTuple):
    """A rule that is a unit test, as it is stored with the compiled program.

    Attributes:
        path: of the rule below `data`.
        number: of the rule among those of its module, from 0.
        is_function: it has arguments.
        keys: the number of variable keys, 0 for a test without cases.
    """

    file: str
    line: int
    path: tuple[str, ...]
    number: int
    is_function: bool
    keys: int

    @property
    def package(self) -> str:
        """Return the package as OPA writes it."""
        return write_path(self.path[:-1])


class ModuleFile(NamedTuple):
    """A module to compile: of the policies, or of unit tests alone.

    Attributes:
        path: in the bundle.
        is_own: its unit tests run, and its lines count.
        is_foreign: of a bundle of others, which runs without it if it cannot be compiled.
        is_lenient: a builtin that fails is undefined in it.
    """

    path: str
    file: str
    text: str
    rego_v0: bool | None
    is_own: bool
    is_test: bool
    is_foreign: bool
    is_lenient: bool


@dataclass(slots=True)
class Session:
    """The Rego modules of a bundle with their unit tests, compiled to print and to record coverage.

    Attributes:
        program: of all modules.
        rules: the unit tests, in the order of files and lines.
        places: by file, the heads and expressions that coverage counts.
        link: returns the program with its syntax trees, which a stored one does not have, and the modules by file.
        left_out: modules of others that cannot be compiled.
        reached: the file and offset of each expression and head that was evaluated.
        cases: the keys of the cases that the running unit test has begun.
        running: what `print` names before its values: the test, or the policy and its case.
        time: what `time.now_ns()` is in unit tests: that of the run, as for `opa test`.
    """

    program: Program
    rules: list[TestRule]
    places: dict[str, list[CoveredPlace]]
    link: Callable[[], LinkedTests]
    left_out: tuple[LeftOutModule, ...] = ()
    reached: set[tuple[str, int]] = field(default_factory=set)
    cases: list[list[Value]] = field(default_factory=list)
    running: str = ""
    is_muted: bool = False
    time: str = field(default_factory=lambda: datetime.now(UTC).isoformat())

    def begin(self, name: str) -> None:
        """Set the name that `print` writes before its values."""
        self.running = name


class LinkedTests(NamedTuple):
    """A program with the syntax trees of its modules by file, and the modules that are not in it."""

    program: Program
    modules: dict[str, Module]
    left_out: tuple[LeftOutModule, ...]


def open_session(bundle: Bundle, show: Callable[[str], None], *, whole: bool = True, cover: bool = False) -> Session:
    """Compile the modules of a bundle with its unit tests; only its own directories are searched, not the lent ones.

    The compiled program is stored for the next run.

    Args:
        bundle: the bundle with the policies to test.
        show: called with each line that `print` in Rego writes.
        whole: take all unit tests and modules, not only those in the folders of the active policies.
        cover: record what is evaluated.

    Raises:
        EngineError: they do not compile.
    """
    return compile_session(
        _module_files(bundle, whole=whole),
        orjson.loads(bundle.data_bytes),
        show,
        name=bundle.name,
        left_out=bundle.left_out,
        cover=cover,
    )


def compile_session(
    files: Sequence[ModuleFile],
    data: Value,
    show: Callable[[str], None],
    *,
    name: str,
    left_out: Sequence[LeftOutModule] = (),
    cover: bool = False,
) -> Session:
    """Compile modules with their unit tests.

    Args:
        files: the modules.
        data: base data.
        show: called with each line that `print` in Rego writes.
        name: of what the modules are, for messages.
        left_out: modules of others that do not parse.
        cover: record what is evaluated.

    Raises:
        EngineError: a module of ours does not compile.
    """
    session: Session | None = None

    def print_(file: str, line: int, values: list[list[Value]]) -> None:
        if session is None or session.is_muted:
            return
        if values and values[0] == [_CASE]:
            session.cases.append([value for part in values[1:] for value in part])
            return
        running = f"{session.running}: " if session.running else ""
        for text in load_function("internal.print")([make_set(part) for part in values]):
            show(f"{file}:{line}: {running}{text}")

    def cover_(place: tuple[str, int]) -> None:
        if session is not None and not session.is_muted:
            session.reached.add(place)

    lenient = {module.file for module in files if module.is_lenient}

    @lru_cache(maxsize=1)
    def link_() -> LinkedTests:
        try:
            modules, unreadable = _parse(files)
            compiled = link_without_faulty(
                modules.values(),
                lambda parsed: link(
                    parsed, data, print_=print_, cover=cover_ if cover else None, lenient=lenient, has_time=True
                ),
                {module.file: module.path for module in files if module.is_foreign},
                (*left_out, *unreadable),
            )
        except RegoError as error:
            raise EngineError(f"the bundle and its tests do not compile:\n{error}", place=(name,)) from error
        return LinkedTests(compiled.program, modules, compiled.left_out)

    # Programs are compiled differently under a debugger or coverage.
    entry = "" if sys.gettrace() is not None else _entry(files, data, left_out, cover=cover)
    stored = cache.load(entry) if entry else None
    if stored is not None:
        with suppress(ValueError):
            program = Program(
                Compiled.load(stored[0]),
                data,
                print_=print_,
                cover=cover_ if cover else None,
                handled=lambda: link_().program.compile_handled(),
            )
            rules, places, all_left_out = pickle.loads(stored[1])  # noqa: S301  # a private file, its digest verified
            for module in files:
                remember_text(module.file, module.text)
            session = Session(program, rules, places, link_, all_left_out)
            return session
    linked = link_()
    own = [module for module in files if module.is_own and module.file in linked.modules]
    rules = [rule for module in own for rule in _test_rules(linked.modules[module.file])]
    counted = [linked.modules[module.file] for module in own if not module.is_test]
    places = {module.source.file: list(covered_places(module)) for module in counted} if cover else {}
    if entry:
        cache.store(entry, [linked.program.compiled.dump(), pickle.dumps((rules, places, linked.left_out), protocol=5)])
    session = Session(linked.program, rules, places, link_, linked.left_out)
    return session


def _module_files(bundle: Bundle, *, whole: bool) -> list[ModuleFile]:
    """Return the modules of a bundle, and those of its unit tests."""
    roots = {origin.root: origin.manifest for origin in bundle.origins if not origin.lent and origin.root.is_dir()}
    folders = (
        list(roots) if whole else [root / Path(policy.file).parent for policy in bundle.policies for root in roots]
    )
    files = []
    for path, text in bundle.modules:
        file = bundle.places[path]
        is_own = any(Path(file).is_relative_to(folder) for folder in folders)
        kinds = path in bundle.foreign, path in bundle.lenient
        files.append(ModuleFile(path, file, text, path in bundle.rego_v0, is_own, False, *kinds))
    ours = {PurePosixPath(policy.file) for policy in (*bundle.policies, *bundle.idle) if policy.input_form == "policy"}
    foreign = {origin.root for origin in bundle.origins if ours.isdisjoint(origin.tree)}
    for test in sorted({path for folder in folders for path in folder.rglob("*_test.rego")}):
        root = next(root for root in roots if test.is_relative_to(root))
        inner = PurePosixPath(test.relative_to(root).as_posix())
        text, is_v0 = text_of(test.read_bytes(), test), roots[root].is_v0(inner)
        kinds = root in foreign, root in foreign and roots[root].builtin_errors != "error"
        files.append(ModuleFile(str(inner), str(test), text, is_v0, True, True, *kinds))
    return files


def _parse(files: Iterable[ModuleFile]) -> tuple[dict[str, Module], list[LeftOutModule]]:
    """Return the syntax trees by file, with what makes the cases of tests known, and what does not parse."""
    modules: dict[str, Module] = {}
    unreadable = []
    for module in files:
        # A test is read in the version that a policy would be.
        try:
            rego_v0 = analysis_of(module.text, module.rego_v0, module.file).rego_v0
        except BundleError as error:
            if not module.is_foreign:
                raise
            unreadable.append(LeftOutModule.unreadable(PurePosixPath(module.path), module.text, error))
            continue
        modules[module.file] = parse_module(module.file, module.text, 0 if rego_v0 else 1)
    own = [modules[module.file] for module in files if module.is_own and module.file in modules]
    _number_duplicates(own)
    for tree in own:
        for _, rule in _find_tests(tree):
            _report_cases(rule)
    return modules, unreadable


def _entry(files: Iterable[ModuleFile], data: Value, left_out: Iterable[LeftOutModule], *, cover: bool) -> str:
    """Return the cache key of the compiled tests, from the compiler, the modules and the data."""
    parts = (str(part) for module in files for part in module)
    reasons = (module.reason for module in left_out)
    code = cache.state_of_code("rego", "testing")
    digest = hashlib.sha256(orjson.dumps(data, option=orjson.OPT_SORT_KEYS)).hexdigest()
    return cache.key_of("tests", sys.version, code, str(cover), digest, *parts, *reasons)


def needs_session(bundle: Bundle) -> bool:
    """Check whether a bundle has unit tests or prints; its cached program has neither."""
    roots = [origin.root for origin in bundle.origins if not origin.lent and origin.root.is_dir()]
    own = [
        text for path, text in bundle.modules if any(Path(bundle.places[path]).is_relative_to(root) for root in roots)
    ]
    if any(_PRINT.search(text) for _, text in bundle.modules) or any(map(_TEST.search, own)):
        return True
    return any(path for root in roots for path in root.rglob("*_test.rego"))


def _find_tests(module: Module) -> Iterator[tuple[int, Rule]]:
    for index, rule in enumerate(module.rules):
        if isinstance(rule.head.ref.head, Var) and rule.head.ref.head.name.startswith(_NAMES):
            yield index, rule


def _test_rules(module: Module) -> Iterator[TestRule]:
    package = constant_names(module.package.path)
    for index, rule in _find_tests(module):
        line = module.source.position(rule.start)[0]
        path = (*package, root_name(rule.head.ref))
        keys = len(rule.head.ref.path) if _case_variables(rule) else 0
        yield TestRule(module.source.file, line, path, index, bool(rule.head.args), keys)


def _number_duplicates(modules: Iterable[Module]) -> None:
    """Give the later of several tests with one name in a package a number, because OPA runs each rule separately."""
    seen: Counter[tuple[str, ...]] = Counter()
    for module in modules:
        for _, rule in _find_tests(module):
            head = rule.head.ref.head
            key = *constant_names(module.package.path), root_name(rule.head.ref)
            if number := seen[key]:
                rule.head.ref.head = Var(head.start, head.end, f"{key[-1]}#{number:02}")
            seen[key] += 1


def _case_variables(rule: Rule) -> set[str]:
    """Return the variables in the keys of a test such as `test_x[note]`."""
    return {node.name for node in walk(rule.head.ref.path) if isinstance(node, Var)}


def _report_cases(rule: Rule) -> None:
    """Make a test such as `test_x[note]` report each case that it begins, whether the case passes or not."""
    names = _case_variables(rule)
    if not names:
        return
    for index, expression in enumerate(rule.body):
        names -= {node.name for node in walk(expression) if isinstance(node, Var)}
        if not names:
            at = expression.end
            marker: list[Term] = [Scalar(at, at, _CASE), *rule.head.ref.path]
            call = Call(at, at, Ref(at, at, Var(at, at, "print"), []), marker)
            rule.body.insert(index + 1, Expr(at, at, call, generated=True))
            return


def select_tests(session: Session, pattern: str) -> None:
    """Keep only the tests whose name, such as `data.lib.words_test.test_short`, has a match of a regular expression.

    Args:
        session: the tests.
        pattern: with the syntax of OPA.

    Raises:
        UsageError: it is no regular expression, or no name matches.
    """
    try:
        matches = load_pattern(pattern)
    except (BuiltinError, UnsupportedError) as error:
        raise UsageError(f"`{pattern}` is not a regular expression: {error}", remedy="see RE2 for the syntax") from None
    session.rules = [rule for rule in session.rules if matches(f"{rule.package}.{rule.path[-1]}")]
    if not session.rules:
        raise UsageError(
            f"no Rego test has a name that `{pattern}` matches", remedy="`policyeng test --verbose` lists the tests"
        )


def run_unit_tests(session: Session) -> Iterator[UnitTest]:
    """Run each unit test, in the order of files and lines; a module that is left out is an error."""
    paths = {rule.path for rule in session.rules}
    for module in session.left_out:
        package = split_package(module.package)
        if paths.isdisjoint((*package, name) for name in module.names):
            name = PurePosixPath(module.path).name
            yield UnitTest(module.path, 1, write_path(package), name, "error", module.reason)
    for rule in session.rules:
        session.running = f"{rule.package}.{rule.path[-1]}"
        yield _run(session, rule)
    session.running = ""


def _run(session: Session, rule: TestRule) -> UnitTest:
    def result(
        outcome: Outcome, reason: str = "", expression: FailingExpression | None = None, cases: Sequence[TestCase] = ()
    ) -> UnitTest:
        package, name = rule.package, rule.path[-1]
        return UnitTest(rule.file, rule.line, package, name, outcome, reason, expression, tuple(cases))

    if rule.path[-1].startswith("todo_"):
        return result("skipped", "to do")
    if rule.is_function:
        return result("error", "a test must not have arguments")
    if rule.path not in session.program.compiled.rules:
        reasons = (module.reason for module in session.left_out if rule.path[-1].partition("#")[0] in module.names)
        return result("error", next(reasons, "the module cannot be compiled"))
    session.cases.clear()
    thread = session.program.thread()
    thread.begin(UNDEFINED, LIMITS, session.time)
    try:
        value = thread.call(thread.globals[session.program.compiled.rules[rule.path]])
    except EvaluationError as error:
        return result("error", str(error))
    if rule.keys and isinstance(value, dict):
        keys = list({tuple(map(to_key, case)): case for case in session.cases}.values())
        cases = [_run_case(session, rule, value, case) for case in keys]
        failed = ", ".join(case.name for case in cases if case.outcome == "failed")
        if failed or not value:
            if failed:
                return result("failed", f"the cases fail: {failed}", cases=cases)
            return result("failed", "the test has no cases", _explain(session, rule))
        return result("passed", cases=cases)
    if value is True:
        return result("passed")
    shown = "undefined" if value is UNDEFINED else f"{to_text(value)[:200]}, not true"
    return result("failed", f"the result is {shown}", _explain(session, rule))


def _run_case(session: Session, rule: TestRule, value: Value, case: Sequence[Value]) -> TestCase:
    for key in case:
        value = value.get(to_key(key), UNDEFINED) if isinstance(value, dict) else UNDEFINED
    name = ", ".join(map(to_text, case))
    return TestCase(name, "passed") if value is True else TestCase(name, "failed", _explain(session, rule, case))


def _explain(session: Session, rule: TestRule, case: Sequence[Value] = ()) -> FailingExpression | None:
    """Return where a test fails; nothing that is evaluated for this is printed or counted."""
    program, modules, _ = session.link()
    module = modules[rule.file]
    session.is_muted = True
    try:
        return find_failing_expression(
            lambda body: program.solutions(body, module, LIMITS, session.time), module, module.rules[rule.number], case
        )
    finally:
        session.is_muted = False


class LineCoverage(NamedTuple):
    """The lines of a file that count, as `opa test --coverage` counts them.

    A line on which some expression was evaluated and another was not is in both lists.
    """

    covered: list[int]
    missed: list[int]


def coverage_of(session: Session) -> dict[str, LineCoverage]:
    """Return the lines that the tests reached, and did not reach, by file."""
    found = {}
    for file, places in session.places.items():
        reached = {place for place in places if (file, place.offset) in session.reached}
        covered = {line for place in reached for line in place.lines}
        missed = {line for place in places if place.is_required and place not in reached for line in place.lines}
        found[file] = LineCoverage(sorted(covered), sorted(missed))
    return found


def percentage(coverage: Mapping[str, LineCoverage]) -> float:
    """Return the part of the lines that is covered; a bundle without Rego is covered."""
    covered, missed = (sum(len(lines[number]) for lines in coverage.values()) for number in (0, 1))
    return 100 * covered / (covered + missed) if covered + missed else 100.0
