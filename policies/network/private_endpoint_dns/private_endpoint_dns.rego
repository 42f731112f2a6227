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
	may_reach_workspace
}

may_reach_workspace if reaches_workspace

may_reach_workspace if count(unreadable_groups) > 0

deny contains {
	"msg": "the private endpoint has no DNS zone group with all zones of a workspace",
	"path": "/id",
	"actual": zones,
	"expected": input.parameters.zone_sets,
} if {
	reaches_workspace
	not has_zone_set
	count(doubts) == 0
}

unknown contains {"msg": "the group ids of a connection cannot be read", "path": pointer} if {
	not reaches_workspace
	some pointer in unreadable_groups
}

unknown contains {"msg": doubt, "path": "/id"} if {
	not has_zone_set
	some doubt in doubts
}

doubts contains "a DNS zone of the private endpoint cannot be read" if has_unreadable_zone

doubts contains "the snapshot is incomplete: a DNS zone group may exist" if count(input.snapshot.incomplete) > 0

lists := [["properties", "privateLinkServiceConnections"], ["properties", "manualPrivateLinkServiceConnections"]]

# The places of the lists of group ids, and of the ids in them.
group_lists contains array.concat(connection, ["properties", "groupIds"]) if {
	some list in lists
	some connection in settings.entry_paths(input.resource, list)
}

groups contains group if {
	some list in group_lists
	some group in settings.entry_paths(input.resource, list)
}

reaches_workspace if {
	some group in groups
	words.folded(settings.at(input.resource, group)) == "amlworkspace"
}

unreadable_groups contains pointer if {
	some list in lists
	pointer := settings.unreadable(input.resource, list, "array")
}

unreadable_groups contains pointer if {
	some list in group_lists
	pointer := settings.unreadable(input.resource, list, "array")
}

unreadable_groups contains pointer if {
	some group in groups
	pointer := settings.unreadable(input.resource, group, "string")
}

has_zone_set if {
	some names in input.parameters.zone_sets
	every name in names { words.folded(name) in zones }
}

zones contains name if {
	some zone_group in zone_groups
	some config in settings.entry_paths(zone_group, zone_configs)
	parts := split(ids.folded(words.folded(settings.at(zone_group, array.concat(config, zone_id)))), "/")
	name := parts[count(parts) - 1]
}

has_unreadable_zone if {
	some zone_group in zone_groups
	settings.unreadable(zone_group, zone_configs, "array")
}

has_unreadable_zone if {
	some zone_group in zone_groups
	some config in settings.entry_paths(zone_group, zone_configs)
	settings.unreadable(zone_group, array.concat(config, zone_id), "string")
}

zone_configs := ["properties", "privateDnsZoneConfigs"]

zone_id := ["properties", "privateDnsZoneId"]

zone_groups := [input.snapshot.by_id[id] |
	some id in input.snapshot.by_scope[ids.folded(input.resource.id)]["microsoft.network/privateendpoints/privatednszonegroups"]
]
