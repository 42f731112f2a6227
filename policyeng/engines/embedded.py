"""Evaluate Rego policies in this process: compiled once per bundle, every pair within limits."""

from __future__ import annotations

import hashlib
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from functools import lru_cache
from math import inf, isinf
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import orjson

from policyeng import __version__, cache, prebuilt, rego
from policyeng.bundle import Bundle, Policy
from policyeng.bundle.policy_types import Role
from policyeng.engines.request import (
    PASSES,
    READ_ONLY,
    SKIPPED,
    SWITCHED_OFF,
    VIEWS,
    EvaluationRequest,
    Judgement,
    Marking,
    Pair,
    count_overrun,
    is_switched_off,
)
from policyeng.engines.watchdog import WALL_LIMIT, DeadlineExceededError, restart_deadline, within_deadline
from policyeng.errors import EngineError
from policyeng.models import Denial, ExemptionMark, JsonObject, Unknown
from policyeng.progress import counted
from policyeng.rego import Compiled, EvaluationLimits, Members, Thread, markers
from policyeng.rego.errors import remember_text
from policyeng.rego.markers import Cause
from policyeng.rego.paths import read_path
from policyeng.rego.tracing import RecordedReads
from policyeng.rego.values import UNDEFINED, Value, members, to_json

if TYPE_CHECKING:
    from policyeng.bundle.left_out import LeftOutModule
    from policyeng.rego.clock import Clock
    from policyeng.rego.decided_results import HandledThread, MarkedThread
    from policyeng.rego.syntax import Module


def convert_conftest_result(policy: Policy, elements: Iterable[object], exceptions: object) -> Judgement:
    """Return the result of a Conftest policy from the elements of its rule and of its `exception` rule, as JSON."""
    try:
        denials = tuple(_conftest_denial(element) for element in elements)
    except TypeError as error:
        return Judgement(error=str(error))
    return Judgement(denials=denials, excepted=_find_exception(policy, exceptions) if denials else None)


def _conftest_denial(element: object) -> Denial:
    """Convert an element; known members become fields if they have the right type, and the rest becomes `actual`."""
    if isinstance(element, str):
        return Denial(msg=element)
    if not isinstance(element, dict) or not isinstance(element.get("msg"), str):
        raise TypeError("an element of the rule is neither a string nor an object with a string `msg`")
    rest = {key: value for key, value in element.items() if key != "msg"}
    path = rest.pop("path") if isinstance(rest.get("path"), str) and rest["path"].startswith("/") else ""
    expected = rest.pop("expected", None)
    actual = rest["actual"] if set(rest) == {"actual"} else rest or None
    return Denial(msg=element["msg"], path=path, actual=actual, expected=expected)


def _find_exception(policy: Policy, exceptions: object) -> ExemptionMark | None:
    """Return the mark if `exception[_][_] == "run_as_root"`, as Conftest defines it for `deny_run_as_root`."""
    from policyeng.bundle.external_policies import exception_name  # few policies are of this kind

    rules = dict(policy.rules)
    name = exception_name(rules["deny"].rpartition(".")[2])
    if not any(value == name for inner in _members(exceptions) for value in _members(inner)):
        return None
    reason = f"the rule excepts `{name}`" if name else "the rule excepts this rule"
    return ExemptionMark(id=rules["exception"], category="exception", reason=reason)


def _members(value: object) -> Iterable[object]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


#: The name of the snapshots with markers in `EvaluationRequest.made`.
_MARKED = "marked documents"

#: The limits of one pair; the watchdog enforces the limit of CPU time.
LIMITS = EvaluationLimits(seconds=WALL_LIMIT, steps=4_000_000, size=2_000_000)

_MEMBERS = {"msg", "path", "actual", "expected"}


class CompiledBundle(NamedTuple):
    """The program of a bundle, and the modules of others that are not in it, because they cannot be compiled."""

    program: rego.Program
    left_out: tuple[LeftOutModule, ...] = ()


#: Whether the types of bundles are checked.
_CHECKS_TYPES: ContextVar[bool] = ContextVar("_CHECKS_TYPES", default=False)
#: The digest of a bundle, and what replaces its compiled program.
_USED: ContextVar[tuple[str, CompiledBundle | None]] = ContextVar("_USED", default=("", None))


