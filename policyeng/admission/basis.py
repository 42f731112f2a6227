"""What decisions on changes of one state rest on: the state judged once, and per change only what it can affect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from policyeng.admission.blame import sorted_out
from policyeng.admission.changes import NOTHING_MADE, Changes, Made, changes_of, held_of, made_of
from policyeng.admission.decide import AdmissionOptions, decided_wholly
from policyeng.admission.deciding import Grounds, brought, decided
from policyeng.admission.sides import Sides, compared
from policyeng.bundle import Bundle
from policyeng.engines import engine_version
from policyeng.evaluation import EvaluationContext, prepare
from policyeng.evaluation.findings import order_of
from policyeng.facts.ids import folded_id, scopes_of, workspace_of
from policyeng.garbage import uncollected
from policyeng.models import BundleRef, Change, Decision, EngineRef, JsonObject, Snapshot, SnapshotRef


class Basis:
    """A bundle and a state that changes are judged against, ready for many of them; threads may share it.

    It decides as `admit` does, which keeps the last few of these; whoever decides on one state for long holds one. The
    snapshot must not be changed meanwhile.
    """

    def __init__(self, bundle: Bundle, snapshot: Snapshot, parameters: Mapping[str, JsonObject] | None = None) -> None:
        """Make a state ready; it is judged with the first change.

        Raises:
            UsageError: a parameter does not exist or does not fit its schema.
        """
        self.bundle, self.snapshot, self.parameters = bundle, snapshot, parameters
        prepared = prepare(bundle, snapshot, parameters)
        self._state = prepared.snapshot
        self._held = held_of(self._state)
        self._sides = None if _is_odd(prepared, self._held) else Sides(prepared)
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
        changes, earlier = (changes_of(given, self.bundle.spellings) for given in (change, before))
        if options.engine == "embedded" and self._sides is not None:
            state = self._held, self._state
            given = made_of(earlier, *state, spellings=self.bundle.spellings) if earlier else NOTHING_MADE
            made = made_of(changes, *state, given, self.bundle.spellings)
            is_stated = not self._stated.isdisjoint({*made.becomes, *made.changed})
            if not is_stated and not self._changes_subscriptions(given) and not self._changes_subscriptions(made):
                return self._decided(self._sides, changes, given, made, options)
        return decided_wholly(self.bundle, self.snapshot, changes, options, self.parameters, earlier)

    def _changes_subscriptions(self, made: Made) -> bool:
        """Return whether changes add or delete the only resource, or the only workspace, of a subscription."""
        if self._subscriptions is None:
            return False
        after = Counter(self._subscriptions)
        for key, becomes in made.becomes.items():
            after[_counted_as(key)] += (becomes.resource is not None) - (key in self._held)
        return {one for one, number in after.items() if number} != self._subscriptions.keys()

    @uncollected()
    def _decided(
        self, sides: Sides, changes: Sequence[Change], given: Made, made: Made, options: AdmissionOptions
    ) -> Decision:
        """Hold the state after all of the changes against that after the `given` ones alone."""
        gate, moment = options.gate(self.bundle, self.snapshot), options.moment
        told = sides.told(moment, tuple(options.exemptions))
        earlier = sides.after(told, given) if given.becomes else sides.untouched
        later = sides.after(told, made)
        pairs = compared(earlier, later)
        before, after = (sides.found(told, side, pairs, moment) for side in (earlier, later))
        touches = sides.touches(told, earlier, later, before, moment)
        said = sorted_out(before.findings, after.findings, made.changed, touches)
        elsewhere = told.elsewhere(pairs)
        if said.elsewhere:
            elsewhere = sorted([*elsewhere, *said.elsewhere], key=order_of)
        said = said._replace(elsewhere=elsewhere)
        problems = brought(before.known, [*given.problems, *made.problems, *after.fresh], made.changed)
        return decided(changes, self._grounds._replace(as_of=moment), said, problems, gate)


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


def _grounds(prepared: EvaluationContext) -> Grounds:
    """What every decision says of the state; the clock is that of each."""
    bundle, snapshot = prepared.bundle, prepared.snapshot
    return Grounds(
        BundleRef(name=bundle.name, revision=bundle.revision, digest=bundle.digest),
        SnapshotRef(scope=snapshot.scope, taken_at=snapshot.taken_at, digest=prepared.estate.digest),
        datetime.min.replace(tzinfo=UTC),
        EngineRef(name="embedded", version=engine_version("embedded")),
    )
