# METADATA
# scope: package
# title: A workspace's private endpoint resolves through both DNS zones
# description: >-
#   A workspace answers under names of two DNS zones, and a name that no private zone resolves leads to the public
#   endpoint. Both zones are in the zone groups of the private endpoint.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-custom-dns]
# custom:
#   id: AML-NET-005
#   severity: medium
#   judges: [Microsoft.Network/privateEndpoints]
#   remediation:
#     text: >-
#       Add both zones to the zone group (`az network private-endpoint dns-zone-group add --endpoint-name <endpoint>
#       --name default --private-dns-zone <zone id> --zone-name <name> ...`).
#   source: NET-05
#   parameters:
#     zone_sets:
#       type: array
#       items: {type: array, minItems: 1, items: {type: string, pattern: '\S'}}
#       default:
#         - [privatelink.api.azureml.ms, privatelink.notebooks.azure.net]
#         - [privatelink.api.ml.azure.us, privatelink.notebooks.usgovcloudapi.net]
#         - [privatelink.api.ml.azure.cn, privatelink.notebooks.chinacloudapi.cn]
#       description: names of DNS zones; all zones of one of these lists are required, and without lists the policy is off
#   since: 0.2.0
package network.private_endpoint_dns

import data.lib.ids
import data.lib.settings
import data.lib.words

applies if {
	count(input.parameters.zone_sets) > 0
	reaches_workspace
}

applies if {
	count(input.parameters.zone_sets) > 0
	count(unreadable_groups) > 0
}

deny contains {
	"msg": "the private endpoint has no DNS zone group with all zones of a workspace",
	"path": "/id",
	"actual": zones,
	"expected": input.parameters.zone_sets,
} if {
	reaches_workspace
	not has_zone_set
	count(unreadable_zones) == 0
	input.snapshot.incomplete == []
}

unknown contains {"msg": "the group ids of a connection cannot be read", "path": pointer} if {
	not reaches_workspace
	some pointer in unreadable_groups
}

unknown contains {"msg": "a DNS zone of the private endpoint cannot be read", "path": "/id"} if {
	reaches_workspace
	not has_zone_set
	count(unreadable_zones) > 0
}

unknown contains {"msg": "the snapshot is incomplete: a DNS zone group may exist", "path": "/id"} if {
	reaches_workspace
	not has_zone_set
	input.snapshot.incomplete != []
}

lists := [["properties", "privateLinkServiceConnections"], ["properties", "manualPrivateLinkServiceConnections"]]

# The places of the lists of group ids, and of the ids in them.
group_lists contains place if {
	some list in lists
	stated := object.get(input.resource, list, null)
	is_array(stated)
	some index, _ in stated
	place := array.concat(list, [index, "properties", "groupIds"])
}

groups contains array.concat(place, [index]) if {
	some place in group_lists
	stated := object.get(input.resource, place, null)
	is_array(stated)
	some index, _ in stated
}

reaches_workspace if {
	some place in groups
	words.folded(object.get(input.resource, place, null)) == "amlworkspace"
}

unreadable_groups contains pointer if {
	some place in lists
	pointer := settings.unreadable(input.resource, place, "array")
}

unreadable_groups contains pointer if {
	some place in group_lists
	pointer := settings.unreadable(input.resource, place, "array")
}

unreadable_groups contains settings.pointer(place) if {
	some place in groups
	settings.unreadable({"group": object.get(input.resource, place, null)}, ["group"], "string")
}

has_zone_set if {
	some names in input.parameters.zone_sets
	every name in names { words.folded(name) in zones }
}

zones contains name if {
	some zone in stated_zones
	parts := split(ids.folded(words.folded(zone)), "/")
	name := parts[count(parts) - 1]
}

unreadable_zones contains zone_group.id if {
	some zone_group in zone_groups
	settings.unreadable(zone_group, zone_configs, "array")
}

unreadable_zones contains zone_group.id if {
	some [zone_group, place] in configs
	settings.unreadable({"config": object.get(zone_group, place, null)}, ["config", "properties", "privateDnsZoneId"], "string")
}

stated_zones contains zone if {
	some [zone_group, place] in configs
	zone := object.get(zone_group, array.concat(place, ["properties", "privateDnsZoneId"]), null)
}

configs contains [zone_group, array.concat(zone_configs, [index])] if {
	some zone_group in zone_groups
	stated := object.get(zone_group, zone_configs, null)
	is_array(stated)
	some index, _ in stated
}

zone_configs := ["properties", "privateDnsZoneConfigs"]

zone_groups := [input.snapshot.by_id[id] |
	some id in input.snapshot.by_scope[ids.folded(input.resource.id)]["microsoft.network/privateendpoints/privatednszonegroups"]
]