def version() -> str:
    """Return the version of the Rego engine."""
    return __version__


class Documents(NamedTuple):
    """What policies read of a snapshot: the value of `input.snapshot`, and the documents of its subjects."""

    snapshot: JsonObject
    subjects: Sequence[Value]


def documents_of(work: EvaluationRequest) -> Documents:
    """Return the snapshot as policies see it; markers are put in once."""
    if work.marking is None:
        return Documents(work.document, work.documents)
    [marked] = mark_copies(work.made, [work.marking], work.document, work.documents)
    return marked


def mark_copies(
    made: dict[str, Any], markings: Iterable[Marking], document: JsonObject, subjects: Sequence[Value]
) -> list[Documents]:
    """Return a copy of a snapshot with each of some markings, made once."""
    copies: dict[frozenset[str], Documents] = made.setdefault(_MARKED, {})
    found = []
    for marking in markings:
        if marking.named not in copies:
            copies[marking.named] = Documents(*marking.mark(document, subjects))
        found.append(copies[marking.named])
    return found


def change_copies(made: Mapping[str, Any], *, are_kept: bool) -> dict[str, Any]:
    """Return the data that engines derived from a snapshot for the same one after a change in place.

    Copies with markers can have changed as well; of them, only what is cached by their identity is then left out.
    """
    kept = {name: value for name, value in made.items() if name not in (_MARKED, READ_ONLY, VIEWS)}
    if are_kept:
        kept[_MARKED] = {named: Documents({**copy.snapshot}, copy.subjects) for named, copy in made[_MARKED].items()}
    return kept


class _Rules(NamedTuple):
    """The functions of a policy in one thread; None if the policy does not have the rule."""

    policy: Policy
    applies: Callable[[], Value] | None
    deny: Callable[[], Value]
    unknown: Callable[[], Value] | None
    exception: Callable[[], Value] | None


class Recording:
    """The recorded reads of pairs.

    Attributes:
        names: the names of parts of the input that are separate documents, by the `id()` of the object.
        gave_up: the pairs that use the clock in another way than in comparisons.
    """

    def __init__(self, names: Mapping[int, str]) -> None:
        """Create an empty recording."""
        self.names = names
        self.reads: dict[Pair, Sequence[RecordedReads]] = {}
        self.gave_up: set[Pair] = set()


def evaluate_embedded(work: EvaluationRequest, recording: Recording | None = None) -> Iterator[list[Judgement]]:
    """Yield for each policy of a request, all of which are in Rego, its results in the order of the positions.

    Args:
        work: the request.
        recording: stores what each pair reads from its input.

    Raises:
        EngineError: the bundle does not compile.
    """
    evaluator = RegoEvaluator(work, recording)
    for policy, positions in counted(work.positions.items(), len(work.positions)):
        judgements: list[Judgement] = []
        while len(judgements) < len(positions):
            try:
                evaluator.evaluate_each(policy, positions, judgements)
            except DeadlineExceededError as error:
                # The pair can have ended between its limit and the exception.
                del judgements[evaluator.evaluating :]
                judgements.append(Judgement(error=f"limit: {error}", is_limit=True))
                count_overrun(work.bundle, work.bundle.policies[policy])
                evaluator = RegoEvaluator(work, recording, is_new=True)
        yield judgements


def evaluate_pairs(work: EvaluationRequest, pairs: Sequence[Pair]) -> list[Judgement]:
    """Return the results of some pairs of Rego policies; the pairs of a policy follow each other."""
    return [judgement for judgements in evaluate_embedded(work.with_pairs(pairs)) for judgement in judgements]


