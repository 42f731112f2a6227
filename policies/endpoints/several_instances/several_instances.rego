# METADATA
# scope: package
# title: A production deployment has more than one instance
# description: >-
#   With a single instance, every fault and every update of the host interrupts the service. Only production is
#   evaluated; a missing stage counts as production.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-autoscale-endpoints]
# custom:
#   id: AML-END-203
#   severity: medium
#   judges: [Microsoft.MachineLearningServices/workspaces/onlineEndpoints/deployments]
#   remediation:
#     text: >-
#       Set `instance_count`, or `scale_settings.min_instances` on Kubernetes, to 2 or more in the YAML file of the
#       deployment (`az ml online-deployment update --file <file>`).
#   source: END-203
#   monotone_in: {/sku/capacity: higher, /properties/scaleSettings/minInstances: higher}
#   since: 0.2.0
package endpoints.several_instances

import data.lib.endpoints
import data.lib.numbers
import data.lib.settings
import data.lib.words

applies if {
	stage.name == "production"
	not kind == "azuremlcompute"
}

deny contains {
	"msg": "a production deployment has fewer than two instances",
	"path": settings.pointer(place),
	"actual": {
		"instances": settings.at(input.resource, place),
		"stage": stage.name,
		"because": stage.reason,
	},
	"expected": {"at least": 2},
} if {
	numbers.whole(settings.at(input.resource, place)) < 2
}

unknown contains {"msg": "the compute type of the deployment is not a known value", "path": "/properties/endpointComputeType"} if not kind

unknown contains {"msg": "the scale type is not a known value", "path": pointer} if {
	kind == "kubernetes"
	pointer := settings.unreadable_word(input.resource, scale_type, types)
}

unknown contains {"msg": "the number of instances is not stated, or is not a whole number", "path": settings.pointer(place)} if {
	not numbers.whole(settings.at(input.resource, place))
}

# A deployment on Kubernetes that states no scale type follows its use.
place := ["sku", "capacity"] if kind == "managed"

else := ["sku", "capacity"] if {
	kind == "kubernetes"
	settings.word(settings.at(input.resource, scale_type), types) == "default"
}

else := ["properties", "scaleSettings", "minInstances"] if {
	kind == "kubernetes"
	not settings.unreadable_word(input.resource, scale_type, types)
}

kind := endpoints.deployment_kind(input.resource)
scale_type := ["properties", "scaleSettings", "scaleType"]
types := {"default", "targetutilization"}
stage := words.stage(input.resource, input.workspace)
