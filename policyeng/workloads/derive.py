"""From a snapshot to its workloads: one per job, deployment and version-1 service, and one per lone declaration."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping

from policyeng.facts import Facts
from policyeng.facts.ids import folded_id
from policyeng.models import WORKSPACE_TYPE, DeclaredWorkload, Snapshot, lowered
from policyeng.workloads.declared import Workload, declared_workload, derived_workload
from policyeng.workloads.deployments import batch_deployment, online_deployment
from policyeng.workloads.drafts import Draft
from policyeng.workloads.estate import Estate, survey
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


def derive(snapshot: Snapshot, facts: Facts) -> tuple[Workload, ...]:
    """The workloads of a snapshot, sorted by id without case; no input makes it raise.

    A declared workload joins the one derived from its `source_id`, and stands alone where there is none.
    """
    estate = survey(snapshot, facts)
    sources = estate.of_types(DERIVED_FROM)
    drafts = [build(estate, source) for arm_type, build in DERIVED_FROM.items() for source in sources[arm_type]]
    additions: dict[str, list[DeclaredWorkload]] = defaultdict(list)
    for one in sorted(snapshot.workloads, key=DeclaredWorkload.model_dump_json):
        additions[folded_id(one.source_id or "")].append(one)
    derived = [derived_workload(draft, additions.pop(folded_id(draft.source.id), ())) for draft in drafts]
    alone = [declared_workload(one, estate) for group in additions.values() for one in group]
    return tuple(sorted((*derived, *alone), key=lambda workload: lowered(workload.reported_id)))