class RegoEvaluator:
    """An evaluator of Rego policies in this thread; it uses the plain form unless a policy reads something unknown.

    Attributes:
        evaluating: the index of the position that `evaluate_each` evaluates.
    """

    def __init__(self, work: EvaluationRequest, recording: Recording | None = None, *, is_new: bool = False) -> None:
        """Prepare the request; with `is_new`, do not reuse state of earlier evaluations in this thread."""
        self.evaluating = 0
        self._work = work
        self._recording = recording
        self._documents = documents_of(work)
        self._parameters = _parameters(work)
        compiled = compile_bundle(work.bundle)
        self._program = compiled.program
        self._faults = _faults_of(work.bundle, compiled)
        if is_new:
            self._program.new_thread()
        is_plain = work.marking is None and recording is None
        self._thread = self._program.thread() if is_plain else self._program.marked_thread()
        self._thread.joins.use(self._documents.snapshot)
        self._as_of = work.as_of.isoformat().replace("+00:00", "Z")

    def evaluate_each(self, number: int, positions: Sequence[int], judgements: list[Judgement]) -> None:
        """Evaluate a policy for the subjects at some positions, and append the results to those that are there.

        Raises:
            DeadlineExceededError: the pair with the index `evaluating` takes too long.
        """
        work = self._work
        policy = work.bundle.policies[number]
        is_recorded = self._recording is not None or (
            work.clock is not None and work.clock.unchanged is not None and work.bundle.clocked[number]
        )
        while len(judgements) < len(positions):
            if work.bundle.overruns and is_switched_off(work.bundle, policy):
                judgements += [SWITCHED_OFF] * (len(positions) - len(judgements))
            elif is_recorded or number in self._faults:
                self.evaluating = len(judgements)
                [pair] = work.pairs_of(number, positions[self.evaluating : self.evaluating + 1])
                if self._recording is not None and work.clock is not None:
                    work.clock.restart()
                judgements.append(self.evaluate(pair))
                if self._recording is not None and work.clock is not None and work.clock.unchanged is None:
                    self._recording.gave_up.add(pair)
            else:
                rules = _rules_of(policy, self._thread)
                within_deadline(self._thread.globals, self._evaluate_run, rules, number, positions, judgements)
                if len(judgements) < len(positions) and not is_switched_off(work.bundle, policy):
                    self.evaluating = len(judgements)
                    [pair] = work.pairs_of(number, positions[self.evaluating : self.evaluating + 1])
                    judgements.append(self._evaluate_undecided(policy, pair))

    def _evaluate_run(self, rules: _Rules, number: int, positions: Sequence[int], judgements: list[Judgement]) -> None:
        """Evaluate pairs of a policy until one reads something unknown, or until the policy is switched off."""
        work, thread, policy, steps = self._work, self._thread, rules.policy, self._thread.steps
        subjects, as_of = work.subjects, self._as_of
        for index in range(len(judgements), len(positions)):
            restart_deadline()
            self.evaluating = index
            position = positions[index]
            thread.begin(
                self._input(policy, Pair(number, position, subjects[position].workspace), as_of), LIMITS, as_of
            )
            try:
                judgement = _evaluate(rules, thread)
            except rego.Undecided:
                return
            if thread.ignored:
                judgement = judgement._replace(builtin_errors=tuple(thread.ignored))
            judgements.append(judgement)
            if steps.used > LIMITS.steps:
                count_overrun(work.bundle, policy)
                if is_switched_off(work.bundle, policy):
                    return

    def _evaluate_undecided(self, policy: Policy, pair: Pair) -> Judgement:
        """Evaluate a pair that reads something unknown.

        Raises:
            DeadlineExceededError: it takes too long.
        """
        handled = self._program.handled_thread()
        return self._within(handled, _rules_of(policy, handled), pair, self._evaluate_handled)

    def evaluate(self, pair: Pair) -> Judgement:
        """Evaluate a pair.

        Raises:
            DeadlineExceededError: it takes too long.
        """
        return self._evaluate_partly(pair, self._evaluate)

    def _evaluate_partly(self, pair: Pair, evaluate: Callable[[Pair], Judgement]) -> Judgement:
        """Evaluate a policy; if modules of it are left out, what the others deny is denied, and nothing passes."""
        faults = self._faults.get(pair.policy)
        if faults is None:
            return evaluate(pair)
        rules = dict(self._work.bundle.policies[pair.policy].rules)
        if read_path(rules["deny"]) in self._program.compiled.rules:
            judgement = evaluate(pair)
            if judgement.denials:
                return judgement._replace(unknowns=(*judgement.unknowns, *map(Unknown, faults)))
        return Judgement(error="; ".join(faults))

    def _evaluate(self, pair: Pair) -> Judgement:
        policy = self._work.bundle.policies[pair.policy]
        clock = self._work.clock
        if clock is not None and clock.unchanged is not None and self._work.bundle.clocked[pair.policy]:
            found = self._evaluate_recording_clock(policy, pair, clock)
            if found is not None:
                return found
        try:
            return self._within(self._thread, _rules_of(policy, self._thread), pair, _evaluate_pair)
        except rego.Undecided:
            return self._evaluate_undecided(policy, pair)

    def _evaluate_recording_clock(self, policy: Policy, pair: Pair, clock: Clock) -> Judgement | None:
        """Evaluate with a clock that records comparisons; None if the policy uses the clock in another way."""
        thread = self._program.clock_thread()
        as_of = thread.show(clock)
        thread.joins.use(self._documents.snapshot)
        try:
            found = self._within(thread, _rules_of(policy, thread), pair, _evaluate_pair, as_of)
        except rego.Undecided:
            found = None
        if found is None or found.is_partial:
            clock.give_up()
            return None
        return found

    def _within(
        self, thread: Thread, rules: _Rules, pair: Pair, function: Callable[..., Judgement], as_of: Value = None
    ) -> Judgement:
        """Evaluate within the limits, and count an overrun if a pair takes too many steps."""
        time = self._as_of if as_of is None else as_of
        thread.begin(self._input(rules.policy, pair, time), LIMITS, time)
        if self._recording is None:
            found = within_deadline(thread.globals, function, rules, pair, thread)
        else:
            found = self._record(thread, pair, function, rules)
        if thread.steps.used > LIMITS.steps:
            count_overrun(self._work.bundle, rules.policy)
        return found._replace(builtin_errors=tuple(thread.ignored)) if thread.ignored else found

    def _record(self, thread: Thread, pair: Pair, function: Callable[..., Judgement], rules: _Rules) -> Judgement:
        recording = cast("Recording", self._recording)
        with cast("MarkedThread", thread).recording(recording.names) as recorder:
            found = within_deadline(thread.globals, function, rules, pair, thread)
        recording.reads[pair] = [read for read in recorder.reads if read.document != "data"]
        return found

    def explain(self, pair: Pair, thread: HandledThread) -> Judgement:
        """Evaluate a pair in a thread that records more than its result.

        Raises:
            DeadlineExceededError: it takes too long.
        """
        policy = self._work.bundle.policies[pair.policy]
        function = self._evaluate_handled if policy.input_form == "policy" else _evaluate_pair
        return self._evaluate_partly(pair, lambda pair: self._within(thread, _rules_of(policy, thread), pair, function))

    def _input(self, policy: Policy, pair: Pair, as_of: Value) -> Value:
        documents = self._documents
        subject = documents.subjects[pair.subject]
        if policy.input_form != "policy":
            return subject if policy.input_form == "document" else _review(subject, self._parameters[pair.policy])
        return {
            "resource": subject,
            "workspace": documents.subjects[pair.workspace] if pair.workspace >= 0 else None,
            "snapshot": documents.snapshot,
            "parameters": self._parameters[pair.policy],
            "as_of": as_of,
        }

    def _evaluate_handled(self, rules: _Rules, pair: Pair, thread: HandledThread) -> Judgement:
        """Find the results that do not depend on unknown values; a definite denial always counts."""
        causes: list[Cause] = []
        elements: dict[Role, list[Value]] = {}
        try:
            if rules.applies is not None:
                applies = thread.decide(rules.applies)
                if applies.undecided:
                    return Judgement(unknowns=self._unknowns(applies.undecided, pair), is_partial=True)
                if applies.value is not True:
                    return _not_applying(rules.policy, applies.value)
            rules_by_role: tuple[tuple[Role, Callable[[], Value] | None], ...] = (
                ("deny", rules.deny),
                ("unknown", rules.unknown),
            )
            for role, function in rules_by_role:
                if function is not None:
                    value, undecided = thread.decide(function)
                    elements[role] = _elements(rules.policy, role, _render_markers(value))
                    causes += undecided
            return Judgement(
                denials=tuple(map(_denial, elements["deny"])),
                unknowns=(*map(_unknown, elements.get("unknown", ())), *self._unknowns(causes, pair)),
                is_partial=True,
            )
        except (rego.EvaluationError, TypeError, ValueError) as error:
            return Judgement(error=str(error), is_partial=True)

    def _unknowns(self, causes: Iterable[Cause], pair: Pair) -> tuple[Unknown, ...]:
        marking = self._work.marking
        return marking.unknowns(causes, pair.subject, pair.workspace) if marking is not None else ()


