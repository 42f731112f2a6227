"""What is found of a snapshot that changes, and what was read for it: findings stay until a change affects them."""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from policyeng import exemptions as exempting
from policyeng.admission.attribution import Touches, reported, touches_of
from policyeng.bundle import Bundle
from policyeng.bundle.dependencies import EVERYTHING
from policyeng.engines import Pair, judge
from policyeng.engines.tracing import Traced
from policyeng.evaluation import EvaluationContext, homes_of, problems_of
from policyeng.evaluation.changing_snapshot import ChangingSnapshot, Edits, Rows
from policyeng.evaluation.findings import findings_by_pair
from policyeng.evaluation.input_warnings import of_classifications, of_compute, unknown_classifications
from policyeng.evaluation.invalidation import Invalidation, Pairs
from policyeng.evaluation.plan import PlannedPair, plan
from policyeng.evaluation.prepared_snapshot import Becomes, Resource
from policyeng.evaluation.source_locations import held_by
from policyeng.evaluation.tracing import Differences, Numbers, Reads, name_of, trace_pairs
from policyeng.facts.computes import COMPUTE_TYPE
from policyeng.facts.ids import folded_id
from policyeng.frozen import replace
from policyeng.models import Exemption, Finding, Outcome, Problem, lowered

#: For so many clocks findings are kept; requests beside each other have the same one, or one that follows.
_MOMENTS = 4

#: Findings with the pairs that they are of, sorted.
Found = list[tuple[Finding, Pair]]
#: By the id, as `folded_id` gives it, of what has its places in a text: the pairs whose findings name a place in it,
#: though they are of something else.
_SpokenOf = dict[str, set[Numbers]]


class _Moment(NamedTuple):
    """What is found at one clock of pairs that read it.

    Attributes:
        findings: of the pairs that were evaluated; None where there is no finding.
        reads: what those of them have read that read more than their own subjects.
    """

    findings: dict[Numbers, Finding | None]
    reads: Reads
    spoken_of: _SpokenOf


class Compared(NamedTuple):
    """A snapshot before and after a change.

    Attributes:
        before: findings of the pairs that the change can affect, and of all others on what it names.
        after: those of the same pairs after it.
        pairs: those before it.
        problems: those that the change may bring, in their order.
        touches: tells whether what the policy of a finding of before reads is changed.
    """

    before: Sequence[Finding]
    after: Sequence[Finding]
    pairs: Pairs
    problems: Sequence[Problem]
    touches: Touches


