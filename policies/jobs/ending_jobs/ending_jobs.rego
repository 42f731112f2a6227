# METADATA
# scope: package
# title: Jobs end on their own
# description: >-
#   A job that hangs keeps its nodes and costs money until it is canceled. A time limit ends it, and an early
#   termination policy ends trials of a sweep that perform poorly. Pipelines and Spark jobs have no such limit and are
#   not evaluated.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-manage-optimize-cost]
# custom:
#   id: AML-JOB-009
#   severity: info
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/jobs
#       where: {/properties/jobType: [Command, Sweep, AutoML]}
#   remediation:
#     text: >-
#       Set `limits.timeout` in the YAML file of the job (`limits.timeout_minutes` of automated ML), and
#       `early_termination` of a sweep.
#   source: JOB-09
#   since: 0.2.0
package jobs.ending_jobs

import data.lib.durations
import data.lib.settings
import data.lib.words

deny contains {
	"msg": "the job has no time limit",
	"path": settings.pointer(limit),
	"actual": settings.at(input.resource, limit),
	"expected": "an ISO 8601 duration, such as PT4H",
} if {
	not settings.unreadable(input.resource, limit, "string")
	not durations.is_duration(settings.at(input.resource, limit))
}

deny contains {
	"msg": "the sweep ends no trial early",
	"path": settings.pointer(termination),
	"actual": null,
	"expected": "an early termination policy",
} if {
	kind == "sweep"
	settings.at(input.resource, termination) == null
}

unknown contains {"msg": "the time limit is not text", "path": pointer} if {
	pointer := settings.unreadable(input.resource, limit, "string")
}

unknown contains {"msg": "the early termination policy is not an object", "path": pointer} if {
	kind == "sweep"
	pointer := settings.unreadable(input.resource, termination, "object")
}

kind := words.folded(input.resource.properties.jobType)

limit := ["properties", "taskDetails", "limitSettings", "timeout"] if kind == "automl"

else := ["properties", "limits", "timeout"]

termination := ["properties", "earlyTermination"]
