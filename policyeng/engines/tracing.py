"""Evaluate pairs and record what each reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from policyeng.engines import embedded, python
from policyeng.engines.recording import RecordedView
from policyeng.engines.request import EvaluationRequest, Judgement, Pair
from policyeng.rego.clock import Unchanged
from policyeng.rego.tracing import RecordedReads, Recorder
from policyeng.rego.values import Value


class Traced(NamedTuple):
    """A result with the recorded reads.

    Attributes:
        reads: distinct reads; each subject is a document, and the rest of the input is `input`. None if the evaluation
            can have read anything.
        unchanged: the times at which the result and the reads are the same; None if only that of the request is known.
    """

    judgement: Judgement
    reads: Sequence[RecordedReads] | None
    unchanged: Unchanged | None = None


#: The name of `Names` in `EvaluationRequest.made`.
NAMES = "names"
#: The names of subjects by their `id()`, by the `id()` of the list of subjects.
Names = Mapping[int, Mapping[int, str]]


def trace(work: EvaluationRequest, names: Callable[[], Sequence[str]]) -> Iterator[tuple[Pair, Traced]]:
    """Evaluate every pair, and yield it with its result and its reads.

    Args:
        work: the request. If it has a clock, the comparisons of each pair with the clock are recorded.
        names: returns the document names of the subjects in order; used if `EvaluationRequest.made` has no names.

    Raises:
        EngineError: the bundle does not compile.
    """
    if work.apart:
        for part in work.parts():
            yield from trace(part, names)
        return
    bundle = work.bundle
    if work.clock is not None:
        unrecorded = {
            number for number in work.positions if bundle.clocked[number] and not bundle.clock_recorded[number]
        }
        if unrecorded:
            yield from trace(replace(work.only(unrecorded), clock=None), names)
            work = work.only(work.positions.keys() - unrecorded)
    rego = work.only({policy for policy in work.positions if bundle.policies[policy].rules})
    others = work.only(work.positions.keys() - rego.positions.keys())
    again: list[Pair] = []
    for pair, traced in (
        *(_trace_rego(rego, names) if rego.positions else ()),
        *(_trace_python(others, names) if others.positions else ()),
    ):
        # The recording clock can be the cause of an error, or end an evaluation.
        if (
            work.clock is not None
            and bundle.clocked[pair.policy]
            and (traced.unchanged is None or traced.judgement.error is not None)
        ):
            again.append(pair)
        else:
            yield pair, traced
    if again:
        yield from trace(replace(work.with_pairs(again), clock=None, snapshot=work.snapshot.fresh()), names)


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
            yield pair, _traced(work, pair, judgement, None if is_whole else reads, gave_up=pair in recorder.gave_up)


def _trace_python(work: EvaluationRequest, names: Callable[[], Sequence[str]]) -> Iterator[tuple[Pair, Traced]]:
    recorder, clock = Recorder(), work.clock
    snapshot, subjects = python.input_of(work)
    view = RecordedView.of(snapshot, recorder, _names_of(work, subjects, names))
    plain, recording = python.PythonEvaluator(work), python.PythonEvaluator(work, view)
    for pair in work.pairs:
        if clock is not None:
            clock.restart()
        judgement = plain.evaluate(pair)
        recorder.begin({})
        if clock is not None:
            clock.note = recorder.note_moment
        recorded = recording.evaluate(pair)
        if clock is not None:
            clock.note = None
        recorder.end()
        # If the view does not behave like the original, the results differ.
        is_alike = recorded == judgement and not judgement.is_limit
        gave_up = clock is not None and clock.unchanged is None
        yield pair, _traced(work, pair, judgement, recorder.reads if is_alike else None, gave_up=gave_up)


def _traced(
    work: EvaluationRequest,
    pair: Pair,
    judgement: Judgement,
    reads: Sequence[RecordedReads] | None,
    *,
    gave_up: bool,
) -> Traced:
    """Return a result with its reads; comparisons with the clock become the times at which it is the same."""
    if not work.bundle.clocked[pair.policy]:
        return Traced(judgement, reads, Unchanged())
    if work.clock is None or gave_up or reads is None:
        return Traced(judgement, reads)
    work.clock.restart(int(read.pointer) for read in reads if read.document == "clock")
    return Traced(judgement, [read for read in reads if read.document != "clock"], work.clock.unchanged)