def _parameters(work: EvaluationRequest) -> list[JsonObject]:
    """Return the parameters as plain objects and lists, which are created once."""
    if "parameters" not in work.made:
        work.made["parameters"] = orjson.loads(orjson.dumps(work.parameters))
    found: list[JsonObject] = work.made["parameters"]
    return found


def _rules_of(policy: Policy, thread: Thread) -> _Rules:
    known: _Rules | None = thread.kept.get(id(policy))
    if known is not None and known.policy is policy:
        return known
    functions = {
        role: thread.function(path) if role == "exception" else thread.uncached(path) for role, path in policy.rules
    }
    found = thread.kept[id(policy)] = _Rules(
        policy, functions.get("applies"), functions["deny"], functions.get("unknown"), functions.get("exception")
    )
    return found


def _evaluate_pair(rules: _Rules, _: Pair, thread: Thread) -> Judgement:
    """Evaluate the rules of a policy; see `_evaluate`."""
    return _evaluate(rules, thread)


def _evaluate(rules: _Rules, thread: Thread) -> Judgement:
    """Evaluate the rules of a policy.

    Raises:
        Undecided: they read a marker.
    """
    policy = rules.policy
    try:
        if rules.applies is not None and (applies := thread.call(rules.applies)) is not True:
            return _not_applying(policy, applies)
        denied = thread.call(rules.deny)
        unknown = thread.call(rules.unknown) if rules.unknown is not None else None
        if not denied and not unknown:
            return PASSES
        if policy.input_form != "policy":
            excepted = thread.call(rules.exception) if rules.exception is not None else UNDEFINED
            exceptions = [] if excepted is UNDEFINED else json_value(excepted)
            return convert_conftest_result(policy, _elements(policy, "deny", denied), exceptions)
    except (rego.EvaluationError, TypeError, ValueError) as error:
        return Judgement(error=str(error))
    is_partial = False
    if type(thread) is not Thread:
        is_partial = markers.deep_causes([denied, unknown]) != ()
        denied, unknown = _render_markers(denied), _render_markers(unknown)
    try:
        return Judgement(
            denials=tuple(map(_denial, _elements(policy, "deny", denied))),
            unknowns=tuple(map(_unknown, _elements(policy, "unknown", unknown))),
            is_partial=is_partial,
        )
    except (TypeError, ValueError) as error:
        return Judgement(error=str(error))


