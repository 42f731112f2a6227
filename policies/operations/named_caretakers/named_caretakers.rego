# METADATA
# scope: package
# title: Unmanaged compute names who looks after it
# description: >-
#   "An unmanaged compute target is not managed by Azure Machine Learning." It "can require additional steps for you to
#   maintain", and "it entails responsibility for infrastructure management". The tags `owner` and `support` state whose.
#   An AKS compute counts when it states that it was attached.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-attach-compute-targets]
# custom:
#   id: AML-OPS-102
#   severity: medium
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/computes
#       where:
#         /properties/computeType:
#           [VirtualMachine, Databricks, HDInsight, DataLakeAnalytics, Kubernetes, SynapseSpark, AKS]
#   remediation:
#     text: >-
#       Tag the compute with who owns it and who is called when it fails: `az resource tag --is-incremental --ids <id>
#       --tags owner=<who> support=<whom to call>`.
#     patches:
#       - {patch: [{op: copy, from: /tags/owner, path: /tags/support}], answers: [/tags/support]}
#       - {patch: [{op: copy, from: "workspace:/tags/owner", path: /tags/owner}], answers: [/tags/owner]}
#   source: '001 "Unmanaged compute", 002 "Unmanaged Compute"'
#   since: 0.1.0
package operations.named_caretakers

import data.lib.computes
import data.lib.tags

applies if computes.kind(input.resource) != "aks"

applies if input.resource.properties.isAttachedCompute == true

deny contains {
	"msg": "no person or team is named for the unmanaged compute",
	"path": tags.pointer(name),
	"actual": object.get(input.resource, ["tags", name], null),
	"expected": "a person or a team",
} if {
	some name in tags.missing(input.resource, caretakers)
}

unknown contains {"msg": "the value of the tag is not text", "path": tags.pointer(name)} if {
	some name in tags.unreadable(input.resource, caretakers)
}

caretakers := ["owner", "support"]
