# METADATA
# scope: package
# title: Regulated work stays off hosts that cannot be dedicated
# description: >-
#   "Utilizing an isolated size guarantees that your VM will be the only one running on that specific server instance."
#   Serverless compute, container instances, functions, edge devices and local machines offer no such size, and
#   low-priority nodes run on whatever host has capacity left. Of a pipeline each step is evaluated.
# related_resources: [https://learn.microsoft.com/azure/virtual-machines/isolation]
# custom:
#   id: AML-ISO-102
#   severity: high
#   judges: [workload]
#   remediation:
#     text: >-
#       Run the work on a dedicated compute cluster of an isolated size (`az ml compute create --type amlcompute --tier
#       dedicated --size Standard_F72s_v2 ...`) and name it in `compute:` of the job or deployment; the priority of an
#       existing cluster cannot be changed.
#     patches:
#       - {patch: [{op: test, path: /purpose, value: realtime-inference}, {op: replace, path: /target, value: aks}],
#         answers: [/target], provided: [AML-INF-110]}
#   source: '001 "Compute isolation", 002 "Compute Isolation"'
#   parameters:
#     regulated_classifications: {type: array, items: {type: string, pattern: '\S'}, default: [regulated, restricted,
#       confidential], description: the values of the tag `data-classification` that make work regulated}
#   since: 0.1.0
package isolation.dedicated_hosts

import data.lib.computes
import data.lib.ids
import data.lib.targets
import data.lib.words

applies if standing.decided != false

deny contains {
	"msg": "regulated work runs on a target whose hosts cannot be dedicated",
	"path": "/target",
	"actual": object.union(targets.shown(run), {"because": standing.reason}),
	"expected": "a target with isolated sizes",
} if {
	standing.decided == true
	some run in input.resource.runs
	run.target in {"serverless", "aci", "local", "functions", "iot-edge"}
}

deny contains {
	"msg": "regulated work runs on low-priority nodes",
	"path": "/computeId",
	"actual": object.union(targets.shown(run), {"vmPriority": "LowPriority", "because": standing.reason}),
	"expected": "Dedicated",
} if {
	standing.decided == true
	some run in input.resource.runs
	run.target == "compute-cluster"
	priority(run) == "lowpriority"
}

unknown contains {"msg": standing.reason, "path": "workspace:/properties/hbiWorkspace"} if standing.decided == null

unknown contains {"msg": run.reason, "path": "/target"} if {
	some run in input.resource.runs
	run.target == null
}

unknown contains {"msg": "the cluster or its priority is not known", "path": "/computeId"} if {
	some run in input.resource.runs
	run.target == "compute-cluster"
	not priority(run)
}

priority(run) := computes.priority(ids.named(run.computeId, input.snapshot.by_id))

standing := words.regulated(input.resource, input.workspace, input.parameters.regulated_classifications)
