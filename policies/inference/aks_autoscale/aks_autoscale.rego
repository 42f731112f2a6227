# METADATA
# scope: package
# title: A production AKS service scales with its load
# description: >-
#   AKS is for "high-scale production deployments. Provides fast response time and autoscaling of the deployed service."
#   A service that does not ask for it keeps its replicas whatever comes. Other stages than production are not judged; a
#   missing stage counts as production.
# related_resources:
#   - ref: https://learn.microsoft.com/azure/machine-learning/concept-compute-target
# custom:
#   id: AML-INF-114
#   severity: low
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/services
#       where:
#         /properties/computeType: [AKS]
#   inspects:
#     - /properties/computeType
#     - /properties/autoScaler/autoscaleEnabled
#     - /tags/environment
#     - /tags/stage
#     - /properties/kvTags
#     - workspace:/tags/environment
#     - workspace:/tags/stage
#   when_absent: {/properties/computeType: not_judged, /properties/autoScaler/autoscaleEnabled: fail,
#     /tags/environment: pass, /tags/stage: pass, /properties/kvTags: pass, "workspace:/tags/environment": pass,
#     "workspace:/tags/stage": pass}
#   remediation:
#     text: >-
#       Let the replicas follow the load: `az ml service update --name <service> --autoscale-enabled true
#       --autoscale-min-replicas 2 --autoscale-max-replicas 10` (extension azure-cli-ml).
#     patch: [{op: add, path: /properties/autoScaler/autoscaleEnabled, value: true}]
#   source: 001 "Compute targets for inference"; 002 "Cost Optimization Strategies"
#   monotone_in: {/properties/autoScaler/autoscaleEnabled: [false, true]}
#   insensitive_to: [/tags/data-classification, /properties/autoScaler/maxReplicas, /properties/numReplicas]
#   since: 0.1.0
package inference.aks_autoscale

import data.lib.words

applies if stage.name == "production"

deny contains {
	"msg": "a production service on AKS does not scale with its load",
	"path": "/properties/autoScaler/autoscaleEnabled",
	"actual": {
		"autoscaleEnabled": setting,
		"stage": stage.name,
		"because": stage.reason,
	},
	"expected": true,
} if {
	not is_enabled
}

is_enabled if setting == true

is_enabled if words.folded(setting) == "true"

setting := object.get(input.resource, ["properties", "autoScaler", "autoscaleEnabled"], null)

stage := words.stage(tagged, input.workspace)

# The tags that a user gives to a version-1 service are its `kvTags`.
tagged := {
	"tags": object.get(input.resource, "tags", null),
	"properties": {"tags": object.get(input.resource, ["properties", "kvTags"], null)},
}
