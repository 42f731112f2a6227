# METADATA
# scope: package
# title: Production deployments scale with their load
# description: >-
#   A deployment with a fixed number of instances rejects requests at peak load and wastes money when load is low. A
#   managed deployment scales with an autoscale setting of Azure Monitor, a deployment on Kubernetes with its own
#   scale settings. Only production is evaluated; a missing stage counts as production.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-autoscale-endpoints]
# custom:
#   id: AML-END-009
#   severity: low
#   judges: [Microsoft.MachineLearningServices/workspaces/onlineEndpoints/deployments]
#   remediation:
#     text: >-
#       Create an autoscale setting for the deployment (`az monitor autoscale create --resource <id of the deployment>
#       --min-count 2 --max-count 5 --count 2`, then `az monitor autoscale rule create`); on Kubernetes, set
#       `scale_settings.type: target_utilization`.
#   source: END-09
#   since: 0.2.0
package endpoints.autoscale

import data.lib.endpoints
import data.lib.ids
import data.lib.settings
import data.lib.words

applies if {
	stage.name == "production"
	kind in {"managed", "kubernetes"}
}

applies if {
	stage.name == "production"
	not kind
}

deny contains {
	"msg": "the deployment has no enabled autoscale setting",
	"path": "/id",
	"actual": {"autoscale": null, "stage": stage.name, "because": stage.reason},
	"expected": "an enabled autoscale setting whose `targetResourceUri` is the deployment",
} if {
	kind == "managed"
	not is_scaled
	count(doubts) == 0
	count(input.snapshot.incomplete) == 0
}

deny contains {
	"msg": "the deployment on Kubernetes keeps its number of instances",
	"path": settings.pointer(place),
	"actual": {
		"scaleType": settings.at(input.resource, place),
		"stage": stage.name,
		"because": stage.reason,
	},
	"expected": "TargetUtilization",
} if {
	kind == "kubernetes"
	settings.word(settings.at(input.resource, place), types) == "default"
}

unknown contains {"msg": "the compute type of the deployment is not a known value", "path": "/properties/endpointComputeType"} if not kind

unknown contains {"msg": "whether an autoscale setting for the deployment is enabled cannot be read", "path": "/id"} if {
	kind == "managed"
	not is_scaled
	count(doubts) > 0
}

unknown contains {"msg": "the snapshot is incomplete: an autoscale setting may exist", "path": "/id"} if {
	kind == "managed"
	count(input.snapshot.incomplete) > 0
	not is_scaled
}

unknown contains {"msg": "the scale type is not a known value", "path": pointer} if {
	kind == "kubernetes"
	pointer := settings.unreadable_word(input.resource, place, types)
}

kind := endpoints.deployment_kind(input.resource)

is_scaled if {
	some setting in targeting
	not settings.unreadable_flag(setting, enabled)
	not is_disabled(setting)
}

is_disabled(setting) if settings.flag(settings.at(setting, enabled)) == false

# The settings of which it cannot be read whether they are enabled.
doubts := [setting | some setting in targeting; settings.unreadable_flag(setting, enabled)]

# An autoscale setting may be in any resource group of the subscription.
targeting := [setting |
	some id in input.snapshot.by_scope[subscription]["microsoft.insights/autoscalesettings"]
	setting := input.snapshot.by_id[id]
	ids.folded(words.folded(setting.properties.targetResourceUri)) == ids.folded(input.resource.id)
]

subscription := concat("", ["/subscriptions/", ids.subscription(input.resource.id)])
stage := words.stage(input.resource, input.workspace)
enabled := ["properties", "enabled"]
place := ["properties", "scaleSettings", "scaleType"]
types := {"default", "targetutilization"}
