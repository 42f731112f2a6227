# METADATA
# scope: package
# title: A connection with a key is for one project and expires
# description: >-
#   A key that all projects of a hub share, or that never expires, spreads without a record. This
#   concerns connections that keep a key.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-connection]
# custom:
#   id: AML-DAT-202
#   severity: medium
#   judges: [Microsoft.MachineLearningServices/workspaces/connections]
#   remediation: >-
#     Create the connection again in its project, with `isSharedToAll` false and an `expiryTime`, and replace the key by
#     then; or use Microsoft Entra ID in place of the key.
#   source: DAT-202
#   parameters:
#     longest_days: {type: integer, minimum: 0, default: 365, description: how many days ahead a connection may expire}
#   monotone_in: {"parameter:longest_days": lower}
#   since: 0.2.0
package data_access.limited_connections

import data.lib.connections
import data.lib.settings
import data.lib.times
import data.lib.words

applies if not settings.word(settings.at(input.resource, connections.place), connections.keyless)

deny contains {
	"msg": "a connection with a key is shared to all projects",
	"path": settings.pointer(shared),
	"actual": settings.at(input.resource, shared),
	"expected": false,
} if {
	has_key
	settings.flag(settings.at(input.resource, shared))
}

deny contains {
	"msg": "a connection with a key does not expire",
	"path": settings.pointer(expiry),
	"actual": null,
	"expected": {"days ahead at most": input.parameters.longest_days},
} if {
	has_key
	settings.is_unset(input.resource, expiry)
}

deny contains {
	"msg": "a connection with a key has expired, or expires too late",
	"path": settings.pointer(expiry),
	"actual": settings.at(input.resource, expiry),
	"expected": {"days ahead at most": input.parameters.longest_days},
} if {
	has_key
	is_out_of_range(times.ordered(times.moment(settings.at(input.resource, expiry))), times.ordered(input.as_of))
}

unknown contains {
	"msg": "whether the connection keeps a key is not stated, or cannot be read",
	"path": settings.pointer(connections.place),
} if {
	not has_key
}

unknown contains {"msg": "`isSharedToAll` is neither true nor false", "path": pointer} if {
	pointer := settings.unreadable_flag(input.resource, shared)
}

unknown contains {"msg": "the expiry of the connection cannot be read", "path": settings.pointer(expiry)} if {
	not words.is_blank(settings.at(input.resource, expiry))
	not times.moment(settings.at(input.resource, expiry))
}

has_key if settings.word(settings.at(input.resource, connections.place), connections.keyed)

is_out_of_range(expires, now) if expires < now

is_out_of_range(expires, now) if expires > times.shifted(now, input.parameters.longest_days)

shared := ["properties", "isSharedToAll"]

expiry := ["properties", "expiryTime"]