def _not_applying(policy: Policy, applies: Value) -> Judgement:
    if applies is False or applies is UNDEFINED:
        return SKIPPED
    return Judgement(error=f"evaluation: {dict(policy.rules)['applies']} is not a boolean")


def _render_markers(value: Value) -> Value:
    """Return the result of a rule with markers in the form for reports."""
    return Members(map(markers.show, value)) if type(value) is Members else markers.show(value)


def _elements(policy: Policy, role: Role, value: Value) -> list[Value]:
    """Return the elements of a rule as JSON values, in their order.

    Raises:
        TypeError: it is neither a set nor a list of objects and strings.
    """
    if value is None or value is UNDEFINED:
        return []
    found = value.sort_out() if type(value) is Members else members(value) if type(value) is set else value
    if type(found) is not list or not all(type(element) in (str, dict) for element in found):
        raise TypeError(f"evaluation: {dict(policy.rules)[role]} is not a set or list of objects or strings")
    return [json_value(element) for element in found]


def json_value(value: Value) -> Value:
    """Return a value as JSON: sets become lists, and numbers that orjson cannot write become doubles.

    Raises:
        ValueError: a number is too large for a double.
    """
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return value
    if kind is int and -(1 << 63) <= value < 1 << 64:
        return value
    if kind is list:
        return [json_value(item) for item in value]
    if kind is dict:
        if all(type(key) is str for key in value):
            return {key: json_value(value[key]) for key in sorted(value)}
        return json_value(to_json(value))
    if kind is set:
        return [json_value(item) for item in members(value)]
    try:
        number = float(value)
    except OverflowError:
        number = inf
    if isinf(number):
        raise ValueError("evaluation: the result of the policy has a number that JSON readers do not accept")
    return number


