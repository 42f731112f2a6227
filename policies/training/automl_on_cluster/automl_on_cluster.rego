# METADATA
# scope: package
# title: Automated ML experiments use a compute cluster
# description: >-
#   "Compute Clusters are required when implementing Automated Machine Learning Experiments", states one document; another
#   allows more targets (AML-TRN-101). Nothing fails unless the parameter `automl_requires_cluster` takes the stricter
#   word.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/concept-automated-ml]
# custom:
#   id: AML-TRN-104
#   severity: low
#   judges: [workload]
#   remediation:
#     text: >-
#       Name a compute cluster in `compute:` of the automated ML job, or of the step, and submit it again (`az ml job
#       create --file job.yml --set compute=azureml:<cluster>`).
#     patches:
#       - {patch: [{op: replace, path: /target, value: compute-cluster}], provided: [AML-ISO-102, AML-TRN-107]}
#   source: '003 (paragraph on compute targets)'
#   parameters:
#     automl_requires_cluster:
#       type: boolean
#       default: false
#       description: whether automated ML has to run on a compute cluster; nothing fails unless it has
#   monotone_in: {"parameter:automl_requires_cluster": [false, true]}
#   since: 0.1.0
package training.automl_on_cluster

import data.lib.targets

applies if targets.has_feature(input.resource, "automl")

deny contains {
	"msg": "automated ML does not run on a compute cluster",
	"path": "/target",
	"actual": targets.shown(run),
	"expected": "compute-cluster",
} if {
	some run in input.resource.runs
	is_off_the_clusters(run) == true
}

unknown contains {"msg": "it is not known whether training with automated ML runs off the clusters", "path": "/target"} if {
	some run in input.resource.runs
	is_off_the_clusters(run) == null
}

# Null where it is not known.
is_off_the_clusters(run) := false if {
	not input.parameters.automl_requires_cluster
} else := false if {
	run.target == "compute-cluster"
} else := false if {
	run.features.automl == false
} else := null if {
	null in {run.target, run.features.automl, input.resource.purpose}
} else := true
