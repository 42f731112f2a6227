# METADATA
# description: The private endpoint connections of resources.
package lib.private_endpoints

import data.lib.ids
import data.lib.settings
import data.lib.words

place := ["properties", "privateEndpointConnections"]

_status := ["properties", "privateLinkServiceConnectionState", "status"]

_statuses := {"approved", "pending", "rejected", "disconnected", "timeout"}

# listed(resource), children(workspace, snapshot): the connections that a resource states itself, and those of a workspace
# that are resources of their own: each {"place": where the resource states it, "connection"}. The place of a resource is
# the list that it belongs to.
listed(resource) := [{"place": array.concat(place, [index]), "connection": connection} |
	stated := object.get(resource, place, null)
	is_array(stated)
	some index, connection in stated
	connection != null
]

children(workspace, snapshot) := [{"place": place, "connection": snapshot.by_id[id]} |
	some id in snapshot.by_scope[ids.folded(workspace.id)]["microsoft.machinelearningservices/workspaces/privateendpointconnections"]
]

is_approved(connection) if {
	is_object(connection)
	words.folded(object.get(connection, _status, null)) == "approved"
}

# unreadable(resource, entries): the JSON Pointers of what keeps it from being known which connections are approved.
unreadable(resource, entries) := {pointer | pointer := settings.unreadable(resource, place, "array")} | {pointer |
	some entry in entries
	pointer := _unreadable(entry)
}

_unreadable(entry) := settings.pointer(entry.place) if {
	not is_object(entry.connection)
} else := settings.pointer(entry.place) if {
	entry.place == place # a resource of its own
	settings.unreadable_word(entry.connection, _status, _statuses)
} else := concat("", [
	settings.pointer(entry.place),
	settings.unreadable_word(entry.connection, _status, _statuses),
])