def _review(subject: Value, parameters: JsonObject) -> JsonObject:
    """Return the input of a Gatekeeper policy: a document under review for its creation.

    Source: https://open-policy-agent.github.io/gatekeeper/website/docs/input.
    """
    document = subject if isinstance(subject, dict) else {}
    metadata = document.get("metadata")
    group, _, version = _text(document, "apiVersion").rpartition("/")
    review = {
        "kind": {"group": group, "version": version, "kind": _text(document, "kind")},
        "name": _text(metadata, "name"),
        "namespace": _text(metadata, "namespace"),
        "object": subject,
        "operation": "CREATE",
    }
    return {"parameters": parameters, "review": review}


def _text(holder: Value, key: str) -> str:
    found = holder.get(key) if isinstance(holder, dict) else None
    return found if isinstance(found, str) else ""


def _faults_of(bundle: Bundle, compiled: CompiledBundle) -> dict[int, list[str]]:
    """Return by number of a policy why parts of it are left out."""
    if not compiled.left_out:
        return {}
    from policyeng.bundle.left_out import faults_of  # few bundles leave out anything

    faults: dict[int, list[str]] = {}
    for number, policy in enumerate(bundle.policies):
        reasons = faults_of([path for _, path in policy.rules], compiled.left_out)
        if reasons or policy.fault:
            faults[number] = reasons or [policy.fault]
    return faults


def compile_bundle(bundle: Bundle) -> CompiledBundle:
    """Return the compiled Rego policies of a bundle, without the modules of others that cannot be compiled.

    Raises:
        EngineError: a module of ours does not compile.
    """
    digest, compiled = _USED.get()
    if compiled is not None and bundle.digest == digest:
        return compiled
    # OPA refuses what its authors may not have tested here.
    return _program(ProgramKey(bundle, types=_CHECKS_TYPES.get() or bool(bundle.foreign)))


def compile_rego(bundle: Bundle) -> rego.Program:
    """Return the compiled Rego policies of a bundle, of which nothing is left out.

    Raises:
        EngineError: the bundle does not compile.
    """
    program, left_out = compile_bundle(bundle)
    if left_out:
        reasons = "\n".join(module.reason for module in left_out)
        raise EngineError(f"the bundle does not compile:\n{reasons}", place=(bundle.name,))
    return program


def compile_every_form(bundle: Bundle) -> None:
    """Compile the Rego policies of a bundle, also in the form that otherwise the first unknown value compiles.

    Raises:
        EngineError: the bundle does not compile.
    """
    program = compile_bundle(bundle).program
    try:
        program.handled_form()
    except rego.RegoError as error:
        raise EngineError(f"the bundle does not compile:\n{error}", place=(bundle.name,)) from error


@contextmanager
def checked_types() -> Iterator[None]:
    """Refuse bundles whose types OPA refuses, too. It is for commands that policies are written with.

    Types change no result, so other commands do not check what was checked where it was written.
    """
    token = _CHECKS_TYPES.set(True)
    try:
        yield
    finally:
        _CHECKS_TYPES.reset(token)


@contextmanager
def use_program(compiled: CompiledBundle, bundle: Bundle) -> Iterator[None]:
    """Evaluate a bundle with another program of its modules, for example one that prints or records coverage."""
    token = _USED.set((bundle.digest, compiled))
    try:
        yield
    finally:
        _USED.reset(token)


def modules_of(bundle: Bundle) -> list[Module]:
    """Parse the Rego modules of a bundle, under the names of their files.

    Raises:
        RegoError: a module is not well formed.
    """
    return [
        rego.parse_module(bundle.places[path], text, 0 if path in bundle.rego_v0 else 1)
        for path, text in bundle.modules
    ]


class ProgramKey:
    """A cache key for the compiled program of a bundle, which contains the paths of its files.

    Attributes:
        types: whether the types of the bundle are checked.
    """

    def __init__(self, bundle: Bundle, *, types: bool = False) -> None:
        self.bundle = bundle
        self.types = types

    def __hash__(self) -> int:
        return hash(self.bundle.digest)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ProgramKey):
            return False
        return self._parts() == other._parts()

    def _parts(self) -> tuple[object, ...]:
        return self.bundle.digest, self.bundle.places, self.bundle.lenient, self.types


