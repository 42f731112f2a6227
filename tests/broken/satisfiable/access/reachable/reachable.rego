# METADATA
# scope: package
# title: A workspace is reached without private endpoints
# description: Cost wants no private endpoint, which is billed by the hour, while the other policy of this area demands one.
# custom:
#   id: BROKEN-ACCESS-002
#   severity: low
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   inspects: [/properties/privateEndpointConnections]
#   when_absent: pass
#   remediation: {text: Delete the private endpoints.}
#   source: cost guideline, section 7
package access.reachable

deny contains {
	"msg": "a private endpoint costs money all the time",
	"path": "/properties/privateEndpointConnections",
	"actual": count(connections),
	"expected": [],
} if {
	count(connections) > 0
}

connections := object.get(input.resource, ["properties", "privateEndpointConnections"], [])
