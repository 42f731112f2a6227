# METADATA
# scope: package
# title: Resources carry the tags that cost is allocated by
# description: >-
#   "Use resource tags to track and categorize resources for better cost allocation." Workspaces of every kind, computes,
#   online and batch endpoints carry each tag of `required_tags` themselves: Azure hands no tag down from a workspace or
#   a resource group.
# related_resources: [https://learn.microsoft.com/azure/cost-management-billing/costs/cost-allocation-introduction]
# custom:
#   id: AML-COST-101
#   severity: medium
#   judges:
#     - Microsoft.MachineLearningServices/workspaces
#     - Microsoft.MachineLearningServices/workspaces/computes
#     - Microsoft.MachineLearningServices/workspaces/onlineEndpoints
#     - Microsoft.MachineLearningServices/workspaces/batchEndpoints
#   remediation:
#     text: >-
#       Tag the resource, for example `az resource tag --is-incremental --ids <id> --tags owner=<who> cost-center=<number>
#       environment=<stage>`.
#     patches:
#       - {patch: [{op: copy, from: "workspace:/tags/owner", path: /tags/owner}], answers: [/tags/owner]}
#       - {patch: [{op: copy, from: "workspace:/tags/cost-center", path: /tags/cost-center}],
#         answers: [/tags/cost-center]}
#   source: 002 "Cost Optimization Strategies"
#   parameters:
#     required_tags:
#       type: array
#       items: {type: string, pattern: '\S'}
#       default: [owner, cost-center, environment]
#       description: the names of the tags, compared without case
#   since: 0.1.0
package cost.allocation_tags

import data.lib.tags

deny contains {
	"msg": "a tag that cost is allocated by is missing or blank",
	"path": tags.pointer(name),
	"actual": object.get(input.resource, ["tags", name], null),
	"expected": "a value",
} if {
	some name in tags.missing(input.resource, input.parameters.required_tags)
}

unknown contains {"msg": "the value of a tag that cost is allocated by is not text", "path": tags.pointer(name)} if {
	some name in tags.unreadable(input.resource, input.parameters.required_tags)
}
