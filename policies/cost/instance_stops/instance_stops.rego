# METADATA
# scope: package
# title: A compute instance stops when it is not used
# description: >-
#   "A compute *instance* is always on and doesn't autoscale. You should stop the compute instance when you aren't using
#   it to avoid extra cost." An idle shutdown does it, and so does an enabled schedule that stops it.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-create-compute-instance]
# custom:
#   id: AML-COST-102
#   severity: medium
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/computes
#       where:
#         /properties/computeType: [ComputeInstance]
#   remediation:
#     text: >-
#       Set `idleTimeBeforeShutdown` (`idle_time_before_shutdown_minutes: 60` in the instance's YAML, then `az ml
#       compute create --file <file>`; in the studio Compute > Compute instances > Idle shutdown), or add an enabled
#       stop schedule.
#     patch: [{op: add, path: /properties/properties/idleTimeBeforeShutdown, value: PT60M}]
#   source: '001 "Azure Machine Learning compute (managed)" (note on idle clusters), 003; CMP-05, CMP-16'
#   monotone_in: {/properties/properties/schedules/computeStartStop/*/status: [Disabled, Enabled]}
#   refines: [AML-CMP-005]
#   since: 0.1.0
package cost.instance_stops

import data.lib.durations
import data.lib.settings
import data.lib.words

deny contains {
	"msg": "the instance has neither an idle shutdown nor an enabled stop schedule",
	"path": settings.pointer(place),
	"actual": settings.at(input.resource, place),
	"expected": "a duration such as PT60M, or an enabled stop schedule",
} if {
	not unreadable
	not stops_when_idle
	not stops_on_schedule
}

unknown contains {"msg": "the idle time is not text", "path": pointer} if {
	pointer := unreadable
	not stops_on_schedule
}

unreadable := settings.unreadable(input.resource, place, "string")

place := ["properties", "properties", "idleTimeBeforeShutdown"]

# A duration of more than nothing; Azure allows 15 minutes to 3 days.
stops_when_idle if durations.seconds(settings.at(input.resource, place)) > 0

stops_on_schedule if {
	is_array(input.resource.properties.properties.schedules.computeStartStop)
	some schedule in input.resource.properties.properties.schedules.computeStartStop
	words.folded(schedule.status) == "enabled"
	words.folded(schedule.action) == "stop"
}
