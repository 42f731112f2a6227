# METADATA
# scope: package
# title: Automated ML runs on a target that supports it
# description: >-
#   "Not all resources can be used for automated machine learning, machine learning pipelines, or designer." Training
#   is judged, experimentation is not; of a pipeline each step with automated ML. A target that the documents do not list
#   is unknown, and so is Databricks, where they say "SDK local mode only"; the parameter decides those.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/concept-compute-target#training-compute-targets]
# custom:
#   id: AML-TRN-101
#   severity: high
#   judges: [workload]
#   inspects: [/runs]
#   when_absent: pass
#   remediation:
#     text: >-
#       Run the job on a compute cluster: name one in `compute:` of the job, or of the step, and submit it again (`az ml
#       job create --file job.yml --set compute=azureml:<cluster>`).
#     patches:
#       - {patch: [{op: replace, path: /target, value: compute-cluster}], provided: [AML-ISO-102, AML-TRN-107]}
#   source: 001 "Training compute targets"
#   parameters:
#     extra_targets:
#       type: object
#       propertyNames:
#         enum: [local, compute-instance, compute-cluster, serverless, kubernetes, aks, aci, managed-online, attached-vm,
#           databricks, data-lake-analytics, hdinsight, batch, synapse-spark, functions, iot-edge]
#       additionalProperties: {type: boolean}
#       default: {}
#       description: whether further targets support automated ML; the rows of the documents stay as they are
#   insensitive_to: [/tags, /accelerator, /cadence]
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
	some run in targets.unsupported(input.resource, "automl", input.parameters.extra_targets)
}

unknown contains {"msg": doubt, "path": "/target"} if {
	some doubt in targets.doubts(input.resource, "automl", input.parameters.extra_targets)
}
