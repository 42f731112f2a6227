# METADATA
# scope: package
# title: Inference compute is not used for training
# description: >-
#   "Inference compute is more lightweight than compute targets designed for training, and can only be used to deploy
#   trained models as endpoints." An AKS compute with a `clusterPurpose` was made for inference; a Kubernetes cluster
#   attached for any work, or an AKS compute without a purpose, may train.
# related_resources:
#   - ref: https://learn.microsoft.com/azure/machine-learning/concept-compute-target
# custom:
#   id: AML-INF-117
#   severity: high
#   judges:
#     - type: workload
#       where:
#         /purpose: [training]
#   remediation:
#     text: >-
#       Train on a compute cluster (`az ml compute create --type amlcompute ...`, then `compute: azureml:<cluster>` in the
#       job) or on serverless compute.
#     patches:
#       - {patch: [{op: replace, path: /target, value: compute-cluster}], answers: [/target], provided: [AML-ISO-102,
#         AML-TRN-107]}
#   source: '004 "Understand the available types of compute" (note); 002 "Inference Clusters"; 003'
#   since: 0.1.0
package inference.training_target

import data.lib.computes
import data.lib.ids
import data.lib.words

deny contains {
	"msg": "training runs on a target that only serves models",
	"path": "/target",
	"actual": target,
	"expected": "a training target",
} if {
	target in {"aci", "functions", "iot-edge"}
}

deny contains {
	"msg": "training runs on an inference cluster",
	"path": "/computeId",
	"actual": {"compute": input.resource.computeId, "clusterPurpose": purpose},
	"expected": "a compute without a clusterPurpose",
} if {
	target == "aks"
	purpose != ""
}

unknown contains {"msg": "it is not known whether the AKS cluster is for inference", "path": "/computeId"} if {
	target == "aks"
	not purpose
}

target := words.folded(input.resource.target)

purpose := computes.purpose(ids.named(input.resource.computeId, input.snapshot.by_id))
