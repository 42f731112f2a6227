"""Decide on many changes of one state: evaluate the state once, and for each change only the pairs it can affect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from operator import is_
from threading import Lock
from typing import NamedTuple

import orjson
from msgspec.structs import replace

from policyeng import exemptions as exempting
from policyeng._performance import uncollected
from policyeng.admission.attribution import sorted_out
from policyeng.admission.baseline import Baseline
from policyeng.admission.changes import (
    NOTHING_MADE,
    ChangedResources,
    Changes,
    apply_earlier,
    apply_in_order,
    becomes_of,
    changes_of,
    index_resources,
    prepare_changes,
)
from policyeng.admission.decide import decided_wholly, find_scopes
from policyeng.admission.decision import (
    AdmissionOptions,
    DecisionHeader,
    DecisionThreshold,
    decided,
    find_new_problems,
    with_problems,
)
from policyeng.bundle import Bundle
from policyeng.engines import engine_version
from policyeng.evaluation import EvaluationContext, prepare
from policyeng.evaluation.changing_snapshot import Edits, can_change
from policyeng.evaluation.prepared_snapshot import Becomes
from policyeng.facts.ids import fold_id
from policyeng.models import BundleRef, Change, Decision, EngineRef, JsonObject, Snapshot, SnapshotRef
from policyeng.sources import ChangesRead

#: The number of states that can be restored.
_STATES = 8


class _ChangedState(NamedTuple):
    """A state of the snapshot after changes.

    Attributes:
        edits: undo these to restore the previous state; None if there is none.
    """

    changes: _Earlier
    made: ChangedResources
    edits: Edits | None


class _Earlier(NamedTuple):
    """Changes that were made already; see `apply_earlier`."""

    remembered: Sequence[Change]
    before: Sequence[Change]


_FIRST = _ChangedState(_Earlier((), ()), NOTHING_MADE, None)


class _ReadChanges(NamedTuple):
    """Changes as they were passed, and as they were read."""

    passed: Sequence[object]
    changes: Sequence[Change]


class AdmissionSession:
    """A bundle and a state, prepared for decisions on many changes. It is thread-safe.

    It returns the same decisions as `admit`, which caches the last few sessions. Do not modify the snapshot while the
    session is in use, nor the changes that are passed as `before` to several decisions. The findings after these
    changes are cached while the changes stay the same.
    """

    def __init__(self, bundle: Bundle, snapshot: Snapshot, parameters: Mapping[str, JsonObject] | None = None) -> None:
        """Prepare a state; it is evaluated with the first change.

        Raises:
            UsageError: a parameter does not exist or does not match its schema.
        """
        self.bundle, self.snapshot, self.parameters = bundle, snapshot, parameters
        prepared = self._prepared = prepare(bundle, snapshot, parameters)
        self._state = prepared.snapshot
        self._by_id = index_resources(self._state)
        self._homes = find_scopes(snapshot)
        #: None if every decision evaluates everything.
        self._baseline = Baseline(prepared) if can_change(prepared) else None
        #: The last states, each made from the previous one; the findings are those of the last state.
        self._states = [_FIRST]
        #: The earlier changes of the last decision, as passed and as read.
        self._read = [_ReadChanges((), ()), _ReadChanges((), ())]
        self._lock = Lock()
        #: The ids of subjects that are not resources of the snapshot: approvals, and declared workloads.
        others = prepared.estate.subjects[len(prepared.estate.view.resources) :]
        self._stated = frozenset(fold_id(subject.reported_id) for subject in others) - frozenset(self._by_id)
        self._header = _header(prepared)

    def decide(
        self, change: Changes, options: AdmissionOptions, before: Changes = (), remembered: Sequence[Change] = ()
    ) -> Decision:
        """Decide whether a change of the state is allowed after other changes, which are `before` it.

        Args:
            change: as for `admit`.
            options: how to decide.
            before: as for `admit`.
            remembered: changes that others made before all these, such as those that a server allowed. What is wrong
                with them is no problem of this change.

        Raises:
            InputError, UsageError, EngineError: as for `admit`.
        """
        read = prepare_changes(change, self.bundle.spellings)
        gate = options.gate(self.bundle, self._homes)
        decision = None
        with self._lock:  # the findings change in place
            earlier = self._earlier(remembered, before)
            if options.engine == "embedded" and self._baseline is not None:
                try:
                    decision = self._decided(self._baseline, read.changes, earlier, options, gate)
                except BaseException:
                    self._baseline, self._states = Baseline(self._prepared), [_FIRST]
                    raise
        if decision is None:
            decision = decided_wholly(
                self.bundle,
                self.snapshot,
                read.changes,
                replace(options, parameters=self.parameters or {}),
                before=earlier.before,
                remembered=earlier.remembered,
            )
        if not read.problems and not read.ledger:
            return decision
        return with_problems(decision, read.problems, read.ledger, options)

    def list_effective(
        self, changes: Sequence[Change], before: Sequence[Change], remembered: Sequence[Change]
    ) -> list[Change]:
        """Return the changes that change the state, in their order; the arguments are as for `decide`."""
        effective = []
        with self._lock:
            earlier = self._earlier(remembered, before)
            given = self._states[-1].made if earlier == self._states[-1].changes else self._apply(earlier)
        for change, spelled in zip(changes, changes_of(changes, self.bundle.spellings), strict=True):
            made = apply_in_order([spelled], self._by_id, self._state, given, self.bundle.spellings)
            if not all(_is_same(self._find(key, given), after, anywhere=True) for key, after in made.becomes.items()):
                effective.append(change)
            given = made
        return effective

    def _earlier(self, remembered: Changes, before: Changes) -> _Earlier:
        """Return the earlier changes; they are read again only if they are different objects than last time."""
        for number, changes in enumerate((remembered, before)):
            passed: tuple[object, ...] = (changes,)
            if isinstance(changes, list | tuple | ChangesRead):
                passed = tuple(changes)
            last = self._read[number].passed
            if isinstance(changes, ChangesRead) or len(passed) != len(last) or not all(map(is_, passed, last)):
                self._read[number] = _ReadChanges(passed, changes_of(changes, self.bundle.spellings))
        return _Earlier(*(read.changes for read in self._read))

    def _apply(self, earlier: _Earlier) -> ChangedResources:
        return apply_earlier(*earlier, self._by_id, self._state, self.bundle.spellings)

    @uncollected()
    def _decided(
        self,
        baseline: Baseline,
        changes: Sequence[Change],
        earlier: _Earlier,
        options: AdmissionOptions,
        gate: DecisionThreshold,
    ) -> Decision | None:
        """Decide from the pairs that changes affect; None if everything must be evaluated."""
        known, given = self._states[-1].changes, self._states[-1].made
        if earlier != known:
            given = self._apply(earlier)
        made = apply_in_order(changes, self._by_id, self._state, given, self.bundle.spellings)
        if not self._stated.isdisjoint({*made.becomes, *made.changed}):
            return None
        moment = options.moment
        if earlier != known and not self._move(baseline, earlier, given, moment):
            return None
        in_force = (
            exempting.in_force_of(options.exemptions, self.bundle.policies, moment)[0] if options.exemptions else []
        )
        becomes = {key: after for key, after in made.becomes.items() if after is not given.becomes.get(key)}
        compared = baseline.compare(becomes, made.changed, moment, in_force)
        if compared is None:
            return None
        attributed = sorted_out(compared.before, compared.after, made.changed, compared.touches)
        if options.standing:
            attributed.elsewhere.extend(baseline.standing(compared.pairs, moment, in_force))
        problems = find_new_problems(
            baseline.problems, [*given.problems, *made.problems, *compared.problems], made.changed
        )
        return decided(changes, self._header._replace(as_of=moment), attributed, problems, gate)

    def _move(self, baseline: Baseline, changes: _Earlier, made: ChangedResources, moment: datetime) -> bool:
        """Move the findings to the state after changes, from the nearest of the last states, if they can be moved."""
        apart = self._between(self._states[-1].made, made)
        while (edits := self._states[-1].edits) is not None:
            near = self._between(self._states[-2].made, made)
            if len(near) >= len(apart):
                break
            edits.take_back()
            self._states.pop()
            apart = near
        if apart:
            edits = baseline.change(apart, moment)
            if edits is None:
                return False
            self._states.append(_ChangedState(changes, made, edits))
        else:
            self._states[-1] = self._states[-1]._replace(changes=changes, made=made)
        if len(self._states) > _STATES:
            oldest = self._states[1]
            if oldest.edits is not None:
                oldest.edits.clear()  # those of later states refer to them
            self._states = [oldest._replace(edits=None), *self._states[2:]]
        return True

    def _between(self, one: ChangedResources, other: ChangedResources) -> dict[str, Becomes]:
        """Return the later states of resources if other changes replace the current ones."""
        found = {key: self._find(key, other) for key in (*one.becomes, *other.becomes)}
        return {key: after for key, after in found.items() if not _is_same(self._find(key, one), after)}

    def _find(self, key: str, made: ChangedResources) -> Becomes:
        """Return the state of a resource after changes."""
        return made.becomes.get(key) or becomes_of(self._by_id.get(key), self._state)


def _is_same(one: Becomes, other: Becomes, *, anywhere: bool = False) -> bool:
    """Check whether two states are the same; they are compared as JSON, because 1 equals true in Python.

    With `anywhere`, where they were read and the order of their keys do not matter.
    """
    notes = [each.notes._replace(origin=None) if anywhere else each.notes for each in (one, other)]
    if notes[0] != notes[1] or one.resource is other.resource:
        return notes[0] == notes[1]
    option = orjson.OPT_SORT_KEYS if anywhere else None
    return orjson.dumps(one.resource, option=option) == orjson.dumps(other.resource, option=option)


def _header(prepared: EvaluationContext) -> DecisionHeader:
    """Return the inputs that every decision names; each decision sets its own time."""
    bundle, snapshot = prepared.bundle, prepared.snapshot
    return DecisionHeader(
        BundleRef(name=bundle.name, revision=bundle.revision, digest=bundle.digest),
        SnapshotRef(scope=snapshot.scope, taken_at=snapshot.taken_at, digest=prepared.estate.digest),
        datetime.min.replace(tzinfo=UTC),
        EngineRef(name="embedded", version=engine_version("embedded")),
        snapshot.ledger,
    )
