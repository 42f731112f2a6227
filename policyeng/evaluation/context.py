"""With what to evaluate: a bundle and a snapshot, and what neither clock nor exemptions nor engine change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import datetime
from functools import cached_property
from typing import Any

from policyeng._performance import uncollected
from policyeng.bundle import Bundle, Policy
from policyeng.bundle.parameters import read_only_parameters
from policyeng.engines import EvaluationRequest
from policyeng.evaluation.input_warnings import known_classifications, unknown_classifications
from policyeng.evaluation.member_names import with_known_names
from policyeng.evaluation.plan import PlannedPair, plan
from policyeng.evaluation.prepared_snapshot import PreparedSnapshot, Resource, estate_of
from policyeng.evaluation.unknown_markers import Markings, markings_of
from policyeng.facts.coverage import is_whole
from policyeng.frozen import field, frozen, replace
from policyeng.models import JsonObject, Snapshot
from policyeng.rego.clock import Clock


@frozen
class EvaluationContext:
    """A bundle and a snapshot, ready to be evaluated as often as needed; it has inputs only, never outcomes.

    Attributes:
        snapshot: with the names of members as ARM spells them.
        parameters: one object per policy of the bundle, defaults filled in.
        planned: every pair of a policy and a resource that it evaluates.
        markings: what is not known of the snapshot.
        made: by name, what engines have made of the snapshot.
    """

    bundle: Bundle
    snapshot: Snapshot
    parameters: Sequence[JsonObject]
    estate: PreparedSnapshot
    planned: Sequence[PlannedPair]
    markings: Markings
    made: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def known_classifications(self) -> Set[str]:
        """As `remarks.known_classifications` gives them."""
        return known_classifications(self.bundle.policies, self.parameters, self.bundle.facts)

    @cached_property
    def unknown_classifications(self) -> Counter[str]:
        """As `remarks.unknown_classifications` gives them."""
        return unknown_classifications(self.estate.view.resources, self.known_classifications)

    def only(self, concerns: Callable[[Policy, Resource], bool]) -> EvaluationContext:
        """The same with fewer pairs to judge: those that concern the caller. Each is judged as if all were."""
        policies, subjects = self.bundle.policies, self.estate.subjects
        kept = [entry for entry in self.planned if concerns(policies[entry.pair.policy], subjects[entry.pair.subject])]
        return replace(self, planned=kept)

    def work(self, as_of: datetime, clock: Clock | None = None) -> EvaluationRequest:
        """The pairs that are not decided yet, for an engine.

        What Python policies work out for all resources (`SnapshotView.once`) is theirs for one judging and no longer:
        it may depend on the clock.
        """
        return EvaluationRequest(
            bundle=self.bundle,
            snapshot=self.estate.view.fresh(),
            subjects=self.estate.documents,
            document=self.estate.document,
            pairs=[entry.pair for entry in self.planned if not entry.unknowns],
            parameters=self.parameters,
            as_of=as_of,
            made=self.made,
            marking=self.markings.marking,
            apart=self.markings.apart,
            clock=clock,
        )


@uncollected()
def prepare(
    bundle: Bundle, snapshot: Snapshot, parameters: Mapping[str, JsonObject] | None = None
) -> EvaluationContext:
    """Make a snapshot ready; `parameters` are, by policy id, values that replace the defaults.

    Raises:
        UsageError: a parameter does not exist or does not fit its schema.
    """
    snapshot, problems = with_known_names(snapshot, bundle.spellings)
    estate = estate_of(snapshot, bundle.facts)
    if problems:
        estate = replace(estate, problems=(*problems, *estate.problems))
    if is_whole(estate.covers) and not bundle.asked_types:  # nothing asks for what is not covered
        estate = replace(estate, covers=None)
    judging_with = read_only_parameters(bundle, parameters or {})
    planned = tuple(plan(bundle, estate))
    return EvaluationContext(bundle, snapshot, judging_with, estate, planned, markings_of(bundle, estate))
