# METADATA
# scope: package
# title: Outbound rules open no more than they name
# description: >-
#   A rule for all of the internet, a whole top-level domain or a service tag such as AzureCloud makes a managed network
#   that only allows approved traffic an open one. Rules that Azure makes itself are not evaluated.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-managed-network]
# custom:
#   id: AML-NET-202
#   severity: high
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   remediation: >-
#     Remove the rule (`az ml workspace outbound-rule remove --workspace-name <workspace> --rule <name>`) and name what is
#     needed: hosts, a service tag of one service and region, or a private endpoint.
#   source: NET-202
#   parameters:
#     broad_tags:
#       type: array
#       items: {type: string, pattern: '\S'}
#       default: [Internet, AzureCloud]
#       description: service tags that open too much
#   since: 0.2.0
package network.narrow_outbound_rules

import data.lib.addresses
import data.lib.managed_networks
import data.lib.networks
import data.lib.settings
import data.lib.words

applies if not networks.is_project(input.resource)

deny contains {
	"msg": "an outbound rule opens all hosts of a domain that many share",
	"path": settings.pointer(host),
	"actual": settings.at(input.resource, host),
	"expected": "a host, or the subdomains of a domain",
} if {
	some name in named("fqdn")
	host := array.concat(place(name), ["destination"])
	is_broad_host(words.folded(settings.at(input.resource, host)))
}

deny contains {
	"msg": "an outbound rule opens a service tag for much more than one service",
	"path": settings.pointer(tag),
	"actual": settings.at(input.resource, tag),
	"expected": {"none of": input.parameters.broad_tags},
} if {
	some name in allowing
	tag := array.concat(place(name), ["destination", "serviceTag"])
	words.folded(settings.at(input.resource, tag)) in {words.folded(broad) | some broad in input.parameters.broad_tags}
}

deny contains {
	"msg": "an outbound rule opens a very large range of addresses",
	"path": settings.pointer(prefix),
	"actual": settings.at(input.resource, prefix),
	"expected": {"at most": "/8"},
} if {
	some name in allowing
	some prefix in prefixes(name)
	addresses.prefix(settings.at(input.resource, prefix)).length < 8
}

unknown contains {"msg": "the outbound rules cannot be read", "path": pointer} if {
	pointer := settings.unreadable(input.resource, managed_networks.rules_place, "object")
}

unknown contains {"msg": "the category of an outbound rule cannot be read", "path": pointer} if {
	some name, _ in managed_networks.rules(input.resource)
	pointer := settings.unreadable_word(input.resource, array.concat(place(name), ["category"]), categories)
}

unknown contains {"msg": "the type of an outbound rule cannot be read", "path": settings.pointer(place(name))} if {
	some name in evaluated
	not has_known_kind(name)
}

unknown contains {"msg": "the destination of an outbound rule cannot be read", "path": settings.pointer(host)} if {
	some name in named("fqdn")
	host := array.concat(place(name), ["destination"])
	not words.text(settings.at(input.resource, host))
}

unknown contains {"msg": "the destination of an outbound rule cannot be read", "path": settings.pointer(destination)} if {
	some name in undenied
	destination := array.concat(place(name), ["destination"])
	not names_destination(destination)
}

unknown contains {"msg": "the destination of an outbound rule cannot be read", "path": pointer} if {
	some name in undenied
	some [key, type] in [["serviceTag", "string"], ["addressPrefixes", "array"]]
	pointer := settings.unreadable(input.resource, array.concat(place(name), ["destination", key]), type)
}

unknown contains {"msg": "the destination of an outbound rule cannot be read", "path": settings.pointer(prefix)} if {
	some name in undenied
	some prefix in prefixes(name)
	not addresses.prefix(settings.at(input.resource, prefix))
}

unknown contains {"msg": "the action of an outbound rule cannot be read", "path": pointer} if {
	some name in undenied
	pointer := settings.unreadable_word(input.resource, action(name), {"allow"})
}

place(name) := array.concat(managed_networks.rules_place, [name])

action(name) := array.concat(place(name), ["destination", "action"])

categories := {"required", "recommended", "userdefined", "dependency"}

# The names of the rules that people made; Azure returns the category.
evaluated contains name if {
	some name, _ in managed_networks.rules(input.resource)
	category := array.concat(place(name), ["category"])
	not settings.unreadable_word(input.resource, category, categories)
	not settings.word(settings.at(input.resource, category), categories - {"userdefined"})
}

kind(name) := words.folded(settings.at(input.resource, array.concat(place(name), ["type"])))

has_known_kind(name) if kind(name) in {"fqdn", "servicetag", "privateendpoint"}

named(expected) := {name |
	some name in evaluated
	kind(name) == expected
}

# The names of the rules of service tags that do not deny, and of those that allow for certain.
undenied contains name if {
	some name in named("servicetag")
	words.folded(settings.at(input.resource, action(name))) != "deny"
}

undenied contains name if {
	some name in named("servicetag")
	not words.text(settings.at(input.resource, action(name)))
}

allowing contains name if {
	some name in undenied
	not settings.unreadable_word(input.resource, action(name), {"allow"})
}

prefixes(name) := {prefix |
	list := array.concat(place(name), ["destination", "addressPrefixes"])
	stated := object.get(input.resource, list, null)
	is_array(stated)
	some index, entry in stated
	not words.is_blank(entry)
	prefix := array.concat(list, [index])
}

names_destination(destination) if {
	some key in ["serviceTag", "addressPrefixes"]
	settings.at(input.resource, array.concat(destination, [key])) != null
}

is_broad_host("*") := true

is_broad_host(host) if {
	startswith(host, "*.")
	not contains(substring(trim_suffix(host, "."), 2, -1), ".")
}
