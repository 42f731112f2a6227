# METADATA
# scope: package
# title: Container groups have no public address
# description: >-
#   A model that answers at a public address can be reached by everybody, without the controls of the workspace's network.
# related_resources: [https://learn.microsoft.com/azure/container-instances/container-instances-vnet]
# custom:
#   id: AML-CMP-017
#   severity: high
#   judges: [Microsoft.ContainerInstance/containerGroups]
#   remediation: >-
#     Create the group again in a subnet and without a public address (`az container create --subnet <subnet id>
#     --ip-address Private`).
#   source: CMP-17
#   monotone_in: {/properties/ipAddress/type: [Public, Private]}
#   refines: [AML-NET-102]
#   since: 0.2.0
package compute.private_container_groups

import data.lib.settings

deny contains {
	"msg": "the container group has a public address",
	"path": settings.pointer(place),
	"actual": settings.at(input.resource, place),
	"expected": "Private",
} if {
	settings.word(settings.at(input.resource, place), words) == "public"
}

unknown contains {"msg": "the type of the address is neither Public nor Private", "path": pointer} if {
	pointer := settings.unreadable_word(input.resource, place, words)
}

unknown contains {"msg": "the type of the address is not stated", "path": settings.pointer(place)} if {
	is_object(input.resource.properties.ipAddress)
	settings.at(input.resource, place) == null
}

words := {"public", "private"}

place := ["properties", "ipAddress", "type"]
