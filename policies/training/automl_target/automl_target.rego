# METADATA
# scope: package
# title: Automated ML runs on a target that supports it
# description: >-
#   "Not all resources can be used for automated machine learning, machine learning pipelines, or designer." Training
#   is evaluated, experimentation is not; of a pipeline each step with automated ML. The vendor's list of
#   today goes first, then the documents' table. A target in neither is unknown, and so is one with "SDK local mode
#   only"; the parameter `extra_targets` decides those.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/concept-compute-target#training-compute-targets]
# custom:
#   id: AML-TRN-101
#   severity: high
#   judges: [workload]
#   remediation:
#     text: >-
#       Run the job on a compute cluster: name one in `compute:` of the job, or of the step, and submit it again (`az ml
#       job create --file job.yml --set compute=azureml:<cluster>`).
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
#       description: whether further targets support automated ML; the rows of the lists stay as they are
#     vendor_targets:
#       type: boolean
#       default: true
#       description: whether the targets that the vendor lists today (`facts/offered_targets`) count, before the documents
#   since: 0.1.0
package training.automl_target

import data.lib.targets

applies if targets.has_feature(input.resource, "automl")

deny contains {
	"msg": "the target does not support automated ML",
	"path": "/target",
	"actual": run,
	"expected": "a target that supports automated ML, such as a compute cluster",
} if {
	some run in targets.unsupported(input.resource, "automl", input.parameters)
}

unknown contains {"msg": doubt, "path": "/target"} if {
	some doubt in targets.doubts(input.resource, "automl", input.parameters)
}