class BaselineFindings:
    """The findings of a snapshot, evaluated when first needed; one thread at a time may use them.

    The outcomes of pairs that have not read the clock count at any. The others are evaluated for each clock: at once
    those that can read what changes elsewhere, because at another clock they may read something else, and the rest
    when they are asked for.

    Attributes:
        problems: what is said of the snapshot, whatever is found in it.
    """

    def __init__(self, prepared: EvaluationContext) -> None:
        """Take a snapshot with all of its pairs."""
        self.problems = set(problems_of(prepared))
        self._prepared = prepared
        self._numbers = {policy.id: number for number, policy in enumerate(prepared.bundle.policies)}
        self._snapshot = ChangingSnapshot(prepared)
        self._words = Counter(prepared.unknown_classifications)
        self._affecting = Invalidation(prepared.bundle, self._snapshot, prepared.planned)
        self._homes = homes_of(prepared.estate.subjects)
        self._waiting: Sequence[PlannedPair] = prepared.planned
        self._findings: dict[Numbers, Finding] = {}
        self._reads = Reads()
        #: By the number of a policy, its failures and errors, and the pairs of which the outcome depends on the clock.
        self._failing: dict[int, dict[Numbers, None]] = {}
        self._timed: dict[int, dict[Numbers, None]] = {}
        self._spoken_of: _SpokenOf = {}
        self._moments: dict[datetime, _Moment] = {}

    def change(self, becomes: Mapping[str, Becomes], moment: datetime) -> Edits:
        """Have the snapshot changed until the edits are taken back.

        Args:
            becomes: by id as `folded_id` gives it.
            moment: the evaluation clock, in UTC.
        """
        now, edits = self._at(moment), Edits()
        for name in ("problems", "_words", "_moments"):
            edits.keep(vars(self), name)
        self._moments = {moment: now}
        rows = self._snapshot.rows(becomes)
        differences = self._snapshot.differences(rows)
        spoken = (pair for key in becomes for one in (self._spoken_of, now.spoken_of) for pair in one.get(key, ()))
        affected = self._affecting.by(rows, differences, [self._reads, now.reads], (), spoken)
        for numbers in {*_in_order(affected.before), *_in_order(affected.after)}:
            self._keep(edits, numbers, now)
        for numbers in _in_order(affected.before):
            self._forget(numbers, now)
        come, gone = self._words_of(rows)
        left = gone.keys() - (self._words - gone + come)
        ended = {*_remarks(row.before for row in rows.resources), *self._said_of(left)}
        self.problems = {*(self.problems - ended), *self._fresh(rows)}
        self._words = self._words - gone + come
        self._snapshot.change(edits, rows, differences)
        self._affecting.change(edits, rows.all)
        homes = homes_of(row.after for row in rows.all if row.after)
        for key in homes:
            edits.keep(self._homes, key)
        self._homes.update(homes)
        self._add(self._planned(affected.after), moment)
        return edits

    def compare(
        self, becomes: Mapping[str, Becomes], named: Iterable[str], moment: datetime, in_force: Sequence[Exemption]
    ) -> Compared:
        """Hold the snapshot after a change against the one before it.

        Args:
            becomes: by id as `folded_id` gives it.
            named: ids of what the change names.
            moment: the evaluation clock, in UTC.
            in_force: the exemptions that count.
        """
        now = self._at(moment)
        rows = self._snapshot.rows(becomes)
        differences = self._snapshot.differences(rows)
        positions = [at for key in named if (at := self._snapshot.position_of(key)) is not None]
        # What is read elsewhere has its places elsewhere, though it says the same.
        spoken = (pair for key in becomes for one in (self._spoken_of, now.spoken_of) for pair in one.get(key, ()))
        affected = self._affecting.by(rows, differences, [self._reads, now.reads], positions, spoken)
        used, used_after = set[str](), set[str]()
        before = _marked(self._of(affected.before, moment), in_force, self._homes, used)
        same = _marked(self._of(affected.same, moment), in_force, self._homes, used_after)
        with self._snapshot.changed(rows, differences) as context:
            planned = tuple(plan(context.bundle, context.estate, affected.after))
            found = _evaluated(replace(context, planned=planned), moment)
        homes = ChainMap(homes_of(row.after for row in rows.all if row.after), self._homes) if in_force else {}
        after = _marked((finding for finding, _ in found), in_force, homes, used_after)
        pairs = {number: affected.before.get(number, set()) | positions for number, positions in affected.same.items()}
        pairs = {**affected.before, **pairs}
        lapsed = (one for one in in_force if one.id in used - used_after)
        idle = [one for one in lapsed if not self._is_used(one, pairs, moment)]
        # An error about what is named counts, though it was there before.
        problems = [*self._fresh(rows, positions), *exempting.unused(idle, ())]
        touches = self._touches(before, same, differences, moment)
        return Compared([*before, *same], [*same, *after], pairs, problems, touches)

    def standing(self, pairs: Pairs, moment: datetime, in_force: Sequence[Exemption]) -> list[Finding]:
        """The failures and errors that no exemption accepts, but for some pairs.

        Args:
            pairs: those that are left out.
            moment: the evaluation clock, in UTC.
            in_force: the exemptions that count.
        """
        numbers = {*self._failing, *self._timed}
        found = (finding for number in sorted(numbers) for finding in self._failing_of(number, pairs, moment))
        return [finding for finding in _marked(found, in_force, self._homes, set()) if finding.exemption is None]

    def _failing_of(self, number: int, pairs: Pairs, moment: datetime) -> list[Finding]:
        """The failures and errors of a policy, but for some pairs."""
        of_policy = (*self._failing.get(number, ()), *self._timed.get(number, ()))
        positions = {at for _, at in of_policy}.difference(pairs.get(number, ()))
        return [finding for finding in self._of({number: positions}, moment) if _is_failing(finding)]

    def _is_used(self, exemption: Exemption, pairs: Pairs, moment: datetime) -> bool:
        """Whether an exemption covers a failure, but for some pairs."""
        used = set[str]()
        if exemption.policy in self._numbers:
            _marked(self._failing_of(self._numbers[exemption.policy], pairs, moment), [exemption], self._homes, used)
        return bool(used)

    def _of(self, pairs: Pairs, moment: datetime) -> Iterator[Finding]:
        """What is found of some pairs at a clock, in the order of a plan."""
        now = self._at(moment)
        missing: Pairs = {}
        for number, at in _in_order(pairs):
            if (number, at) in self._timed.get(number, ()) and (number, at) not in now.findings:
                missing.setdefault(number, set()).add(at)
        if missing:
            now.findings.update(dict.fromkeys(_in_order(missing)))
            found = _evaluated(replace(self._snapshot.context, planned=self._planned(missing)), moment)
            now.findings.update(((pair.policy, pair.subject), finding) for finding, pair in found)
        for numbers in _in_order(pairs):
            finding = now.findings[numbers] if numbers in now.findings else self._findings.get(numbers)
            if finding is not None:
                yield finding

    def _at(self, moment: datetime) -> _Moment:
        """What is found at a clock of the pairs that read it and can read more than their own subjects."""
        self._evaluate_waiting(moment)
        now = self._moments.get(moment)
        if now is None:
            now = self._begin(moment)
            reaches, has_places = self._bundle.reaches, bool(self._prepared.snapshot.texts)
            wanted = {
                number: {at for _, at in pairs}
                for number, pairs in self._timed.items()
                if has_places or reaches[number].others or reaches[number].workspace
            }
            context = replace(self._snapshot.context, planned=self._planned(wanted))
            now.findings.update(dict.fromkeys(_in_order(wanted)))
            found, traced = _traced(context, moment, lambda _: True)
            now.findings.update(((pair.policy, pair.subject), finding) for finding, pair in found)
            self._note_reads(now.reads, traced)
            self._note_places(now.spoken_of, found)
        return now

    def _begin(self, moment: datetime) -> _Moment:
        """Keep what will be found at a clock, and forget the first of many."""
        now = _Moment({}, Reads(), {})
        self._moments = {**dict([*self._moments.items()][1 - _MOMENTS :]), moment: now}
        return now

    def _evaluate_waiting(self, moment: datetime) -> None:
        waiting, self._waiting = self._waiting, ()
        if waiting:
            self._add(waiting, moment)

    def _add(self, planned: Sequence[PlannedPair], moment: datetime) -> None:
        """Evaluate pairs, and keep what is found and read."""
        reaches = self._bundle.reaches
        context = replace(self._snapshot.context, planned=planned)
        found, traced = _traced(
            context, moment, lambda number: reaches[number].others or reaches[number].workspace or reaches[number].clock
        )
        timed = {pair for pair, one in traced.items() if self._is_timed(pair.policy, one)}
        now = self._moments.get(moment) or self._begin(moment)
        for pair in timed:
            self._timed.setdefault(pair.policy, {})[pair.policy, pair.subject] = None
            now.findings[pair.policy, pair.subject] = None
        for finding, pair in found:
            numbers = pair.policy, pair.subject
            if pair in timed:
                now.findings[numbers] = finding
            else:
                self._findings[numbers] = finding
                if _is_failing(finding):
                    self._failing.setdefault(pair.policy, {})[numbers] = None
        for reads, spoken_of, is_timed in ((self._reads, self._spoken_of, False), (now.reads, now.spoken_of, True)):
            self._note_reads(reads, {pair: one for pair, one in traced.items() if (pair in timed) is is_timed})
            self._note_places(spoken_of, [entry for entry in found if (entry[1] in timed) is is_timed])

    def _is_timed(self, number: int, traced: Traced) -> bool:
        """Whether the outcome of a pair may be another at another clock."""
        reach = self._bundle.reaches[number]
        is_veiled = reach._replace(types=frozenset()) == EVERYTHING
        return reach.clock and (is_veiled or traced.reads_clock)

    def _forget(self, numbers: Numbers, now: _Moment) -> None:
        for findings, reads in ((self._findings, self._reads), (now.findings, now.reads)):
            findings.pop(numbers, None)
            reads.forget(numbers)
        for held in (self._failing, self._timed):
            held.get(numbers[0], {}).pop(numbers, None)

    def _keep(self, edits: Edits, numbers: Numbers, now: _Moment) -> None:
        """Have all that is known of a pair known again when the edits are taken back."""
        for findings, reads in ((self._findings, self._reads), (now.findings, now.reads)):
            edits.keep(findings, numbers)
            edits.keep(reads.undecided, numbers)
            edits.keep(reads.own, numbers)
        for held in (self._failing, self._timed):
            edits.keep(held.setdefault(numbers[0], {}), numbers)

    def _planned(self, pairs: Pairs) -> Sequence[PlannedPair]:
        return tuple(plan(self._bundle, self._snapshot.context.estate, pairs))

    @property
    def _bundle(self) -> Bundle:
        return self._prepared.bundle

    def _note_reads(self, reads: Reads, traced: Mapping[Pair, Traced]) -> None:
        subjects = self._snapshot.subjects
        for pair, one in traced.items():
            reads.add((pair.policy, pair.subject), one, name_of(subjects[pair.subject]))

    def _note_places(self, spoken_of: _SpokenOf, found: Found) -> None:
        subjects = self._snapshot.subjects
        for finding, pair in found if self._prepared.snapshot.texts else ():
            for reason in (*finding.denials, *finding.unknowns):
                holder, _ = held_by(reason.path, subjects[pair.subject], subjects)
                if holder != finding.resource:
                    spoken_of.setdefault(folded_id(holder), set()).add((pair.policy, pair.subject))

    def _touches(
        self, before: Sequence[Finding], same: Sequence[Finding], differences: Differences, moment: datetime
    ) -> Touches:
        """Return a function that tells whether what the policy of a finding of before reads is changed.

        It is not for those that stay the `same`.
        """
        snapshot, untouched = self._snapshot, set(map(id, same))

        def pairs_of(finding: Finding) -> Iterator[Numbers]:
            number, key = self._numbers[finding.policy], (finding.resource_type, folded_id(finding.resource))
            return ((number, at) for at in snapshot.positions_of(key[1]) if reported(snapshot.subjects[at]) == key)

        traced = ChainMap(self._at(moment).reads.undecided, self._reads.undecided)
        touches = touches_of(before, snapshot.context, moment, differences, pairs_of, traced)
        return lambda finding: id(finding) not in untouched and touches(finding)

    def _fresh(self, rows: Rows, further: Iterable[int] = ()) -> list[Problem]:
        """What is said of resources once they have changed, and of further ones at some positions."""
        come, _ = self._words_of(rows)
        subjects = {at: self._snapshot.subjects[at] for at in further}
        after = {row.position: row.after for row in rows.resources}
        there = [subject for subject in (subjects | after).values() if subject is not None]
        there.sort(key=lambda subject: lowered(subject.reported_id))
        return [*_remarks(there), *self._said_of(come)]

    def _said_of(self, words: Iterable[str]) -> list[Problem]:
        return of_classifications(words, self._prepared.known_classifications)

    def _words_of(self, rows: Rows) -> tuple[Counter[str], Counter[str]]:
        """The classifications that are not known of resources after a change, and before it."""
        known = self._prepared.known_classifications
        sides = ([row.after for row in rows.resources], [row.before for row in rows.resources])
        come, gone = (
            unknown_classifications((subject.document for subject in subjects if subject is not None), known)
            for subjects in sides
        )
        return come, gone


