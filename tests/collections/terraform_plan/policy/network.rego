package terraform.network

import rego.v1

created contains change if {
	some change in input.resource_changes
	some action in change.change.actions
	action in {"create", "update"}
}

deny contains msg if {
	some change in created
	change.type == "azurerm_machine_learning_workspace"
	object.get(change.change.after, "public_network_access_enabled", true)
	msg := sprintf("%v is open to the internet", [change.address])
}

deny_rules contains {"msg": msg, "path": "/resource_changes", "expected": "no `*`", "actual": rule.source_address_prefix} if {
	some change in created
	change.type == "azurerm_network_security_group"
	some rule in change.change.after.security_rule
	rule.access == "Allow"
	rule.source_address_prefix == "*"
	msg := sprintf("%s lets everybody in at port %v", [change.address, rule.destination_port_range])
}
