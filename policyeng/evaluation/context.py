"""The inputs of an evaluation that do not depend on the clock, the exemptions or the engine."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from msgspec.structs import replace

from policyeng._performance import uncollected
from policyeng.bundle import Bundle, Policy
from policyeng.bundle.parameters import read_only_parameters
from policyeng.engines import EvaluationRequest
from policyeng.evaluation.input_warnings import list_classifications, unknown_classifications
from policyeng.evaluation.matching import PlannedColumn, plan
from policyeng.evaluation.normalization import with_known_names
from policyeng.evaluation.prepared_snapshot import PreparedSnapshot, estate_of
from policyeng.evaluation.unknown_markers import NO_MARKINGS, Markings, mark_for_bundle
from policyeng.facts.coverage import is_whole
from policyeng.models import JsonObject, Resource, Snapshot
from policyeng.rego.clock import Clock


@dataclass(frozen=True)
class EvaluationContext:
    """A bundle and a snapshot that are ready to be evaluated any number of times.

    Attributes:
        snapshot: the snapshot, with member names spelled as ARM spells them.
        parameters: one object for each policy of the bundle, with defaults.
        planned: for each policy, the subjects to which it can apply.
        markings: the unknown parts of the snapshot.
        made: data that engines derived from the snapshot, by name.
    """

    bundle: Bundle
    snapshot: Snapshot
    parameters: Sequence[JsonObject]
    estate: PreparedSnapshot
    planned: Sequence[PlannedColumn]
    markings: Markings
    made: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def known_classifications(self) -> Set[str]:
        """The result of `input_warnings.known_classifications`."""
        return list_classifications(self.bundle.policies, self.parameters, self.bundle.facts)

    @cached_property
    def unknown_classifications(self) -> Counter[str]:
        """The result of `input_warnings.unknown_classifications`."""
        return unknown_classifications(self.estate.view.resources, self.known_classifications)

    def only(self, concerns: Callable[[Policy, Resource], bool]) -> EvaluationContext:
        """Return a context with only the pairs for which `concerns` is true; their findings do not change."""
        policies, subjects = self.bundle.policies, self.estate.subjects
        wanted = {
            column.policy: [number for number in column.all() if concerns(policies[column.policy], subjects[number])]
            for column in self.planned
        }
        return self.with_pairs(wanted)

    def with_pairs(self, wanted: Mapping[int, Collection[int]]) -> EvaluationContext:
        """Return a context with only these pairs: positions of subjects by the number of the policy."""
        return dataclasses.replace(self, planned=tuple(plan(self.bundle, self.estate, wanted)))

    def work(self, as_of: datetime, clock: Clock | None = None) -> EvaluationRequest:
        """Return a request to evaluate the pairs that are not decided yet.

        Each request has its own cache for `SnapshotView.once`, because cached values can depend on the clock.
        """
        request = request_evaluation(self.bundle, self.estate, self.planned, self.parameters, as_of, self.markings)
        return replace(request, made=self.made, clock=clock)


def request_evaluation(
    bundle: Bundle,
    estate: PreparedSnapshot,
    planned: Iterable[PlannedColumn],
    parameters: Sequence[JsonObject],
    as_of: datetime,
    markings: Markings = NO_MARKINGS,
) -> EvaluationRequest:
    """Return a request to evaluate the planned pairs that are not decided yet."""
    return EvaluationRequest(
        bundle=bundle,
        snapshot=estate.view.fresh(),
        subjects=estate.subjects,
        documents=estate.documents,
        document=estate.document,
        positions={column.policy: column.positions for column in planned if column.positions},
        parameters=parameters,
        as_of=as_of,
        marking=markings.marking,
        apart=markings.apart,
    )


@uncollected()
def prepare(
    bundle: Bundle, snapshot: Snapshot, parameters: Mapping[str, JsonObject] | None = None
) -> EvaluationContext:
    """Load a snapshot and match the policies of a bundle to its resources.

    Args:
        bundle: the policies.
        snapshot: the resources.
        parameters: values that replace the defaults, by policy id.

    Raises:
        UsageError: a parameter does not exist or does not match its schema.
    """
    snapshot, problems = with_known_names(snapshot, bundle.spellings)
    estate = estate_of(snapshot, bundle.facts)
    if problems:
        estate = dataclasses.replace(estate, problems=(*problems, *estate.problems))
    if is_whole(estate.covers) and not bundle.queried_types:  # no policy reads other types
        estate = dataclasses.replace(estate, covers=None)
    complete_parameters = read_only_parameters(bundle, parameters or {})
    planned = tuple(plan(bundle, estate))
    return EvaluationContext(bundle, snapshot, complete_parameters, estate, planned, mark_for_bundle(bundle, estate))


#: The number of pairs that take longer to evaluate than a process takes to start and to return the findings.
PAIRS_OF_A_PROCESS = 12_000
