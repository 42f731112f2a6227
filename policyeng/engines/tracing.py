"""Evaluate pairs and record what each reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from policyeng.engines import embedded, python
from policyeng.engines.recording import CLOCK, RecordedView
from policyeng.engines.request import EvaluationRequest, Judgement, Pair
from policyeng.rego.tracing import RecordedReads, Recorder
from policyeng.rego.values import Value


class Traced(NamedTuple):
    """A result with the recorded reads.

    Attributes:
        reads: distinct reads; each subject is a document, and the rest of the input is `input`. None if the evaluation
            can have read anything.
    """

    judgement: Judgement
    reads: Sequence[RecordedReads] | None

    @property
    def reads_clock(self) -> bool:
        """Whether the result can depend on the clock."""
        return self.reads is None or any(
            read.document == "input" and read.pointer in (CLOCK, "") and (read.pointer or read.kind == "whole")
            for read in self.reads
        )


#: The name of `Names` in `EvaluationRequest.made`.
NAMES = "names"
#: The names of subjects by their `id()`, by the `id()` of the list of subjects.
Names = Mapping[int, Mapping[int, str]]


def trace(work: EvaluationRequest, names: Callable[[], Sequence[str]]) -> Iterator[tuple[Pair, Traced]]:
    """Evaluate every pair, and yield it with its result and its reads.

    Args:
        work: the request.
        names: returns the document names of the subjects in order; used if `EvaluationRequest.made` has no names.

    Raises:
        EngineError: the bundle does not compile.
    """
    if work.apart:
        for part in work.parts():
            yield from trace(part, names)
        return
    policies = work.bundle.policies
    rego = work.only({policy for policy in work.positions if policies[policy].rules})
    if rego.positions:
        yield from _trace_rego(rego, names)
    if len(rego.positions) < len(work.positions):
        yield from _trace_python(work.only(work.positions.keys() - rego.positions.keys()), names)


def _names_of(
    work: EvaluationRequest, subjects: Sequence[Value], names: Callable[[], Sequence[str]]
) -> Mapping[int, str]:
    """Return the names of subjects by their `id()`."""
    known: Names = work.made.get(NAMES, {})
    found = known.get(id(subjects))
    if found is None:
        found = {id(document): name for document, name in zip(subjects, names(), strict=False)}
    return found


def _trace_rego(work: EvaluationRequest, names: Callable[[], Sequence[str]]) -> Iterator[tuple[Pair, Traced]]:
    recorder = embedded.Recording(_names_of(work, embedded.documents_of(work).subjects, names))
    results = zip(work.positions.items(), embedded.evaluate_embedded(work, recorder), strict=True)
    for (policy, positions), judgements in results:
        for pair, judgement in zip(work.pairs_of(policy, positions), judgements, strict=True):
            reads = recorder.reads.pop(pair, None)
            is_whole = reads is None or judgement.is_limit
            yield pair, Traced(judgement, None if is_whole else reads)


def _trace_python(work: EvaluationRequest, names: Callable[[], Sequence[str]]) -> Iterator[tuple[Pair, Traced]]:
    recorder = Recorder()
    snapshot, subjects = python.input_of(work)
    view = RecordedView.of(snapshot, recorder, _names_of(work, subjects, names))
    plain, recording = python.PythonEvaluator(work), python.PythonEvaluator(work, view)
    for pair in work.pairs:
        judgement = plain.evaluate(pair)
        recorder.begin({})
        recorded = recording.evaluate(pair)
        recorder.end()
        # If the view does not behave like the original, the results differ.
        is_alike = recorded == judgement and not judgement.is_limit
        yield pair, Traced(judgement, recorder.reads if is_alike else None)
