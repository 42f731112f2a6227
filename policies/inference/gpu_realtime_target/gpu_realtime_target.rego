# METADATA
# scope: package
# title: GPU web services run only on supported targets
# description: >-
#   A web service that needs a GPU does not work, or loses its acceleration, on a target that offers none. By
#   default these serve with a GPU: AKS, Kubernetes and managed online endpoints, as the vendor lists them for version 2 of
#   the service ("Compute targets for inference", 2026-03-31). Document 001 allows only AKS; the profile `documents` keeps
#   to it.
# related_resources:
#   - ref: https://learn.microsoft.com/azure/machine-learning/concept-compute-target
# custom:
#   id: AML-INF-101
#   severity: high
#   judges:
#     - type: workload
#       where:
#         /purpose: [realtime-inference]
#         /accelerator: [gpu]
#   remediation:
#     text: >-
#       Deploy the service to one of the targets in `gpu_realtime_targets` (by default a managed online endpoint, or a
#       Kubernetes endpoint with `compute: azureml:<compute>`: `az ml online-endpoint create --file <file>`), or serve
#       the model without a GPU.
#     patches:
#       - {patch: [{op: replace, path: /target, value: aks}], provided: [AML-INF-110]}
#   source: '001 "Compute targets for inference"; 000 "Choose a compute target for deployment"; aml-compute-targets-2026'
#   parameters:
#     gpu_realtime_targets:
#       type: array
#       items:
#         type: string
#         enum: [local, compute-instance, compute-cluster, serverless, kubernetes, aks, aci, managed-online, attached-vm,
#           databricks, data-lake-analytics, hdinsight, batch, synapse-spark, functions, iot-edge]
#       default: [aks, managed-online, kubernetes]
#       description: the targets that serve real-time inference with a GPU
#   since: 0.1.0
package inference.gpu_realtime_target

import data.lib.words

deny contains {
	"msg": "the target does not serve real-time inference with a GPU",
	"path": "/target",
	"actual": input.resource.target,
	"expected": input.parameters.gpu_realtime_targets,
} if {
	target := words.folded(input.resource.target)
	not target in input.parameters.gpu_realtime_targets
}
