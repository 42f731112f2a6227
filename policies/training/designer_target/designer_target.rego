# METADATA
# scope: package
# title: Designer runs on compute clusters
# description: >-
#   "Not all resources can be used for automated machine learning, machine learning pipelines, or designer": in the
#   documents only compute clusters run designer; in the vendor's list of today, which goes first, also instances,
#   serverless compute and Kubernetes. Its jobs look like any other in Azure, so the workload has to be declared with the
#   feature. A target in neither list is unknown unless the parameter `extra_targets` decides.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/concept-compute-target#training-compute-targets]
# custom:
#   id: AML-TRN-103
#   severity: high
#   judges: [workload]
#   remediation:
#     text: >-
#       Choose a compute cluster in the settings of the designer pipeline; if there is none, create one (`az ml compute
#       create --type amlcompute --name <cluster> --max-instances 4`).
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
#       description: whether further targets support designer; the rows of the lists stay as they are
#     vendor_targets:
#       type: boolean
#       default: true
#       description: whether the targets that the vendor lists today (`facts/offered_targets`) count, before the documents
#   since: 0.1.0
package training.designer_target

import data.lib.targets

applies if targets.has_feature(input.resource, "designer")

deny contains {
	"msg": "the target does not support designer",
	"path": "/target",
	"actual": run,
	"expected": "a target that supports designer, such as a compute cluster",
} if {
	some run in targets.unsupported(input.resource, "designer", input.parameters)
}

unknown contains {"msg": doubt, "path": "/target"} if {
	some doubt in targets.doubts(input.resource, "designer", input.parameters)
}
