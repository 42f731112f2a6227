"""What is found of a state before any change, kept for the last few clocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from threading import Lock
from typing import NamedTuple

from policyeng import exemptions as exempting
from policyeng.engines import Pair, judge
from policyeng.evaluation import EvaluationContext, homes_of, problems_of
from policyeng.evaluation.affected import Pairs
from policyeng.evaluation.findings import findings_by_pair, order_of
from policyeng.evaluation.places import held_by
from policyeng.evaluation.tracing import Reads, trace_pairs
from policyeng.facts.ids import folded_id
from policyeng.models import Exemption, Finding, Outcome, Problem

#: So many clocks with their exemptions are kept; requests beside each other have the same one, or one that follows.
_KEPT = 4

#: Findings with the pairs that they are of, sorted.
Judged = list[tuple[Finding, Pair]]


class Told(NamedTuple):
    """What is found of a state at one clock, with the marks of exemptions.

    Attributes:
        findings: by policy and position of the subject.
        standing: the failures and errors among them that no exemption accepts, sorted.
        in_force: the exemptions that count.
        covering: by policy and position, the ids of the exemptions that cover it.
        uses: how many failures each exemption covers.
        problems: what is said of the snapshot and of the exemptions, but for those that cover nothing.
        reads: what the pairs have read, but for what they have read of their own subjects.
        spoken_of: by the id, as `folded_id` gives it, of what has its places in a text: the pairs whose findings name
            a place in it, though they are of something else.
    """

    findings: Mapping[tuple[int, int], Finding]
    standing: Mapping[tuple[int, int], Finding]
    in_force: Sequence[Exemption]
    covering: Mapping[tuple[int, int], Sequence[str]]
    uses: Mapping[str, int]
    problems: frozenset[Problem]
    reads: Sequence[Reads]
    spoken_of: Mapping[str, Sequence[tuple[int, int]]]

    def of(self, pairs: Pairs, without: Pairs) -> list[Finding]:
        """What is found of some pairs that are not among others, in the order of a plan."""
        found = (self.findings.get(pair) for pair in in_order(pairs) if pair[1] not in without.get(pair[0], ()))
        return [finding for finding in found if finding is not None]

    def elsewhere(self, pairs: Pairs) -> list[Finding]:
        """What stands, but for some pairs, sorted."""
        standing = dict(self.standing)
        for pair in in_order(pairs):
            standing.pop(pair, None)
        return list(standing.values())


class Telling:
    """What is found of a state, judged once for each clock as far as policies can read it; threads may share it."""

    def __init__(self, prepared: EvaluationContext) -> None:
        self._prepared = prepared
        #: By type and id as findings report them, what the scopes of exemptions are held against.
        self.homes = homes_of(prepared.estate.subjects)
        self._told: Mapping[tuple[datetime, tuple[int, ...]], tuple[tuple[Exemption, ...], Told]] = {}
        self._without_clock: tuple[Judged, Reads] | None = None
        self._lock = Lock()

    def at(self, moment: datetime, exemptions: tuple[Exemption, ...]) -> Told:
        """What is found at a clock, in UTC; whoever asks beside another waits for what that one works out."""
        key = (moment, tuple(map(id, exemptions)))
        known = self._told.get(key)
        if known is None:
            with self._lock:
                known = self._told.get(key)
                if known is None:
                    known = (exemptions, self._tell(moment, exemptions))
                    self._told = {**dict([*self._told.items()][1 - _KEPT :]), key: known}
        return known[1]

    def _tell(self, moment: datetime, exemptions: Sequence[Exemption]) -> Told:
        policies = self._prepared.bundle.policies
        parts = (self._timeless(moment), _judged_with_reads(self._clocked, moment))
        findings = [entry for found, _ in parts for entry in found]
        in_force, notes = exempting.in_force_of(exemptions, policies, moment)
        found, covering = marked(findings, in_force, self.homes)
        uses = Counter(one for ids in covering.values() for one in ids)
        failing = sorted((entry for entry in found if _stands(entry[0])), key=lambda entry: order_of(entry[0]))
        by_pair, standing = (
            {(pair.policy, pair.subject): finding for finding, pair in entries} for entries in (found, failing)
        )
        said = frozenset([*problems_of(self._prepared), *notes])
        reads = tuple(reads for _, reads in parts)
        return Told(by_pair, standing, in_force, covering, uses, said, reads, self._spoken_of(found))

    def _spoken_of(self, found: Judged) -> Mapping[str, Sequence[tuple[int, int]]]:
        subjects = self._prepared.estate.subjects
        spoken_of: dict[str, list[tuple[int, int]]] = {}
        for finding, pair in found if self._prepared.snapshot.texts else ():
            for reason in (*finding.denials, *finding.unknowns):
                holder, _ = held_by(reason.path, subjects[pair.subject], subjects)
                if holder != finding.resource:
                    spoken_of.setdefault(folded_id(holder), []).append((pair.policy, pair.subject))
        return spoken_of

    def _timeless(self, moment: datetime) -> tuple[Judged, Reads]:
        """The findings of the policies that cannot read the clock, which are the same at any, and what they read."""
        if self._without_clock is None:
            self._without_clock = _judged_with_reads(self._only(clock=False), moment)
        return self._without_clock

    @cached_property
    def _clocked(self) -> EvaluationContext:
        return self._only(clock=True)

    def _only(self, *, clock: bool) -> EvaluationContext:
        reaches = self._prepared.bundle.reaches
        planned = [entry for entry in self._prepared.planned if reaches[entry.pair.policy].clock is clock]
        return replace(self._prepared, planned=planned)


def judged(prepared: EvaluationContext, moment: datetime) -> Judged:
    """The findings of all pairs that are planned."""
    return findings_by_pair(prepared, judge(prepared.work(moment)))


def _judged_with_reads(prepared: EvaluationContext, moment: datetime) -> tuple[Judged, Reads]:
    """The findings of all pairs that are planned, and what the policies read that can read more than their subjects."""
    reaches, work = prepared.bundle.reaches, prepared.work(moment)
    reads_more = [reach.others or reach.workspace for reach in reaches]
    traced = dict(trace_pairs(prepared, replace(work, pairs=[pair for pair in work.pairs if reads_more[pair.policy]])))
    others = replace(work, pairs=[pair for pair in work.pairs if not reads_more[pair.policy]])
    judgements = dict(zip(others.pairs, judge(others), strict=True))
    judgements |= {pair: judgement for pair, (judgement, _) in traced.items()}
    found = findings_by_pair(prepared, [judgements[pair] for pair in work.pairs])
    return found, Reads(traced.items(), prepared.estate.subjects)


def marked(
    found: Judged, in_force: Sequence[Exemption], homes: Mapping[tuple[str, str], str]
) -> tuple[Judged, dict[tuple[int, int], list[str]]]:
    """The findings with the marks of exemptions, and by pair the ids of those that cover it."""
    if not in_force:
        return found, {}
    covering: dict[tuple[int, int], list[str]] = {}
    with_marks = []
    for finding, pair in found:
        ids: list[str] = []
        with_marks.append((exempting.marked_by(finding, in_force, homes, ids.append), pair))
        if ids:
            covering[pair.policy, pair.subject] = ids
    return with_marks, covering


def in_order(pairs: Pairs) -> Iterator[tuple[int, int]]:
    """Pairs in the order of a plan."""
    return ((number, at) for number in sorted(pairs) for at in sorted(pairs[number]))


def _stands(finding: Finding) -> bool:
    return finding.outcome in (Outcome.FAIL, Outcome.ERROR) and finding.exemption is None
