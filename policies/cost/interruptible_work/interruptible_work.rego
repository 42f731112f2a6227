# METADATA
# scope: package
# title: Interruptible development work uses low-priority nodes
# description: >-
#   Spot capacity is "ideal for fault-tolerant workloads that can handle interruptions", and low-priority clusters "are
#   generally used for development and testing" and "substantially cheaper than dedicated clusters". A cluster states that
#   its work can be interrupted with the tag `fault-tolerant` (`true` or `yes`). Regulated work is not evaluated: AML-ISO-102
#   keeps it off low-priority nodes.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-manage-optimize-cost#use-low-pri-vms]
# custom:
#   id: AML-COST-105
#   severity: info
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/computes
#       where:
#         /properties/computeType: [AmlCompute]
#   remediation:
#     text: >-
#       Recreate the cluster with low-priority nodes (`az ml compute create --type amlcompute --tier low_priority ...`);
#       the priority of an existing cluster cannot be changed. If its work cannot be interrupted after all, remove the
#       tag `fault-tolerant`.
#     patches:
#       - {patch: [{op: add, path: /properties/properties/vmPriority, value: LowPriority}], provided: [AML-ISO-102,
#         AML-SKU-105]}
#   source: '002 "Pricing Models and Cost Optimization Strategies"; 003 (paragraph on dedicated and low priority); CMP-15'
#   parameters:
#     regulated_classifications: {type: array, items: {type: string, pattern: '\S'}, default: [regulated, restricted,
#       confidential], description: the values of the tag `data-classification` that make work regulated}
#   monotone_in: {/properties/properties/vmPriority: [Dedicated, LowPriority]}
#   since: 0.1.0
package cost.interruptible_work

import data.lib.computes
import data.lib.words

applies if {
	stage.name in {"dev", "test"}
	is_interruptible(words.tag(input.resource, "fault-tolerant"))
	regulated.decided != true
}

is_interruptible(true) := true

is_interruptible(value) if words.folded(value) in {"true", "yes"}

deny contains {
	"msg": "work that can be interrupted runs on dedicated nodes",
	"path": "/properties/properties/vmPriority",
	"actual": {
		"vmPriority": object.get(input.resource, ["properties", "properties", "vmPriority"], null),
		"stage": stage.name,
		"because": stage.reason,
	},
	"expected": "LowPriority",
} if {
	computes.priority(input.resource) == "dedicated"
}

unknown contains {"msg": "the priority of the nodes is not known", "path": "/properties/properties/vmPriority"} if {
	not computes.priority(input.resource)
}

stage := words.stage(input.resource, input.workspace)

regulated := words.regulated(input.resource, input.workspace, input.parameters.regulated_classifications)
