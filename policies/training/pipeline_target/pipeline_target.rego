# METADATA
# scope: package
# title: Pipelines run on a target that supports them
# description: >-
#   "Not all resources can be used for automated machine learning, machine learning pipelines, or designer." Training
#   is evaluated (experimentation is not), each step of a pipeline on its own target; a batch deployment that scores with a
#   pipeline is not. The vendor's list of today goes first, then the documents' table; a target in neither is unknown
#   unless the parameter `extra_targets` decides.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/concept-compute-target#training-compute-targets]
# custom:
#   id: AML-TRN-102
#   severity: high
#   judges: [workload]
#   remediation:
#     text: >-
#       Run every step on a target of the workspace, such as a compute cluster: name it in `settings.default_compute` of
#       the pipeline or in `compute:` of the step, and submit the job again (`az ml job create --file pipeline.yml`).
#     patches:
#       - {patch: [{op: replace, path: /target, value: compute-cluster}], provided: [AML-ISO-102, AML-TRN-107]}
#   source: '001 "Training compute targets"; aml-compute-targets-2026'
#   parameters:
#     extra_targets:
#       type: object
#       propertyNames:
#         enum: [local, compute-instance, compute-cluster, serverless, kubernetes, aks, aci, managed-online, attached-vm,
#           databricks, data-lake-analytics, hdinsight, batch, synapse-spark, functions, iot-edge]
#       additionalProperties: {type: boolean}
#       default: {}
#       description: whether further targets support pipelines; the rows of the lists stay as they are
#     vendor_targets:
#       type: boolean
#       default: true
#       description: whether the targets that the vendor lists today (`facts/offered_targets`) count, before the documents
#   since: 0.1.0
package training.pipeline_target

import data.lib.targets

applies if targets.has_feature(input.resource, "pipeline")

deny contains {
	"msg": "the target does not support pipelines",
	"path": "/target",
	"actual": run,
	"expected": "a target that supports pipelines, such as a compute cluster",
} if {
	some run in targets.unsupported(input.resource, "pipeline", input.parameters)
}

unknown contains {"msg": doubt, "path": "/target"} if {
	some doubt in targets.doubts(input.resource, "pipeline", input.parameters)
}
