# METADATA
# scope: package
# title: GPU batch scoring runs only on Machine Learning clusters
# description: >-
#   "Using a GPU for inference when scoring with a machine learning pipeline is supported only on Azure Machine Learning
#   compute." Newer targets are added with the parameter.
# related_resources:
#   - ref: https://learn.microsoft.com/azure/machine-learning/concept-compute-target
# custom:
#   id: AML-INF-102
#   severity: high
#   judges:
#     - type: workload
#       where:
#         /purpose: [batch-inference]
#         /accelerator: [gpu]
#   remediation:
#     text: >-
#       Run the batch deployment on one of the targets in `gpu_batch_targets` (a Machine Learning compute cluster by
#       default: `compute: azureml:<cluster>` of the deployment), or score without a GPU.
#     patches:
#       - {patch: [{op: replace, path: /target, value: compute-cluster}], provided: [AML-ISO-102, AML-INF-110,
#         AML-TRN-107]}
#   source: 001 "Compute targets for inference"
#   parameters:
#     gpu_batch_targets:
#       type: array
#       items:
#         type: string
#         enum: [local, compute-instance, compute-cluster, serverless, kubernetes, aks, aci, managed-online, attached-vm,
#           databricks, data-lake-analytics, hdinsight, batch, synapse-spark, functions, iot-edge]
#       default: [compute-cluster]
#       description: the targets that run batch inference with a GPU
#   since: 0.1.0
package inference.gpu_batch_target

import data.lib.words

deny contains {
	"msg": "the target does not score batches with a GPU",
	"path": "/target",
	"actual": input.resource.target,
	"expected": input.parameters.gpu_batch_targets,
} if {
	target := words.folded(input.resource.target)
	not target in input.parameters.gpu_batch_targets
}
