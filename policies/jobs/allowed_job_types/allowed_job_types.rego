# METADATA
# scope: package
# title: Job types are allowed
# description: >-
#   Some types of jobs run outside the network or the budget that you planned for: serverless Spark, for example, does
#   not use your compute. The type of the job and the types of the steps of a pipeline are compared with
#   `denied_job_types`.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-integrate-azure-policy]
# custom:
#   id: AML-JOB-007
#   severity: medium
#   judges: [Microsoft.MachineLearningServices/workspaces/jobs]
#   remediation:
#     text: Submit the work as a job of another type, or take the type out of `denied_job_types` of AML-JOB-007.
#   source: JOB-07
#   parameters:
#     denied_job_types:
#       type: array
#       items: {type: string, pattern: '\S'}
#       default: [Spark]
#       description: types of jobs and of steps that are not allowed; with none, no job is evaluated
#   since: 0.2.0
package jobs.allowed_job_types

import data.lib.settings
import data.lib.words

applies if count(denied) > 0

deny contains {
	"msg": "the type of the job is not allowed",
	"path": settings.pointer(stated.path),
	"actual": stated.type,
	"expected": {"none of": input.parameters.denied_job_types},
} if {
	some stated in types
	squeezed(stated.type) in denied
}

unknown contains {"msg": "the type is not stated", "path": settings.pointer(stated.path)} if {
	some stated in types
	words.is_blank(stated.type)
}

unknown contains {"msg": "the type is not a known value", "path": settings.pointer(stated.path)} if {
	some stated in types
	settings.is_unreadable_word(comparable(stated.type), known | denied)
}

unknown contains {"msg": "the properties or the steps of the job cannot be read", "path": pointer} if {
	pointer := settings.unreadable(input.resource, ["properties", "jobs"], "object")
}

# The type of the job, and those of the steps of a pipeline.
types := array.concat(
	[{"path": ["properties", "jobType"], "type": object.get(input.resource, ["properties", "jobType"], null)}],
	[{"path": ["properties", "jobs", name, "type"], "type": type_of(step)} |
		is_object(input.resource.properties.jobs)
		some name, step in input.resource.properties.jobs
	],
)

type_of(step) := object.get(step, "type", null) if is_object(step)

else := {} # which is no word

denied := {squeezed(type) | some type in input.parameters.denied_job_types}

# The types of ARM have no underscores, those of steps do.
squeezed(type) := replace(words.folded(type), "_", "")

comparable(type) := word if word := squeezed(type)

else := type

# Of jobs in ARM 2025-12-01, and of steps in the YAML schema of pipelines.
known := {
	"automl", "command", "distillation", "finetuning", "labeling", "pipeline", "spark", "sweep",
	"datatransfer", "dowhile", "ifelse", "import", "parallel", "parallelfor",
}
