# METADATA
# scope: package
# title: A workspace has a private endpoint
# description: Security wants every workspace behind a private endpoint. The other policy of this area forbids them.
# custom:
#   id: BROKEN-ACCESS-001
#   severity: high
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   inspects: [/properties/privateEndpointConnections]
#   when_absent: fail
#   remediation: {text: Create a private endpoint.}
#   source: security guideline, section 4
package access.private

deny contains {
	"msg": "there is no private endpoint",
	"path": "/properties/privateEndpointConnections",
	"actual": connections,
	"expected": "at least one",
} if {
	count(connections) == 0
}

connections := object.get(input.resource, ["properties", "privateEndpointConnections"], [])
