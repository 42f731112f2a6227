# METADATA
# scope: package
# title: A workspace has few computes beside it
# description: >-
#   Broken: it counts all computes of the snapshot, and does not declare under `consults` that it reads them. So a compute
#   of another workspace, or of another subscription, makes this workspace fail.
# custom:
#   id: BROKEN-NEIGHBOURS-001
#   severity: low
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   inspects: [/location]
#   when_absent: pass
#   remediation: Delete computes.
#   parameters:
#     most: {type: integer, minimum: 0, default: 6, description: how many computes there may be}
package count.few_computes

deny contains {
	"msg": "there are too many computes",
	"path": "/id",
	"actual": number,
	"expected": {"at most": input.parameters.most},
} if {
	number > input.parameters.most
}

number := count([resource |
	some resource in input.snapshot.resources
	lower(resource.type) == "microsoft.machinelearningservices/workspaces/computes"
])
