# METADATA
# scope: package
# title: ACI web services are inside a virtual network
# description: >-
#   "Azure Container Instances and Azure Kubernetes Service can be integrated with Azure Virtual Networks, enabling you
#   to deploy machine learning models within a VNet." A public address takes a container out of it again.
# related_resources: [https://learn.microsoft.com/azure/container-instances/container-instances-vnet]
# custom:
#   id: AML-NET-102
#   severity: high
#   judges:
#     - {type: Microsoft.MachineLearningServices/workspaces/services, where: {/properties/computeType: [ACI]}}
#     - type: Microsoft.ContainerInstance/containerGroups
#   remediation:
#     text: >-
#       Deploy it again into a delegated subnet and without a public address (`az container create --subnet <subnet id>
#       --ip-address Private`; for a version-1 service `vnet_name` and `subnet_name` of the deployment configuration).
#     patches:
#       - {patch: [{op: add, path: /properties/ipAddress/type, value: Private}], answers: [/properties/ipAddress/type]}
#       - {patch: [{op: remove, path: /properties/publicIp}], answers: [/properties/publicIp]}
#   source: '002 "Azure Container Instances (ACI) and Azure Kubernetes Service (AKS) Integration with VNets"'
#   monotone_in: {/properties/ipAddress/type: [Public, Private]}
#   since: 0.1.0
package network.aci_in_subnet

import data.lib.networks
import data.lib.words

deny contains {
	"msg": "it is in no virtual network",
	"path": place,
	"actual": object.get(input.resource, split(trim_prefix(place, "/"), "/"), null),
	"expected": "a subnet",
} if {
	not is_inside
}

deny contains {
	"msg": "the container group has an address that is not private",
	"path": "/properties/ipAddress/type",
	"actual": object.get(input.resource, ["properties", "ipAddress", "type"], null),
	"expected": "Private",
} if {
	input.resource.properties.ipAddress != null
	not is_private
}

deny contains {
	"msg": "the service has a public address",
	"path": "/properties/publicIp",
	"actual": address,
	"expected": null,
} if {
	address := input.resource.properties.publicIp
	not address in {null, ""}
}

is_group if lower(input.resource.type) == "microsoft.containerinstance/containergroups"

place := "/properties/subnetIds" if {
	is_group
} else := "/properties/vnetConfiguration"

is_inside if {
	is_group
	networks.states_group_subnet(input.resource)
}

is_inside if {
	not is_group
	words.text(input.resource.properties.vnetConfiguration.vnetName)
	words.text(input.resource.properties.vnetConfiguration.subnetName)
}

is_private if words.folded(input.resource.properties.ipAddress.type) == "private"
