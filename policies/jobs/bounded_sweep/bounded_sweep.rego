# METADATA
# scope: package
# title: Sweeps do not run too many trials at once
# description: >-
#   Each trial of a sweep takes nodes, so a sweep without a limit can take all nodes of a shared cluster. A sweep that
#   states no limit runs all its trials at once, 1000 unless it states how many there are.
# related_resources:
#   - https://learn.microsoft.com/azure/machine-learning/reference-yaml-job-sweep#attributes-of-the-limits-key
# custom:
#   id: AML-JOB-008
#   severity: low
#   judges: [workload]
#   remediation:
#     text: Lower `limits.max_concurrent_trials` of the sweep.
#   source: JOB-08
#   parameters:
#     most_trials: {type: integer, minimum: 0, default: 10, description: how many trials of a sweep may run at once}
#   monotone_in: {"parameter:most_trials": lower}
#   since: 0.2.0
package jobs.bounded_sweep

import data.lib.targets
import data.lib.words

applies if {
	words.folded(input.resource.sourceType) == "microsoft.machinelearningservices/workspaces/jobs"
	count(sweeps) > 0
}

deny contains {
	"msg": "the sweep runs more trials at once than it may",
	"path": sweep.path,
	"actual": targets.shown(sweep.run),
	"expected": {"at most": input.parameters.most_trials},
} if {
	some sweep in sweeps
	sweep.run.concurrentTrials > input.parameters.most_trials
}

unknown contains {"msg": "how many trials run at once is not known", "path": sweep.path} if {
	some sweep in sweeps
	not is_number(sweep.run.concurrentTrials)
}

# The runs that are a sweep, or may be one.
sweeps := [{"path": concat("", ["/runs/", format_int(index, 10), "/concurrentTrials"]), "run": run} |
	some index, run in input.resource.runs
	run.features.sweep != false
]
