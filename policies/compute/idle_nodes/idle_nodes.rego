# METADATA
# scope: package
# title: Idle nodes leave soon
# description: >-
#   Nodes that wait for work cost as much as nodes that work.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-manage-optimize-cost]
# custom:
#   id: AML-CMP-010
#   severity: low
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/computes
#       where: {/properties/computeType: [AmlCompute]}
#   remediation:
#     text: Shorten the idle time (`az ml compute update --name <cluster> --idle-time-before-scale-down 120`).
#     patch: [{op: replace, path: /properties/properties/scaleSettings/nodeIdleTimeBeforeScaleDown, value: PT2M}]
#   source: CMP-10
#   parameters:
#     most_idle_seconds: {type: integer, minimum: 0, default: 900, description: how many seconds a node may wait}
#   monotone_in: {"parameter:most_idle_seconds": lower}
#   since: 0.2.0
package compute.idle_nodes

import data.lib.durations
import data.lib.settings

deny contains {
	"msg": "idle nodes wait longer than allowed",
	"path": settings.pointer(place),
	"actual": stated,
	"expected": {"at most seconds": input.parameters.most_idle_seconds},
} if {
	durations.is_longer(stated, input.parameters.most_idle_seconds)
}

unknown contains {"msg": "the idle time is missing or no duration", "path": settings.pointer(place)} if {
	not durations.is_duration(stated)
}

stated := settings.at(input.resource, place)

place := ["properties", "properties", "scaleSettings", "nodeIdleTimeBeforeScaleDown"]
