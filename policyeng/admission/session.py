"""What decisions on changes of one state rest on: the state judged once, and per change only what it can affect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from operator import is_
from threading import Lock
from typing import NamedTuple

import orjson

from policyeng import exemptions as exempting
from policyeng._performance import uncollected
from policyeng.admission.attribution import sorted_out
from policyeng.admission.baseline import BaselineFindings
from policyeng.admission.changes import (
    NOTHING_MADE,
    ChangedResources,
    Changes,
    becomes_of,
    changes_of,
    held_of,
    made_of,
)
from policyeng.admission.decide import AdmissionOptions, decided_wholly, homes_of
from policyeng.admission.decision import DecisionHeader, DecisionThreshold, brought, decided
from policyeng.bundle import Bundle
from policyeng.engines import engine_version
from policyeng.evaluation import EvaluationContext, prepare
from policyeng.evaluation.changing_snapshot import Edits
from policyeng.evaluation.prepared_snapshot import Becomes
from policyeng.facts.ids import folded_id, scopes_of, workspace_of
from policyeng.models import BundleRef, Change, Decision, EngineRef, JsonObject, Snapshot, SnapshotRef

#: So many states can be gone back to.
_STATES = 8


class _ChangedState(NamedTuple):
    """What changes make of a snapshot.

    Attributes:
        edits: lead back to the state before; None where there is none.
    """

    changes: Sequence[Change]
    made: ChangedResources
    edits: Edits | None


_FIRST = _ChangedState((), NOTHING_MADE, None)


class AdmissionSession:
    """A bundle and a state that changes are judged against, ready for many of them; threads may share it.

    It decides as `admit` does, which keeps the last few of these; whoever decides on one state for long holds one. The
    snapshot must not be changed meanwhile, nor changes that are given as made before several decisions. What is found
    after those is kept while they are the same.
    """

    def __init__(self, bundle: Bundle, snapshot: Snapshot, parameters: Mapping[str, JsonObject] | None = None) -> None:
        """Make a state ready; it is judged with the first change.

        Raises:
            UsageError: a parameter does not exist or does not fit its schema.
        """
        self.bundle, self.snapshot, self.parameters = bundle, snapshot, parameters
        prepared = self._prepared = prepare(bundle, snapshot, parameters)
        self._state = prepared.snapshot
        self._held = held_of(self._state)
        self._homes = homes_of(snapshot)
        #: None where changes are decided wholly.
        self._kept = None if _is_odd(prepared, self._held) else BaselineFindings(prepared)
        #: The states of which findings were kept last, each made of the one before; they are kept of the last.
        self._states = [_FIRST]
        #: The changes before the last decision, as they were given and as they are read.
        self._read: tuple[Sequence[object], Sequence[Change]] = ((), ())
        self._lock = Lock()
        #: The ids of what is judged and is no resource of the snapshot: approvals, and workloads that stand alone.
        self._stated = frozenset(_other_ids(prepared)) - frozenset(self._held)
        self._grounds = _grounds(prepared)
        #: How many resources, and workspaces, each subscription has, where it matters: lists are read by subscription.
        self._subscriptions = Counter(map(_counted_as, self._held)) if prepared.estate.covers is not None else None

    def decide(self, change: Changes, options: AdmissionOptions, before: Changes = ()) -> Decision:
        """Decide whether a change may be made of the state after other changes, which are `before` it.

        Raises:
            InputError, UsageError, EngineError: as `admit` says.
        """
        changes = changes_of(change, self.bundle.spellings)
        gate = options.gate(self.bundle, self._homes)
        if options.engine == "embedded" and self._kept is not None:
            with self._lock:  # what is kept changes in place
                earlier = self._earlier(before)
                try:
                    decision = self._decided(self._kept, changes, earlier, options, gate)
                except BaseException:
                    self._kept, self._states = BaselineFindings(self._prepared), [_FIRST]
                    raise
            if decision is not None:
                return decision
        else:
            earlier = changes_of(before, self.bundle.spellings)
        return decided_wholly(self.bundle, self.snapshot, changes, options, self.parameters, earlier)

    def _earlier(self, before: Changes) -> Sequence[Change]:
        """The changes before another; read again only where they are other objects than the last ones."""
        last, known = self._read
        given = tuple(before) if isinstance(before, Sequence) and not isinstance(before, str) else (before,)
        if len(given) != len(last) or not all(map(is_, given, last)):
            known = changes_of(before, self.bundle.spellings)
            self._read = given, known
        return known

    def _changes_subscriptions(self, made: ChangedResources) -> bool:
        """Return whether changes add or delete the only resource, or the only workspace, of a subscription."""
        if self._subscriptions is None:
            return False
        more = Counter[tuple[str, bool]]()
        for key, becomes in made.becomes.items():
            more[_counted_as(key)] += (becomes.resource is not None) - (key in self._held)
        before = self._subscriptions
        return any((before[one] > 0) != (before[one] + number > 0) for one, number in more.items())

    @uncollected()
    def _decided(
        self,
        kept: BaselineFindings,
        changes: Sequence[Change],
        earlier: Sequence[Change],
        options: AdmissionOptions,
        gate: DecisionThreshold,
    ) -> Decision | None:
        """Decide from what changes affect; None where it has to be done wholly."""
        known, given = self._states[-1].changes, self._states[-1].made
        if earlier != known:
            given = made_of(earlier, self._held, self._state, spellings=self.bundle.spellings)
        made = made_of(changes, self._held, self._state, given, self.bundle.spellings)
        is_stated = not self._stated.isdisjoint({*made.becomes, *made.changed})
        if is_stated or self._changes_subscriptions(given) or self._changes_subscriptions(made):
            return None
        moment = options.moment
        if earlier != known:
            self._move(kept, earlier, given, moment)
        in_force = (
            exempting.in_force_of(options.exemptions, self.bundle.policies, moment)[0] if options.exemptions else []
        )
        becomes = {key: after for key, after in made.becomes.items() if after is not given.becomes.get(key)}
        compared = kept.compare(becomes, made.changed, moment, in_force)
        said = sorted_out(compared.before, compared.after, made.changed, compared.touches)
        if options.standing:
            said.elsewhere.extend(kept.standing(compared.pairs, moment, in_force))
        problems = brought(kept.problems, [*given.problems, *made.problems, *compared.problems], made.changed)
        return decided(changes, self._grounds._replace(as_of=moment), said, problems, gate)

    def _move(
        self, kept: BaselineFindings, changes: Sequence[Change], made: ChangedResources, moment: datetime
    ) -> None:
        """Have the findings kept that are those after changes, from the nearest of the last states."""
        apart = self._between(self._states[-1].made, made)
        while (edits := self._states[-1].edits) is not None:
            near = self._between(self._states[-2].made, made)
            if len(near) >= len(apart):
                break
            edits.take_back()
            self._states.pop()
            apart = near
        if apart:
            self._states.append(_ChangedState(changes, made, kept.change(apart, moment)))
        else:
            self._states[-1] = self._states[-1]._replace(changes=changes, made=made)
        if len(self._states) > _STATES:
            self._states = [self._states[1]._replace(edits=None), *self._states[2:]]

    def _between(self, one: ChangedResources, other: ChangedResources) -> dict[str, Becomes]:
        """What resources become where other changes are made of the snapshot instead of some."""
        found = {key: becomes_of(self._held.get(key), self._state) for key in one.becomes}
        found |= other.becomes
        return {key: after for key, after in found.items() if not _is_same(after, one.becomes.get(key))}


def _is_same(one: Becomes, other: Becomes | None) -> bool:
    """Whether a resource becomes the same; as JSON, because 1 and true are equal to Python."""
    if other is None or one.notes != other.notes:
        return False
    return one.resource is other.resource or orjson.dumps(one.resource) == orjson.dumps(other.resource)


def _is_odd(prepared: EvaluationContext, held: Mapping[str, JsonObject]) -> bool:
    """Whether changes are decided wholly.

    So it is where policies evaluate documents, or ids do not tell subjects apart. So it is, too, where the state has an
    error, which a change may take away or keep.
    """
    snapshot, view = prepared.snapshot, prepared.estate.view
    if (
        snapshot.documents
        or any(problem.level == "error" for problem in prepared.estate.problems)
        or any(policy.input_form != "policy" for policy in prepared.bundle.policies)
    ):
        return True
    ids = _other_ids(prepared)
    named = len(snapshot.resources) == len(view.resources) == len(held)
    workloads, approvals = ids[: len(view.workloads)], ids[len(view.workloads) :]
    apart = len(set(workloads)) == len(workloads) and len(set(approvals)) == len(approvals)
    return not (named and apart and held.keys().isdisjoint(approvals))


def _other_ids(prepared: EvaluationContext) -> list[str]:
    """The ids of workloads, approvals and documents, in their order."""
    others = prepared.estate.subjects[len(prepared.estate.view.resources) :]
    return [folded_id(subject.reported_id) for subject in others]


def _counted_as(key: str) -> tuple[str, bool]:
    """Return the subscription of a lower-case id, and whether the id is that of a workspace."""
    return next(iter(scopes_of(key)), ""), workspace_of(key) == key


def _grounds(prepared: EvaluationContext) -> DecisionHeader:
    """What every decision says of the state; the clock is that of each."""
    bundle, snapshot = prepared.bundle, prepared.snapshot
    return DecisionHeader(
        BundleRef(name=bundle.name, revision=bundle.revision, digest=bundle.digest),
        SnapshotRef(scope=snapshot.scope, taken_at=snapshot.taken_at, digest=prepared.estate.digest),
        datetime.min.replace(tzinfo=UTC),
        EngineRef(name="embedded", version=engine_version("embedded")),
    )
