"""Replay of a run: evaluation of its stored snapshots with the stored policies and clock, and comparison."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

import orjson

from policyeng.audit.records import AuditRun, RunPart
from policyeng.audit.runner import evaluate_stored
from policyeng.audit.store.tables import (
    PartRow,
    digest_span_states,
    encode_evaluation,
    evaluation_of,
    head_of,
    read_span_states,
)
from policyeng.bundle import Bundle
from policyeng.engines import OpaOptions, engine_version
from policyeng.evaluation import EvaluationOptions
from policyeng.models import Snapshot, Summary
from policyeng.parsing.json_pointer import escaped
from policyeng.parsing.json_text import shortened


class Difference(NamedTuple):
    """The first place where the replay of a part differs, with the JSON there."""

    part: str
    path: str
    before: str
    now: str


class Replayed(NamedTuple):
    """The result of a replay.

    Attributes:
        content: the content hash of the replayed parts.
        differences: the first of each part that differs.
        engine: the version of the engine.
    """

    content: str
    differences: list[Difference]
    engine: str


class ReplayedHistory(Protocol):
    """What a replay reads of a store or of an evidence pack."""

    def bundle(self, run: AuditRun, /) -> Bundle:
        """Return the policies of a run."""

    def rows(self, run: AuditRun, /) -> Iterator[PartRow]:
        """Yield the stored rows of the parts of a run, in order."""

    def content(self, run: AuditRun, rows: Iterable[PartRow], /) -> str:
        """Return the content hash of a run with these parts."""

    def head_and_findings(self, row: PartRow, /) -> tuple[bytes, bytes]:
        """Return the stored evaluation of a part that could be read."""

    def snapshot(self, part: RunPart, /) -> Snapshot:
        """Return the snapshot of a part."""


def replay(store: ReplayedHistory, run: AuditRun, opa: OpaOptions | None = None) -> Replayed:
    """Evaluate a run again.

    Args:
        store: the store of the run.
        run: the run.
        opa: the OPA to use, for a run with that engine.

    Raises:
        UsageError: retention removed a content of the run.
        StoreError: a content is not what was stored.
        EngineError: the engine does not answer.
    """
    bundle = store.bundle(run)
    options = run.options(opa)
    differences: list[Difference] = []

    def rows() -> Iterator[PartRow]:
        for row in store.rows(run):
            if not row.snapshot:
                yield row
                continue
            again, difference = _replay_part(store, row, bundle, options)
            differences.extend(difference)
            yield again

    content = store.content(run, rows())
    return Replayed(content, differences, engine_version(run.engine.name, opa))


def _replay_part(
    store: ReplayedHistory, row: PartRow, bundle: Bundle, options: EvaluationOptions
) -> tuple[PartRow, list[Difference]]:
    """Return the replayed part, and where it differs."""
    head, findings = store.head_and_findings(row)
    given = head_of(head).given
    earlier = evaluation_of(head, findings)
    part = RunPart(name=row.name, snapshot=row.snapshot, evaluation=row.evaluation, exit_code=0, summary=Summary())
    evaluation = evaluate_stored(store.snapshot(part), bundle, options, earlier.problems[:given])
    kept = encode_evaluation(evaluation, given)
    if kept.digest == row.evaluation:
        return row, []
    now = kept.contents[kept.findings]
    again = row._replace(
        evaluation=kept.digest,
        standing=digest_span_states(read_span_states(now)),
        exit_code=evaluation.exit_code,
        summary=evaluation.summary.model_dump_json(by_alias=True),
    )
    path, before, after = _find_first_difference((findings, now), (head, kept.contents[kept.digest]))
    return again, [Difference(row.name, path, before, after)]


def _find_first_difference(*pairs: tuple[bytes, bytes]) -> tuple[str, str, str]:
    """Return the first difference of the first pair that has one."""
    for before, now in pairs:
        for found in _compare(orjson.loads(before), orjson.loads(now), ""):
            return found
    return "", "", ""


def _compare(before: object, now: object, path: str) -> Iterator[tuple[str, str, str]]:
    if isinstance(before, dict) and isinstance(now, dict):
        for key in dict.fromkeys((*before, *now)):
            yield from _compare(before.get(key, _Absent), now.get(key, _Absent), f"{path}/{escaped(str(key))}")
    elif isinstance(before, list) and isinstance(now, list):
        for index in range(max(len(before), len(now))):
            one, other = (each[index] if index < len(each) else _Absent for each in (before, now))
            yield from _compare(one, other, f"{path}/{index}")
    elif before != now or type(before) is not type(now):
        yield path, _format_value(before), _format_value(now)


class _Absent:
    """A placeholder for a missing value."""


def _format_value(value: object) -> str:
    return "nothing" if value is _Absent else shortened(orjson.dumps(value).decode())
