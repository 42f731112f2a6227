# METADATA
# scope: package
# title: The workspace's address allow list is narrow
# description: >-
#   An allow list with a very large range of addresses lets in whoever has one of them, and so closes nothing. Only
#   workspaces that answer the public network and have such a list are evaluated.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-configure-private-link]
# custom:
#   id: AML-NET-204
#   severity: high
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   remediation: >-
#     List only the addresses that reach the workspace (`az ml workspace update --network-acls <prefixes>`), or disable
#     public network access.
#   source: NET-204
#   parameters:
#     widest: {type: integer, minimum: 0, maximum: 32, default: 16, description: length of the widest IPv4 prefix that may be listed}
#     widest_ipv6: {type: integer, minimum: 0, maximum: 128, default: 48, description: length of the widest IPv6 prefix that may be listed}
#   monotone_in: {"parameter:widest": higher, "parameter:widest_ipv6": higher}
#   since: 0.2.0
package network.narrow_allow_list

import data.lib.addresses
import data.lib.networks
import data.lib.public_access
import data.lib.settings

applies if {
	not networks.is_project(input.resource)
	networks.public_access(input.resource) != "disabled"
	has_list
}

has_list if count(entries) > 0

has_list if count(unreadable_lists) > 0

deny contains {
	"msg": "the allow list has a very large range of addresses",
	"path": settings.pointer(place),
	"actual": settings.at(input.resource, place),
	"expected": {"at most": widest},
} if {
	not public_access.unreadable(input.resource)
	some place in entries
	prefix := addresses.prefix(settings.at(input.resource, place))
	is_wide(prefix)
	widest := concat("", ["/", format_int(longest[prefix.family], 10)])
}

unknown contains {"msg": "the public network access of the workspace cannot be read", "path": pointer} if {
	pointer := public_access.unreadable(input.resource)
	some place in entries
	is_wide(addresses.prefix(settings.at(input.resource, place)))
}

unknown contains {"msg": "the allow list cannot be read", "path": pointer} if some pointer in unreadable_lists

unknown contains {"msg": "an entry of the allow list is no address prefix", "path": settings.pointer(place)} if {
	some place in entries
	not addresses.prefix(settings.at(input.resource, place))
}

is_wide(prefix) if prefix.length < longest[prefix.family]

is_wide(prefix) if prefix.length == 0

longest := {4: input.parameters.widest, 6: input.parameters.widest_ipv6}

lists := [["properties", "ipAllowlist"], ["properties", "networkAcls", "ipRules"]]

# Where the address is in an entry of each list.
below := [[], ["value"]]

unreadable_lists contains pointer if {
	some list in lists
	pointer := settings.unreadable(input.resource, list, "array")
}

entries contains place if {
	some at, list in lists
	some entry in settings.entry_paths(input.resource, list)
	place := array.concat(entry, below[at])
	is_stated(place)
}

# A rule that is no object has no address that can be read.
is_stated(place) if settings.at(input.resource, place) != null

is_stated(place) if settings.unreadable(input.resource, place, "string")
