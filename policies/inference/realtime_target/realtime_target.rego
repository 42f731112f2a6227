# METADATA
# scope: package
# title: Real-time inference runs on a target that is always on
# description: >-
#   "When you want real-time predictions, you need a type of compute that is running continuously." Managed online
#   endpoints and Kubernetes clusters do. Functions start when they are called, and IoT Edge is a preview: where either
#   serves real-time requests all the same, a parameter allows it.
# related_resources:
#   - ref: https://learn.microsoft.com/azure/machine-learning/concept-endpoints-online
# custom:
#   id: AML-INF-112
#   severity: high
#   judges:
#     - type: workload
#       where:
#         /purpose: [realtime-inference]
#   remediation:
#     text: >-
#       Serve the model from a managed online endpoint (`az ml online-endpoint create`, `az ml online-deployment
#       create`), from AKS or from a Kubernetes compute; tag what only serves development or test `environment` with
#       `dev` or `test`.
#     patches:
#       - {patch: [{op: replace, path: /target, value: aks}], provided: [AML-INF-110]}
#   source: '000 "Choose a compute target for deployment"; 001 "Compute targets for inference"'
#   parameters:
#     realtime_targets:
#       type: array
#       items:
#         type: string
#         enum: [local, compute-instance, compute-cluster, serverless, kubernetes, aks, aci, managed-online, attached-vm,
#           databricks, data-lake-analytics, hdinsight, batch, synapse-spark, functions, iot-edge]
#       default: [aks, kubernetes, managed-online]
#       description: the targets that serve real-time inference in every stage
#     development_realtime_targets:
#       type: array
#       items:
#         type: string
#         enum: [local, compute-instance, compute-cluster, serverless, kubernetes, aks, aci, managed-online, attached-vm,
#           databricks, data-lake-analytics, hdinsight, batch, synapse-spark, functions, iot-edge]
#       default: [aci, local, compute-instance]
#       description: the targets that serve it in development and test alone
#   since: 0.1.0
package inference.realtime_target

import data.lib.words

deny contains {
	"msg": "the target does not serve real-time inference in this stage",
	"path": "/target",
	"actual": {"target": target, "stage": stage.name, "because": stage.reason},
	"expected": input.parameters.realtime_targets,
} if {
	not target in input.parameters.realtime_targets
	not serves_development
}

serves_development if {
	target in input.parameters.development_realtime_targets
	stage.name in {"dev", "test"}
}

target := words.folded(input.resource.target)

stage := words.stage(input.resource, input.workspace)
