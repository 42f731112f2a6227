# METADATA
# scope: package
# title: Low-priority nodes serve only development and test
# description: >-
#   "Low priority clusters are created when the resources are available, so experiments deployed on low priority
#   clusters can take some time to commence. They are generally used for development and testing." A cluster whose tags
#   do not state its stage counts as production.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-manage-optimize-cost#use-low-pri-vms]
# custom:
#   id: AML-SKU-104
#   severity: medium
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/computes
#       where:
#         /properties/computeType: [AmlCompute]
#   remediation:
#     text: >-
#       Recreate the cluster with dedicated nodes (`az ml compute create --type amlcompute --tier dedicated ...`); the
#       priority of an existing cluster cannot be changed. If it does serve development or test, tag it `environment:
#       dev`.
#     patches:
#       - {patch: [{op: add, path: /properties/properties/vmPriority, value: Dedicated}], provided: [AML-COST-106,
#         AML-SKU-105]}
#   source: '003 (paragraph on dedicated and low priority); CMP-15'
#   monotone_in: {/properties/properties/vmPriority: [LowPriority, Dedicated]}
#   since: 0.1.0
package sku.low_priority

import data.lib.computes
import data.lib.words

deny contains {
	"msg": "low-priority nodes serve staging or production",
	"path": "/properties/properties/vmPriority",
	"actual": {"vmPriority": "LowPriority", "stage": stage.name, "because": stage.reason},
	"expected": "Dedicated, or a stage of dev or test",
} if {
	computes.priority(input.resource) == "lowpriority"
	not stage.name in {"dev", "test"}
}

unknown contains {"msg": "the priority of the nodes is not known", "path": "/properties/properties/vmPriority"} if {
	not computes.priority(input.resource)
}

stage := words.stage(input.resource, input.workspace)
