# METADATA
# scope: package
# title: Distributed work runs on a multi-node target
# description: >-
#   "A cluster offers multiple nodes, which each can perform a separate task in parallel." Evaluated: distributed work, and
#   sweeps with more than one concurrent trial; one that states no limit runs all its trials at once.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/reference-yaml-job-sweep#attributes-of-the-limits-key]
# custom:
#   id: AML-TRN-106
#   severity: medium
#   judges: [workload]
#   remediation:
#     text: >-
#       Run it on a compute cluster of two nodes or more (`az ml compute update --name <cluster> --max-instances 4`), or
#       set `resources.instance_count`, or `limits.max_concurrent_trials` of the sweep, to 1.
#     patches:
#       - {patch: [{op: test, path: /purpose, value: training}, {op: replace, path: /target, value: compute-cluster}],
#         provided: [AML-ISO-102, AML-TRN-107]}
#       - {patch: [{op: test, path: /purpose, value: batch-inference}, {op: replace, path: /target,
#         value: compute-cluster}], provided: [AML-ISO-102, AML-INF-110, AML-TRN-107]}
#   source: 004 "Choose a compute target for scalability"; 001 "Azure Machine Learning compute (managed)"; 002 "Compute Clusters"
#   since: 0.1.0
package training.distributed_target

import data.lib.targets

applies if {
	some run in input.resource.runs
	spreads(run) != "no"
}

deny contains {
	"msg": "distributed work runs on a target of one node",
	"path": "/target",
	"actual": targets.shown(run),
	"expected": "a target with several nodes, such as a compute cluster",
} if {
	some run in input.resource.runs
	spreads(run) == "yes"
	is_single(run) == "yes"
}

unknown contains {"msg": "it is not known whether distributed work runs on one node", "path": "/target"} if {
	some run in input.resource.runs
	answers := {spreads(run), is_single(run)}
	"unknown" in answers
	not "no" in answers
}

# Whether a run needs several nodes.
spreads(run) := "yes" if {
	run.features.distributed == true
} else := "yes" if {
	run.concurrentTrials > 1
} else := "no" if {
	run.features.distributed == false
	tries_at_once(run)
} else := "unknown"

tries_at_once(run) if run.features.sweep == false

tries_at_once(run) if run.concurrentTrials in {0, 1}

# Whether its target is one node. A cluster of which nothing is known has several, as clusters do.
is_single(run) := "yes" if {
	run.target in {"compute-instance", "local", "attached-vm"}
} else := "unknown" if {
	run.target == null
} else := "no" if {
	run.computeId == null
} else := "no" if {
	run.target != "compute-cluster"
} else := "yes" if {
	targets.nodes(run, input.snapshot.by_id) < 2
} else := "no" if {
	targets.nodes(run, input.snapshot.by_id)
} else := "unknown"
