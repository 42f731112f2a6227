package lib.private_endpoints_test

import data.lib.private_endpoints

workspace_id := "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"

connection(status) := {"properties": {"privateLinkServiceConnectionState": {"status": status}}}

workspace(connections) := {"id": workspace_id, "properties": {"privateEndpointConnections": connections}}

child := object.union(connection("Approved"), {"id": concat("/", [workspace_id, "privateEndpointConnections/p"])})

snapshot := {
	"by_id": {lower(child.id): child},
	"by_scope": {lower(workspace_id): {"microsoft.machinelearningservices/workspaces/privateendpointconnections": [lower(child.id)]}},
}

test_listed if {
	private_endpoints.listed(workspace([null, 7])) == [{
		"place": ["properties", "privateEndpointConnections", 1],
		"connection": 7,
	}]
	every stated in [null, "text", {}] {
		private_endpoints.listed(workspace(stated)) == []
	}
}

test_children if {
	private_endpoints.children(workspace([]), snapshot) == [{
		"place": ["properties", "privateEndpointConnections"],
		"connection": child,
	}]
	private_endpoints.children(workspace([]), {"by_id": {}, "by_scope": {}}) == []
}

test_approved if {
	private_endpoints.is_approved(connection(" approved"))
	every other in [connection("Pending"), connection(7), {}, 7] {
		not private_endpoints.is_approved(other)
	}
}

test_unreadable if {
	every stated in [null, " ", [], [connection("Rejected"), connection(null), null]] {
		private_endpoints.unreadable(workspace(stated), private_endpoints.listed(workspace(stated))) == set()
	}
	private_endpoints.unreadable(workspace("text"), []) == {"/properties/privateEndpointConnections"}
	odd := workspace([7, connection("Open"), {"properties": []}])
	private_endpoints.unreadable(odd, private_endpoints.listed(odd)) == {
		"/properties/privateEndpointConnections/0",
		"/properties/privateEndpointConnections/1/properties/privateLinkServiceConnectionState/status",
		"/properties/privateEndpointConnections/2/properties",
	}
	entry := {"place": private_endpoints.place, "connection": connection(7)}
	private_endpoints.unreadable(workspace([]), [entry]) == {"/properties/privateEndpointConnections"}
}
