"""Evaluate Python policies: call the function, collect what it yields, and turn exceptions into errors."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

import orjson
from msgspec.structs import replace

from policyeng.bundle import Policy, PolicyInput, SnapshotView
from policyeng.bundle.policy_types import Functions, sort_keys
from policyeng.bundle.python_output import printing_to_standard_error
from policyeng.engines.embedded import documents_of
from policyeng.engines.recording import RecordedInput, RecordedView, plain
from policyeng.engines.request import (
    PASSES,
    READ_ONLY,
    SKIPPED,
    SWITCHED_OFF,
    VIEWS,
    EvaluationRequest,
    Judgement,
    Pair,
    count_overrun,
    is_switched_off,
)
from policyeng.engines.watchdog import DeadlineExceededError, within_deadline
from policyeng.models import Denial, JsonObject, Unknown, read_only_copy
from policyeng.rego import Undecided
from policyeng.rego.markers import NEEDED, Cause, show
from policyeng.rego.markers import UnknownValue as Marker

#: The largest number of denials and unknowns for one resource, which ends infinite generators.
MOST_YIELDED = 10_000


def evaluate_policy(work: EvaluationRequest, policy: int) -> list[Judgement]:
    """Return the results of a Python policy for all subjects of the request, in the order of their positions.

    Python policies are trusted code of the bundle: they run in this process, within a deadline but without a
    memory limit.

    Raises:
        BundleError: the module of the policy cannot be run.
    """
    evaluator = PythonEvaluator(work)
    return [evaluator.evaluate(pair) for pair in work.pairs_of(policy, work.positions[policy])]


class PythonEvaluator:
    """An evaluator of the Python forms of policies, which can also be the twins of Rego policies."""

    def __init__(self, work: EvaluationRequest, recording: RecordedView | None = None) -> None:
        """Prepare a request; what policies read of its input is recorded through `recording`."""
        self._work, self._recording = work, recording
        self._snapshot, self._subjects = input_of(work)

    def evaluate(self, pair: Pair) -> Judgement:
        """Evaluate a pair.

        Raises:
            BundleError: the module of the policy cannot be run.
        """
        work, bundle, recording = self._work, self._work.bundle, self._recording
        policy = bundle.policies[pair.policy]
        if policy.python is None and policy.azure is None:
            return Judgement(error="the policy has no Python form")
        if bundle.overruns and is_switched_off(bundle, policy):
            return SWITCHED_OFF
        resource = self._subjects[pair.subject]
        workspace = self._subjects[pair.workspace] if pair.workspace >= 0 else None
        snapshot, make = self._snapshot, PolicyInput
        if recording is not None:
            snapshot, resource, make = recording, recording.wrap(resource, "/resource"), RecordedInput
            if bundle.reaches[pair.policy].workspace:  # an attribute is read without a trace
                workspace = recording.wrap(workspace, "/workspace")
        given = make(
            resource=resource,
            workspace=workspace,
            snapshot=snapshot,
            parameters=work.parameters[pair.policy],
            as_of=_as_of(work, pair),
            facts=bundle.facts,
        )
        try:
            judgement, causes = _evaluate_within_deadline(policy, given)
        except DeadlineExceededError as error:
            count_overrun(bundle, policy)
            return Judgement(error=f"limit: {error}", is_limit=True)
        if not causes or (work.marking is None and policy.azure is None):
            return judgement
        if work.marking is None:
            return judgement._replace(unknowns=tuple(Unknown(reason, pointer) for pointer, reason in causes))
        unknowns = (*judgement.unknowns, *work.marking.unknowns(causes, pair.subject, pair.workspace))
        return judgement._replace(unknowns=unknowns, is_partial=True)


def _evaluate_within_deadline(policy: Policy, given: PolicyInput) -> tuple[Judgement, tuple[Cause, ...]]:
    """Evaluate a policy in Python, or a definition of Azure Policy.

    Raises:
        DeadlineExceededError: it takes too long.
        BundleError: the module of the policy cannot be run.
    """
    if policy.azure is not None:
        from policyeng.engines import azure_policy  # most bundles have none

        return within_deadline(vars(azure_policy), azure_policy.evaluate_definition, policy.azure, given)
    assert policy.python is not None  # noqa: S101  # the caller checked it
    functions = policy.python.functions
    with printing_to_standard_error:
        return within_deadline(getattr(functions[0], "__globals__", {}), _outcome, functions, given)


def _as_of(work: EvaluationRequest, pair: Pair) -> datetime:
    """Return the clock, which records comparisons if the request has a recording clock."""
    if work.clock is None or not work.bundle.clocked[pair.policy]:
        return work.as_of
    from policyeng.engines.clock import RecordedMoment  # seldom needed

    return cast("datetime", RecordedMoment(work.clock))


def input_of(work: EvaluationRequest) -> tuple[SnapshotView, Sequence[JsonObject]]:
    """Return the snapshot as policies see it, and the documents of its subjects; policies in Rego read the same.

    Policies that did not come with policyeng read a copy that cannot be changed.
    """
    if work.bundle.has_own_python:
        work = _make_read_only(work)
    if work.marking is None:
        return work.snapshot, work.documents
    made = work.made.setdefault(VIEWS, {})
    cached = made.get(work.marking.named)
    if cached is None or cached[0] is not work.snapshot:
        documents = documents_of(work)
        cached = made[work.marking.named] = (
            work.snapshot,
            SnapshotView.from_document(documents.snapshot),
            documents.subjects,
        )
    return cached[1], cached[2]


def _make_read_only(work: EvaluationRequest) -> EvaluationRequest:
    """Return a request with a read-only copy of the snapshot, which is made once.

    Objects with ids or types as keys are sorted: a change adds keys at their end.
    """
    original, snapshot, copy = work.made.get(READ_ONLY, (None, None, work))
    if original is not work.document:
        copies: dict[int, object] = {}
        ordered = {name: sort_keys(name, value) for name, value in work.document.items()}
        document = {name: read_only_copy(value, copies) for name, value in ordered.items()}
        documents: list[Any] = [read_only_copy(value, copies) for value in work.documents]
        copy = replace(
            work, document=document, documents=documents, snapshot=SnapshotView.from_document(document), made={}
        )
    elif snapshot is not work.snapshot:
        copy = replace(copy, snapshot=copy.snapshot.fresh())
    work.made[READ_ONLY] = work.document, work.snapshot, copy
    request: EvaluationRequest = replace(copy, marking=work.marking)
    return request


def _outcome(form: Functions, given: PolicyInput) -> tuple[Judgement, tuple[Cause, ...]]:
    """Call the functions of a policy; return the result, and the causes if they read something unknown."""
    denials: list[Denial] = []
    unknowns: list[Unknown] = []
    try:
        error = _call(form, given, denials, unknowns)
    except Undecided as undecided:
        # Earlier denials are valid whatever the unknown values are.
        return Judgement(denials=tuple(denials), unknowns=tuple(unknowns)), undecided.causes
    except (Exception, SystemExit, GeneratorExit) as raised:  # every exception of a policy is an error finding
        if isinstance(raised, TypeError) and Marker.__name__ in _describe_exception(raised):
            # Functions in C reject markers before these can raise.
            return Judgement(denials=tuple(denials), unknowns=tuple(unknowns)), (NEEDED,)
        return Judgement(error=_describe_exception(raised)), ()
    if error is None:
        error = Judgement(denials=tuple(denials), unknowns=tuple(unknowns)) if denials or unknowns else PASSES
    return error, ()


def _describe_exception(error: BaseException) -> str:
    """Return the type and message of an exception, in characters that a report can show."""
    try:
        text = str(error)
    except Exception:
        text = "the message is not available"
    return f"{type(error).__name__}: {text}".encode("utf-8", "backslashreplace").decode()


def _call(form: Functions, given: PolicyInput, denials: list[Denial], unknowns: list[Unknown]) -> Judgement | None:
    """Call the functions of a policy and collect what they yield; return a result only if that ends early."""
    evaluate, decide = form
    if decide is not None:
        applies = decide(given)
        if not isinstance(applies, bool):
            return Judgement(error=f"`applies` returned {type(applies).__name__}, not a bool")
        if not applies:
            return SKIPPED
    for reason in evaluate(given):
        if len(denials) + len(unknowns) == MOST_YIELDED:
            return Judgement(error=f"the policy yielded more than {MOST_YIELDED} denials and unknowns")
        if isinstance(reason, Denial):
            # A value that is not JSON is an error; others are converted to plain values without views of the input.
            shown = (reason.msg, reason.path, show(reason.actual), show(reason.expected))
            _, _, actual, expected = orjson.loads(orjson.dumps(shown, default=plain))
            denials.append(Denial(msg=reason.msg, path=reason.path, actual=actual, expected=expected))
        elif isinstance(reason, Unknown):
            orjson.dumps((reason.msg, reason.path))
            unknowns.append(reason)
        else:
            return Judgement(error=f"the policy yielded {type(reason).__name__}, not Denial or Unknown")
    return None
