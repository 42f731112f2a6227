# METADATA
# scope: package
# title: The managed network reaches its dependencies privately
# description: >-
#   Without a private endpoint rule, nodes in the managed network reach storage, vault and registry through public
#   endpoints. Rules that Azure makes itself count, too.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-managed-network]
# custom:
#   id: AML-NET-007
#   severity: low
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   remediation:
#     text: >-
#       Add a private endpoint rule: `az ml workspace outbound-rule set --workspace-name <workspace> --rule <name> --type
#       private_endpoint --service-resource-id <resource id> --subresource-target <target>`.
#   source: NET-07
#   since: 0.2.0
package network.private_dependencies_rule

import data.lib.managed_networks
import data.lib.networks
import data.lib.settings
import data.lib.words

applies if {
	not networks.is_project(input.resource)
	managed_networks.isolates(input.resource)
}

applies if {
	not networks.is_project(input.resource)
	managed_networks.unreadable_mode(input.resource)
}

deny contains {
	"msg": "the managed network has no private endpoint rule",
	"path": settings.pointer(managed_networks.rules_place),
	"actual": {"rules": count(rules)},
	"expected": "a rule of the type PrivateEndpoint",
} if {
	managed_networks.isolates(input.resource)
	not has_private_endpoint
	count(unreadable) == 0
}

unknown contains {"msg": "the isolation mode of the managed network cannot be read", "path": pointer} if {
	pointer := managed_networks.unreadable_mode(input.resource)
}

unknown contains {"msg": "whether a rule is of the type PrivateEndpoint cannot be read", "path": pointer} if {
	not has_private_endpoint
	some pointer in unreadable
}

has_private_endpoint if {
	some rule in rules
	words.folded(rule.type) == "privateendpoint"
}

rules := managed_networks.rules(input.resource)

unreadable contains pointer if {
	pointer := settings.unreadable(input.resource, managed_networks.rules_place, "object")
}

# One of the type PrivateEndpoint is found above.
unreadable contains pointer if {
	some name, _ in rules
	place := array.concat(managed_networks.rules_place, [name, "type"])
	pointer := settings.unreadable_word(input.resource, place, {"fqdn", "servicetag"})
}
