# METADATA
# scope: package
# title: Training can resume
# description: >-
#   A run that cannot resume loses all its work when a node is preempted or fails. No field of ARM shows it, so
#   `evidence` decides, once `required` is true.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/reference-checkpoint-performance-for-large-models]
# custom:
#   id: AML-JOB-010
#   severity: info
#   judges: [Microsoft.MachineLearningServices/workspaces/jobs]
#   evidence: true
#   remediation:
#     text: >-
#       Write checkpoints to an output of the job, test that a restart goes on from the last one, and state that as `evidence`
#       for AML-JOB-010 with the id of the run as `reference`.
#   source: JOB-10
#   parameters:
#     required: {type: boolean, default: false, description: whether there must be evidence that training can resume}
#   since: 0.2.0
package jobs.checkpoints