@lru_cache(maxsize=8)
def _program(key: ProgramKey) -> CompiledBundle:
    bundle = key.bundle
    data = orjson.loads(bundle.data_bytes)
    names = {place: path for path, place in bundle.places.items()}
    # Programs are compiled differently under a debugger or coverage.
    is_traced = sys.gettrace() is not None
    if not is_traced and (compiled := _load_prebuilt(bundle)) is not None:
        return _program_of(bundle, compiled, data, names)
    entry = _entry(bundle)
    checked = _entry(bundle, "types")
    checks = key.types and cache.load(checked) is None
    stored = None if is_traced or checks else cache.load(entry)
    try:
        if stored is not None:
            # An unreadable entry is treated as missing.
            with suppress(ValueError):
                return _program_of(bundle, Compiled.load(stored[0]), data, names, _load_left_out(stored[1]))
        program, left_out = link_bundle(bundle, data, names, types=checks)
    except rego.RegoError as error:
        raise EngineError(f"the bundle does not compile:\n{error}", place=(bundle.name,)) from error
    if is_traced:
        return CompiledBundle(program, left_out)
    cache.store(entry, [program.compiled.dump(), pickle.dumps(left_out) if left_out else b""])
    if checks:
        cache.store(checked, [b"checked"])
    handled = rego.Program(program.compiled, data, names=names, handled=lambda: _get_marker_form(bundle, program))
    return CompiledBundle(handled, left_out)


def _program_of(
    bundle: Bundle,
    compiled: Compiled,
    data: Value,
    names: Mapping[str, str],
    left_out: tuple[LeftOutModule, ...] = (),
) -> CompiledBundle:
    """Return the program of a bundle from its stored code."""
    for path, text in bundle.modules:
        remember_text(bundle.places[path], text)
    program = rego.Program(compiled, data, names=names, handled=lambda: _get_marker_form(bundle))
    return CompiledBundle(program, left_out)


def _load_left_out(stored: bytes | memoryview) -> tuple[LeftOutModule, ...]:
    found: tuple[LeftOutModule, ...] = pickle.loads(stored) if stored else ()  # noqa: S301  # a private file
    return found


def _get_marker_form(bundle: Bundle, program: rego.Program | None = None) -> Compiled:
    """Return the form of a bundle that handles markers, which most snapshots never need; `program` has its rules."""
    if (prebuilt_form := _load_prebuilt(bundle, "handled")) is not None:
        return prebuilt_form
    entry = _entry(bundle, "handled")
    if (stored := cache.load(entry)) is not None:
        with suppress(ValueError):
            return Compiled.load(stored[0])
    if program is None:
        program = link_bundle(bundle, orjson.loads(bundle.data_bytes)).program
    compiled = program.compile_handled()
    cache.store(entry, [compiled.dump()])
    return compiled


def link_bundle(
    bundle: Bundle, data: Value, names: Mapping[str, str] | None = None, *, types: bool = False
) -> CompiledBundle:
    """Compile the modules of a bundle, and keep their rules for further forms.

    Raises:
        RegoError: a module of ours does not compile.
    """
    lenient = {bundle.places[path] for path in bundle.lenient if path in bundle.places}
    foreign = {bundle.places[path]: path for path in bundle.foreign if path in bundle.places}
    return link_without_faulty(
        modules_of(bundle),
        lambda modules: rego.link(modules, data, types=types, names=names, lenient=lenient, has_time=True),
        foreign,
        bundle.left_out,
    )


