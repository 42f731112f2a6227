# METADATA
# scope: package
# title: A compute instance belongs to one person
# description: >-
#   Whoever can open the applications of a shared instance acts with the identity and the files of its owner. Azure's
#   default is Shared, so a missing setting fails.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-create-compute-instance]
# custom:
#   id: AML-CMP-202
#   severity: medium
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/computes
#       where: {/properties/computeType: [ComputeInstance]}
#   remediation: Set `applicationSharingPolicy` of the instance to Personal, and create one instance for each person.
#   source: CMP-202
#   monotone_in: {/properties/properties/applicationSharingPolicy: [Shared, Personal]}
#   since: 0.2.0
package compute.personal_applications

import data.lib.settings

deny contains {
	"msg": "the applications of the instance are shared",
	"path": settings.pointer(place),
	"actual": stated,
	"expected": "Personal",
} if {
	not settings.unreadable_word(input.resource, place, words)
	not settings.word(stated, {"personal"})
}

unknown contains {"msg": "the sharing of the applications is neither Personal nor Shared", "path": pointer} if {
	pointer := settings.unreadable_word(input.resource, place, words)
}

words := {"personal", "shared"}

stated := settings.at(input.resource, place)

place := ["properties", "properties", "applicationSharingPolicy"]
