package lib.managed_networks_test

import data.lib.managed_networks

workspace(mode) := {"properties": {"managedNetwork": {"isolationMode": mode}}}

test_rank if {
	managed_networks.rank(null) == 0
	managed_networks.rank(" ") == 0
	managed_networks.rank("DISABLED") == 0
	managed_networks.rank("AllowInternetOutbound") == 1
	managed_networks.rank("AllowOnlyApprovedOutbound") == 2
	every mode in ["open", 2, [], false] {
		not managed_networks.rank(mode)
	}
}

test_isolates if {
	managed_networks.isolates(workspace("allowInternetOutbound"))
	every mode in ["Disabled", null, "open", 2] {
		not managed_networks.isolates(workspace(mode))
	}
	managed_networks.unreadable_mode(workspace("open")) == "/properties/managedNetwork/isolationMode"
	managed_networks.unreadable_mode({"properties": {"managedNetwork": []}}) == "/properties/managedNetwork"
	not managed_networks.unreadable_mode(workspace("AllowInternetOutbound"))
	not managed_networks.unreadable_mode({})
}

test_rules if {
	stated := {"a": {"type": "FQDN"}, "b": null, "c": 7}
	managed_networks.rules({"properties": {"managedNetwork": {"outboundRules": stated}}}) == {"a": {"type": "FQDN"}, "c": 7}
	every other in [null, [], "text"] {
		managed_networks.rules({"properties": {"managedNetwork": {"outboundRules": other}}}) == {}
	}
	managed_networks.rules({}) == {}
}
