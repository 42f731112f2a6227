# METADATA
# scope: package
# title: Attached compute points at something that exists
# description: >-
#   "You create this type of compute target outside Azure Machine Learning and then attach it to your workspace." When
#   the resource behind it is deleted, the compute stays and every job on it fails. An AKS compute counts as attached
#   when it states so or names a cluster.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-attach-compute-targets]
# custom:
#   id: AML-OPS-103
#   severity: medium
#   judges: [{type: Microsoft.MachineLearningServices/workspaces/computes, where: {/properties/computeType: [
#     VirtualMachine, Databricks, HDInsight, DataLakeAnalytics, Kubernetes, SynapseSpark, AKS, Batch]}}]
#   remediation: >-
#     If the resource that `properties.resourceId` names is there, add it to the snapshot; else detach the compute
#     (`az ml compute detach --name <compute> --workspace-name <workspace>`) and attach what replaces it.
#   source: '001 "Unmanaged compute", 002 "Unmanaged Compute"'
#   since: 0.1.0
package operations.attached_target

import data.lib.computes
import data.lib.ids
import data.lib.words

applies if computes.kind(input.resource) != "aks"

applies if input.resource.properties.isAttachedCompute == true

applies if words.text(target)

deny contains {
	"msg": "the compute names no resource",
	"path": "/properties/resourceId",
	"actual": target,
	"expected": "the id of a resource",
} if {
	not subscription
}

deny contains {
	"msg": "the resource behind the compute does not exist",
	"path": "/properties/resourceId",
	"actual": target,
	"expected": "the id of a resource of the snapshot",
} if {
	is_missing
	not doubt
}

unknown contains {"msg": doubt, "path": "/properties/resourceId"} if is_missing

# Why what is missing may exist all the same.
doubt := "the snapshot is incomplete: what is missing may exist" if {
	count(input.snapshot.incomplete) > 0
} else := "its subscription is not in the snapshot" if {
	not input.snapshot.by_scope[concat("", ["/subscriptions/", subscription])]
} else := "what is not deployed yet may name what is there already" if {
	contains(target, "{")
}

is_missing if {
	subscription
	not ids.named(target, input.snapshot.by_id)
}

subscription := ids.subscription(target)

target := object.get(input.resource, ["properties", "resourceId"], null)