def _traced(
    context: EvaluationContext, moment: datetime, is_traced: Callable[[int], bool]
) -> tuple[Found, dict[Pair, Traced]]:
    """The findings of all pairs that are planned, and what those read of which the policy is to be traced."""
    work = context.work(moment)
    numbers = {number for number in {pair.policy for pair in work.pairs} if is_traced(number)}
    again = replace(work, pairs=[pair for pair in work.pairs if pair.policy in numbers])
    others = replace(work, pairs=[pair for pair in work.pairs if pair.policy not in numbers])
    traced = dict(trace_pairs(context, again))
    judgements = dict(zip(others.pairs, judge(others), strict=True))
    judgements |= {pair: judgement for pair, (judgement, _) in traced.items()}
    return findings_by_pair(context, [judgements[pair] for pair in work.pairs]), traced


def _evaluated(context: EvaluationContext, moment: datetime) -> Found:
    """The findings of all pairs that are planned."""
    return findings_by_pair(context, judge(context.work(moment)))


def _marked(
    findings: Iterable[Finding], in_force: Sequence[Exemption], homes: Mapping[tuple[str, str], str], used: set[str]
) -> list[Finding]:
    """The findings with the marks of exemptions; `used` takes the ids of those that cover any."""
    if not in_force:
        return list(findings)
    return [exempting.marked_by(finding, in_force, homes, used.add) for finding in findings]


def _in_order(pairs: Pairs) -> Iterator[Numbers]:
    """Pairs in the order of a plan."""
    return ((number, at) for number in sorted(pairs) for at in sorted(pairs[number]))


def _is_failing(finding: Finding) -> bool:
    return finding.outcome in (Outcome.FAIL, Outcome.ERROR)


def _remarks(subjects: Iterable[Resource | None]) -> list[Problem]:
    """What is said of resources as they are written, then of computes."""
    there = [subject for subject in subjects if subject is not None]
    computes = (subject for subject in there if subject.judged_type == COMPUTE_TYPE)
    said = [problem for subject in there for problem in subject.remarks]
    return said + [problem for one in computes for problem in of_compute(one.document, one.unreadable)]
