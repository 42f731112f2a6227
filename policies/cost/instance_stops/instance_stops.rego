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
#   since: 0.1.0
package cost.instance_stops

import data.lib.words

deny contains {
	"msg": "the instance has neither an idle shutdown nor an enabled stop schedule",
	"path": "/properties/properties/idleTimeBeforeShutdown",
	"actual": object.get(input.resource, ["properties", "properties", "idleTimeBeforeShutdown"], null),
	"expected": "a duration such as PT60M, or an enabled stop schedule",
} if {
	not stops_when_idle
	not stops_on_schedule
}

# An ISO 8601 duration of more than nothing, in weeks or smaller units; Azure allows 15 minutes to 3 days.
stops_when_idle if {
	idle := upper(words.text(input.resource.properties.properties.idleTimeBeforeShutdown))
	regex.match(`^P((\d+W)|(\d+D)?(T(\d+([.,]\d+)?H)?(\d+([.,]\d+)?M)?(\d+([.,]\d+)?S)?)?)$`, idle)
	regex.match(`[1-9]`, idle)
}

stops_on_schedule if {
	is_array(input.resource.properties.properties.schedules.computeStartStop)
	some schedule in input.resource.properties.properties.schedules.computeStartStop
	words.folded(schedule.status) == "enabled"
	words.folded(schedule.action) == "stop"
}
