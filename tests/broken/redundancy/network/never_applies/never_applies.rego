# METADATA
# scope: package
# title: A project keeps to the network of its hub
# description: >-
#   Broken on purpose: it compares a text in lower case with a word that has a capital, so `applies` is never true.
# custom:
#   id: BRK-RED-002
#   severity: medium
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   inspects: [/properties/hubResourceId]
#   when_absent: pass
#   since: 0.1.0
package network.never_applies

applies if {
	lower(input.resource.kind) == "Project"
}

deny contains {
	"msg": "the project names no hub",
	"path": "/properties/hubResourceId",
	"actual": null,
	"expected": "the id of a hub",
} if {
	not input.resource.properties.hubResourceId
}
