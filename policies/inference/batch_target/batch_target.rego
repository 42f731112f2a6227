# METADATA
# scope: package
# title: Batch inference runs on on-demand compute
# description: >-
#   "For batch predictions, you can run a pipeline job in Azure Machine Learning. Compute targets like compute clusters
#   and Azure Machine Learning's serverless compute are ideal for pipeline jobs as they're on-demand and scalable."
# related_resources:
#   - ref: https://learn.microsoft.com/azure/machine-learning/concept-endpoints-batch
# custom:
#   id: AML-INF-113
#   severity: medium
#   judges:
#     - type: workload
#       where:
#         /purpose: [batch-inference]
#   remediation:
#     text: >-
#       Name a compute cluster in `compute` of the batch deployment (`az ml batch-deployment update --name <deployment>
#       --endpoint-name <endpoint> --set compute=azureml:<cluster>`), or run the batch as a job on serverless compute.
#     patches:
#       - {patch: [{op: replace, path: /target, value: compute-cluster}], provided: [AML-INF-109, AML-INF-110,
#         AML-ISO-102, AML-TRN-107]}
#   source: '000 "Choose a compute target for deployment"; 001 "Compute targets for inference"; CMP-15'
#   parameters:
#     batch_targets:
#       type: array
#       items:
#         type: string
#         enum: [local, compute-instance, compute-cluster, serverless, kubernetes, aks, aci, managed-online, attached-vm,
#           databricks, data-lake-analytics, hdinsight, batch, synapse-spark, functions, iot-edge]
#       default: [compute-cluster, serverless]
#       description: the targets that run batch inference
#   since: 0.1.0
package inference.batch_target

import data.lib.words

deny contains {
	"msg": "batch inference runs on a target that is not on demand",
	"path": "/target",
	"actual": target,
	"expected": input.parameters.batch_targets,
} if {
	target := words.folded(input.resource.target)
	not target in input.parameters.batch_targets
}
