package lib.connections_test

import data.lib.connections

test_kinds_of_authentication_are_in_lower_case_and_in_one_set if {
	kinds := connections.keyed | connections.keyless
	count(kinds) == count(connections.keyed) + count(connections.keyless)
	every kind in kinds {
		kind == lower(kind)
	}
}

test_place_is_where_a_connection_states_its_authentication if {
	connection := {"properties": {"authType": "AAD"}}
	lower(object.get(connection, connections.place, "")) in connections.keyless
}
