# METADATA
# scope: package
# title: A sweep does not ask for more trials at once than the cluster has nodes
# description: >-
#   "A cluster offers multiple nodes, which each can perform a separate task in parallel." Trials beyond the largest
#   number of nodes wait in the queue, and the sampling learns nothing from them. A sweep that states no limit asks for
#   all its trials at once, 1000 unless the number is stated.
# related_resources:
#   - https://learn.microsoft.com/azure/machine-learning/reference-yaml-job-sweep#attributes-of-the-limits-key
# custom:
#   id: AML-TRN-107
#   severity: low
#   judges: [workload]
#   remediation:
#     text: >-
#       Lower `limits.max_concurrent_trials` of the sweep to the cluster's `max_instances`, or let the cluster grow (`az
#       ml compute update --name <cluster> --max-instances <trials>`).
#   source: 004 "Choose a compute target for scalability"
#   since: 0.1.0
package training.concurrent_trials

import data.lib.targets

applies if count(sweeps) > 0

deny contains {
	"msg": "the sweep asks for more trials at once than the cluster has nodes",
	"path": sweep.path,
	"actual": targets.shown(sweep.run),
	"expected": {"at most": nodes(sweep.run)},
} if {
	some sweep in sweeps
	sweep.run.concurrentTrials > nodes(sweep.run)
}

unknown contains {"msg": "the trials at once or the nodes of the cluster are not known", "path": sweep.path} if {
	some sweep in sweeps
	not is_known(sweep.run)
}

is_known(run) if {
	is_number(run.concurrentTrials)
	nodes(run)
}

nodes(run) := targets.nodes(run, input.snapshot.by_id)

# The runs that are a sweep on a cluster, or may be one.
sweeps := [{"path": concat("", ["/runs/", format_int(index, 10), "/concurrentTrials"]), "run": run} |
	some index, run in input.resource.runs
	run.features.sweep != false
	run.target in {"compute-cluster", null}
]
