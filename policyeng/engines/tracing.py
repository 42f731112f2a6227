"""Evaluate pairs and record what each of them reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from policyeng.engines import embedded, python
from policyeng.engines.recording import RecordedView
from policyeng.engines.work import Judgement, Pair, Work
from policyeng.rego.tracing import Read, Recorder


class Traced(NamedTuple):
    """An outcome and what it depends on.

    Attributes:
        reads: each read once; a subject is a document of its own, the rest of the input is `input`. None where the
            evaluation may have read anything.
    """

    judgement: Judgement
    reads: Sequence[Read] | None


def trace(work: Work, names: Sequence[str]) -> Iterator[tuple[Pair, Traced]]:
    """Evaluate every pair, and yield it with its outcome and its reads.

    Args:
        work: what is evaluated.
        names: of the subjects as documents, in their order.

    Raises:
        EngineError: the bundle does not compile.
    """
    if work.apart:
        for part in work.parts():
            yield from trace(part, names)
        return
    policies = work.bundle.policies
    rego = [pair for pair in work.pairs if policies[pair.policy].rules]
    if rego:
        yield from _trace_rego(work, rego, names)
    if len(rego) < len(work.pairs):
        yield from _trace_python(work, [pair for pair in work.pairs if not policies[pair.policy].rules], names)


def _trace_rego(work: Work, pairs: Sequence[Pair], named: Sequence[str]) -> Iterator[tuple[Pair, Traced]]:
    names = {id(document): name for document, name in zip(embedded.documents_of(work).subjects, named, strict=False)}
    recorder = embedded.Recording(names)
    for pair, judgement in zip(pairs, embedded.judge_pairs(work, pairs, recorder), strict=True):
        reads = recorder.reads.pop(pair, None)
        is_whole = reads is None or judgement.is_limit
        yield pair, Traced(judgement, None if is_whole else reads)


def _trace_python(work: Work, pairs: Sequence[Pair], named: Sequence[str]) -> Iterator[tuple[Pair, Traced]]:
    recorder = Recorder()
    snapshot, subjects = python.input_of(work)
    names = {id(document): name for document, name in zip(subjects, named, strict=False)}
    view = RecordedView.of(snapshot, recorder, names)
    for pair in pairs:
        judgement = python.judge_pair(work, pair)
        recorder.begin({})
        recorded = python.judge_pair(work, pair, view)
        recorder.end()
        # Whatever a view does not pass for shows in another outcome.
        is_alike = recorded == judgement and not judgement.is_limit
        yield pair, Traced(judgement, recorder.reads if is_alike else None)
