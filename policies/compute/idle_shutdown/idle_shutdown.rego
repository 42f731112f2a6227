# METADATA
# scope: package
# title: A compute instance shuts down when idle
# description: >-
#   An instance that is not in use costs money and keeps a machine open to attack until it is stopped. Azure accepts an
#   idle time of 15 minutes to 3 days.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-create-compute-instance]
# custom:
#   id: AML-CMP-005
#   severity: medium
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/computes
#       where: {/properties/computeType: [ComputeInstance]}
#   remediation:
#     text: >-
#       Set `idleTimeBeforeShutdown` (`idle_time_before_shutdown_minutes: 60` in the instance's YAML, then `az ml compute
#       create --file <file>`; in the studio Compute > Compute instances > Idle shutdown).
#     patch: [{op: add, path: /properties/properties/idleTimeBeforeShutdown, value: PT60M}]
#   source: CMP-05
#   parameters:
#     longest: {type: string, pattern: '^P([0-9]{1,9}W|[0-9]{1,9}D|([0-9]{1,9}D)?T([0-9]{1,9}H([0-9]{1,9}M)?([0-9]{1,9}S)?|[0-9]{1,9}M([0-9]{1,9}S)?|[0-9]{1,9}S))$',
#       default: P3D,
#       description: the longest idle time that is allowed, as an ISO 8601 duration}
#   since: 0.2.0
package compute.idle_shutdown

import data.lib.durations
import data.lib.settings

deny contains {
	"msg": "the instance has no idle shutdown that Azure accepts in the time allowed",
	"path": settings.pointer(place),
	"actual": stated,
	"expected": {"at least": "PT15M", "at most": input.parameters.longest},
} if {
	not settings.unreadable(input.resource, place, "string")
	not is_in_time
}

unknown contains {"msg": "the idle time is not text", "path": pointer} if {
	pointer := settings.unreadable(input.resource, place, "string")
}

is_in_time if {
	seconds := durations.seconds(stated)
	seconds >= 900
	seconds <= durations.seconds(input.parameters.longest)
}

stated := settings.at(input.resource, place)

place := ["properties", "properties", "idleTimeBeforeShutdown"]
