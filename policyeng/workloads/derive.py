"""From a snapshot to its workloads: one per job, deployment and version-1 service, and one per lone declaration."""

from __future__ import annotations

from collections import ChainMap, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from policyeng.facts import Facts
from policyeng.facts.ids import folded_id
from policyeng.frozen import frozen
from policyeng.models import WORKSPACE_TYPE, DeclaredWorkload, Snapshot, lowered, to_bytes
from policyeng.workloads.declared import Workload, declared_workload, derived_workload
from policyeng.workloads.deployments import batch_deployment, online_deployment
from policyeng.workloads.drafts import Draft
from policyeng.workloads.estate import Asking, Estate, survey
from policyeng.workloads.jobs import job
from policyeng.workloads.reading import Reader
from policyeng.workloads.services import service

#: What makes a workload, by ARM type in lower case.
DERIVED_FROM: Mapping[str, Callable[[Estate, Reader], Draft]] = {
    f"{WORKSPACE_TYPE}/jobs": job,
    f"{WORKSPACE_TYPE}/onlineendpoints/deployments": online_deployment,
    f"{WORKSPACE_TYPE}/batchendpoints/deployments": batch_deployment,
    f"{WORKSPACE_TYPE}/services": service,
}


class Derived(NamedTuple):
    """What comes of one resource and the declarations about it, or of declarations about none.

    Attributes:
        workloads: one of a resource; of declarations alone one each.
        asked: ids of the resources that were looked up for it, there or not, as `folded_id` gives them.
    """

    workloads: tuple[Workload, ...]
    asked: frozenset[str]


@frozen
class Derivation:
    """The workloads of a snapshot by what they are derived from: the id of a resource as `folded_id` gives it.

    Declarations that name none are under the empty id.
    """

    estate: Estate
    additions: Mapping[str, Sequence[DeclaredWorkload]]
    derived: dict[str, Derived]

    def workloads(self) -> tuple[Workload, ...]:
        """All of them, sorted by id without case."""
        found = (workload for derived in self.derived.values() for workload in derived.workloads)
        return tuple(sorted(found, key=lambda workload: lowered(workload.reported_id)))

    def again(self, becomes: Mapping[str, Reader | None]) -> dict[str, Derived | None]:
        """What is derived otherwise once some resources are others, or not there; None where nothing is any more.

        Args:
            becomes: by id as `folded_id` gives it.
        """
        estate = Estate(ChainMap({**becomes}, self.estate.resources), self.estate.facts)
        due = {source for key in becomes for source in self._asking.get(key, ())}
        due |= {key for key, held in becomes.items() if key in self.derived or _builder(held)}
        return {source: _derived(estate, source, self.additions.get(source, ())) for source in sorted(due)}

    @cached_property
    def _asking(self) -> dict[str, set[str]]:
        """By an id that is looked up, there or not, what is derived with it, or was."""
        found: dict[str, set[str]] = {}
        for source, derived in self.derived.items():
            for key in derived.asked:
                found.setdefault(key, set()).add(source)
        return found

    def copy(self) -> Derivation:
        """A copy that `change` may change."""
        return Derivation(Estate(dict(self.estate.resources), self.estate.facts), self.additions, dict(self.derived))

    def change(self, becomes: Mapping[str, Reader | None], again: Mapping[str, Derived | None]) -> None:
        """Have resources be others, and derive from them what `again` gives."""
        self.estate.resources.update(becomes)
        for source, derived in again.items():
            if derived is None:
                self.derived.pop(source, None)
                continue
            self.derived[source] = derived
            for key in derived.asked:
                self._asking.setdefault(key, set()).add(source)


def derivation(snapshot: Snapshot, facts: Facts) -> Derivation:
    """Derive every workload of a snapshot; no input makes it raise."""
    estate = survey(snapshot, facts)
    additions: dict[str, list[DeclaredWorkload]] = defaultdict(list)
    for one in sorted(snapshot.workloads, key=to_bytes):
        additions[folded_id(one.source_id or "")].append(one)
    made = ((source, _derived(estate, source, additions.get(source, ()))) for source in _sources(estate, additions))
    return Derivation(estate, additions, {source: derived for source, derived in made if derived})


def derive(snapshot: Snapshot, facts: Facts) -> tuple[Workload, ...]:
    """The workloads of a snapshot, sorted by id without case; no input makes it raise.

    A declared workload joins the one derived from its `source_id`, and stands alone where there is none.
    """
    return derivation(snapshot, facts).workloads()


def _sources(estate: Estate, additions: Iterable[str]) -> Iterator[str]:
    """The resources that make workloads, type by type, and then what else is declared."""
    by_type = estate.of_types(DERIVED_FROM)
    found = [folded_id(source.id) for sources in by_type.values() for source in sources]
    yield from dict.fromkeys((*found, *additions))


def _derived(estate: Estate, source: str, additions: Sequence[DeclaredWorkload]) -> Derived | None:
    """What one source makes; None for nothing."""
    asking = Asking(estate.resources, estate.facts)
    held = estate.resources.get(source)
    build = _builder(held)
    if held is not None and build is not None:
        workloads: tuple[Workload, ...] = (derived_workload(build(asking, held), additions),)
    else:
        workloads = tuple(declared_workload(one, asking) for one in additions)
    return Derived(workloads, frozenset(asking.asked)) if workloads else None


def _builder(held: Reader | None) -> Callable[[Estate, Reader], Draft] | None:
    named = held.body.get("type") if held is not None else None
    return DERIVED_FROM.get(lowered(named)) if isinstance(named, str) else None
