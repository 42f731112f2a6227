# METADATA
# scope: package
# title: A workspace is not open
# custom:
#   id: G-NET-001
#   severity: high
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   inspects: [/properties/publicNetworkAccess]
#   when_absent: {/properties/publicNetworkAccess: fail}
#   remediation:
#     text: Set publicNetworkAccess to Disabled.
#     patch: [{op: add, path: /properties/publicNetworkAccess, value: Disabled}]
#   source: the rule of the house
#   controls: {mcsb-v1: [NS-2]}
#   since: 0.1.0
package area.open

deny contains {"msg": "the workspace is open", "path": "/properties/publicNetworkAccess", "actual": access, "expected": "Disabled"} if {
	access := object.get(input.resource, ["properties", "publicNetworkAccess"], null)
	access != "Disabled"
}