def link_without_faulty(
    modules: Iterable[Module],
    link: Callable[[Iterable[Module]], rego.Program],
    foreign: Mapping[str, str],
    left_out: Sequence[LeftOutModule] = (),
) -> CompiledBundle:
    """Compile modules, without those of others that cannot be compiled, and without those that depend on them.

    Args:
        modules: as parsed.
        link: compiles modules.
        foreign: the path in its bundle of each file of the policies of others.
        left_out: modules of others that do not parse.

    Raises:
        RegoError: a module of ours cannot be compiled.
    """
    if not foreign:
        return CompiledBundle(link(modules))
    from policyeng.bundle.left_out import LeftOutModule, without_dependents
    from policyeng.bundle.rego_trees import analyzed

    faulty = list(left_out)
    remaining = {module.source.file: module for module in modules}
    while True:
        remaining = without_dependents(remaining, faulty, foreign)
        try:
            return CompiledBundle(link(remaining.values()), tuple(faulty))
        except rego.RegoError as error:
            first = {fault.source.file: fault for fault in reversed(error.diagnostics)}
            if not first.keys() <= foreign.keys() & remaining.keys():
                raise
            for file, fault in first.items():
                reason = f"the module cannot be compiled: {str(fault).partition(chr(10))[0]}"
                faulty.append(LeftOutModule.of(foreign[file], analyzed(remaining[file]), reason))


def _entry(bundle: Bundle, form: str = "program") -> str:
    """Return the cache key of a form of the compiled program, from the compiler, the modules and the data."""
    return cache.key_of(form, sys.version, cache.state_of_code("rego"), *_parts_of(bundle, bundle.places))


def _parts_of(bundle: Bundle, places: Mapping[str, str]) -> tuple[str, ...]:
    """Return what the program of a bundle follows from besides the compiler; `places` has the names of its files."""
    modules = (
        part
        for path, source in bundle.modules
        for part in (places[path], source, str((path in bundle.rego_v0, path in bundle.lenient)))
    )
    left_out = (module.reason for module in bundle.left_out)
    return *modules, "data", hashlib.sha256(bundle.data_bytes).hexdigest(), *left_out, str(bool(bundle.foreign))


def _load_prebuilt(bundle: Bundle, form: str = "program") -> Compiled | None:
    """Return a form of the compiled program as the wheel brings it; None for another bundle than the built-in one."""
    if not prebuilt.is_installed():
        return None
    stored = prebuilt.load(form, prebuilt_parts(bundle), prebuilt.this_python())
    return Compiled.load(stored, bundle.places) if stored is not None else None


def prebuilt_parts(bundle: Bundle) -> tuple[str, ...]:
    """Return what a compiled program follows from that names its files by their paths in the bundle."""
    return _parts_of(bundle, {path: path for path, _ in bundle.modules})


def generate(bundle: Bundle) -> tuple[rego.GeneratedProgram, rego.GeneratedProgram]:
    """Return the Python text of a bundle's program, plain and with the handling of markers, for `prebuilt_parts`.

    Raises:
        RegoError: a module does not compile, or has an error of types.
    """
    program = link_bundle(replace(bundle, origins=()), orjson.loads(bundle.data_bytes), types=True).program
    return program.linked.generate()


def convert_result(verdict: Value, policy: Policy) -> Judgement:
    """Return OPA's result for a pair; the form of the denials depends on the policy."""
    if policy.input_form != "policy":
        return convert_conftest_result(policy, verdict["deny"], verdict.get("exception", []))
    try:
        denials = tuple(map(_denial, verdict["deny"]))
        unknowns = tuple(map(_unknown, verdict["unknown"]))
    except (TypeError, ValueError) as error:
        return Judgement(error=str(error))
    return Judgement(denials=denials, unknowns=unknowns)


def _denial(element: Value) -> Denial:
    if isinstance(element, str):
        return Denial(msg=element, path="", actual=None, expected=None)
    _well_formed("deny", element, _MEMBERS)
    return Denial(
        msg=element["msg"],
        path=element.get("path", ""),
        actual=element.get("actual"),
        expected=element.get("expected"),
    )


def _unknown(element: Value) -> Unknown:
    if isinstance(element, str):
        return Unknown(msg=element, path="")
    _well_formed("unknown", element, {"msg", "path"})
    return Unknown(msg=element["msg"], path=element.get("path", ""))


def _well_formed(rule: str, element: Value, members: set[str]) -> None:
    if not isinstance(element, dict) or not isinstance(element.get("msg"), str):
        raise TypeError(f"an element of `{rule}` is not an object with a string `msg`")
    if not isinstance(element.get("path", ""), str):
        raise TypeError(f"the `path` of an element of `{rule}` is not a string")
    surplus = sorted(set(element) - members)
    if surplus:
        raise ValueError(f"an element of `{rule}` has the unknown member `{surplus[0]}`")
