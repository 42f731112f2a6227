# METADATA
# scope: package
# title: A single-node AKS cluster serves only development and test
# description: >-
#   "Use single-node AKS clusters for dev/test of larger models." A DevTest cluster is not sized for production either.
#   Where `agentCount` is absent the pools of the attached managed cluster count. A missing stage counts as production.
# related_resources: [https://learn.microsoft.com/azure/templates/microsoft.machinelearningservices/workspaces/computes]
# custom:
#   id: AML-INF-111
#   severity: high
#   judges: [{type: Microsoft.MachineLearningServices/workspaces/computes, where: {/properties/computeType: [AKS]}}]
#   remediation:
#     text: Give the cluster two nodes or more (`az aks nodepool scale --name <pool> --node-count 3 ...`) and attach it
#       again as FastProd or DenseProd; if it only serves development or test, tag it `environment` with `dev` or `test`.
#     patches:
#       - {patch: [{op: replace, path: /properties/properties/clusterPurpose, value: FastProd}],
#         answers: [/properties/properties/clusterPurpose]}
#       - {patch: [{op: replace, path: /properties/properties/agentCount, value: 3}],
#         answers: [/properties/properties/agentCount], provided: [AML-NET-103]}
#   source: 001 "Compute targets for inference"
#   monotone_in: {/properties/properties/agentCount: [1, 2], /properties/properties/clusterPurpose: [DevTest, FastProd]}
#   since: 0.1.0
package inference.single_node_aks

import data.lib.computes
import data.lib.numbers
import data.lib.words

deny contains {
	"msg": "a DevTest cluster serves staging or production",
	"path": "/properties/properties/clusterPurpose",
	"actual": {"clusterPurpose": settings.clusterPurpose, "stage": stage.name, "because": stage.reason},
	"expected": "FastProd or DenseProd, or a stage of dev or test",
} if {
	computes.purpose(input.resource) == "devtest"
	is_released
}

deny contains {
	"msg": "a single-node cluster serves staging or production",
	"path": "/properties/properties/agentCount",
	"actual": {"nodes": nodes, "stage": stage.name, "because": stage.reason},
	"expected": "2 nodes or more, or a stage of dev or test",
} if {
	nodes == 1
	is_released
}

unknown contains {"msg": "the purpose of the cluster is no text", "path": "/properties/properties/clusterPurpose"} if {
	not computes.purpose(input.resource)
	is_released
}

unknown contains {"msg": "nothing states how many nodes there are", "path": "/properties/properties/agentCount"} if {
	not nodes
	is_released
}

is_released if not stage.name in {"dev", "test"}
stage := words.stage(input.resource, input.workspace)
settings := input.resource.properties.properties

nodes := own if {
	own := numbers.whole(settings.agentCount)
} else := sum(counts) if {
	object.get(input.resource, ["properties", "properties", "agentCount"], null) == null
	count(counts) > 0
	count(counts) == count(pools)
}

counts := [numbers.whole(pool.count) | some pool in pools]
pools := computes.pools(computes.cluster_of(input.resource, input.snapshot.by_id))
