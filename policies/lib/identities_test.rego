package lib.identities_test

import data.lib.identities

test_kinds if {
	identities.kinds({"identity": {"type": "SystemAssigned"}}) == {"systemassigned"}
	identities.kinds({"identity": {"type": "userassigned , SYSTEMASSIGNED"}}) == {"systemassigned", "userassigned"}
}

test_no_kinds if {
	every resource in [{}, {"identity": null}, {"identity": {}}, {"identity": {"type": " "}}, {"identity": {"type": "NONE"}}] {
		identities.kinds(resource) == set()
	}
}

test_unreadable_kinds if {
	every identity in ["SystemAssigned", [], {"type": 7}, {"type": ["UserAssigned"]}, {"type": "Managed"}, {"type": "UserAssigned,"}] {
		not identities.kinds({"identity": identity})
	}
}
