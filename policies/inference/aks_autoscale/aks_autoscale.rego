# METADATA
# scope: package
# title: A production AKS service scales with its load
# description: >-
#   AKS is for "high-scale production deployments. Provides fast response time and autoscaling of the deployed service."
#   A service that does not ask for it keeps its replicas whatever comes. Other stages than production are not evaluated; a
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
#   remediation:
#     text: >-
#       Let the replicas follow the load: `az ml service update --name <service> --autoscale-enabled true
#       --autoscale-min-replicas 2 --autoscale-max-replicas 10` (extension azure-cli-ml).
#     patch: [{op: add, path: /properties/autoScaler/autoscaleEnabled, value: true}]
#   source: 001 "Compute targets for inference"; 002 "Cost Optimization Strategies"
#   monotone_in: {/properties/autoScaler/autoscaleEnabled: [false, true]}
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
