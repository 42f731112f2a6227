# METADATA
# description: What an approval of a VM series must have to count for a resource.
package lib.approvals

import data.lib.computes
import data.lib.ids
import data.lib.times
import data.lib.words

# of_series(snapshot, series): the approvals of a series, in the order of the snapshot.
of_series(snapshot, series) := [snapshot.approvals[position] |
	some position in snapshot.by_series[lower(series)]
]

# lacking(approval, asked): why an approval does not count, in a fixed order; empty when it does. `asked` is
# {"resource", "workspace", "as_of"}, the workspace null when it is not in the snapshot. One that lacks nothing but what
# is `open` may count.
lacking(approval, asked) := [lack |
	some lack in ["not granted", "not yet in force", "expired", "another scope", unscoped, "another region", unplaced]
	_lacks(approval, asked, lack)
]

unscoped := "a stated place of the workspace"

unplaced := "a stated region of the nodes"

# open: what nobody states, and what is unknown for it.
open := {
	unscoped: {"msg": "an approval is for a scope, and where the workspace lies is not stated", "path": "/id"},
	unplaced: {
		"msg": "an approval names a region, and that of the nodes is not stated",
		"path": "/properties/computeLocation",
	},
}

may_count(lacks) if {
	count(lacks) > 0
	every lack in lacks { lack in object.keys(open) }
}

_lacks(approval, _, "not granted") if not _is_granted(approval)

_lacks(approval, asked, "not yet in force") if {
	times.ordered(words.text(approval.grantedAt)) > times.ordered(asked.as_of)
}

_lacks(approval, asked, "expired") if {
	times.ordered(words.text(approval.expiresAt)) <= times.ordered(asked.as_of)
}

_lacks(approval, asked, "another scope") if {
	not _covers(approval, asked)
	not _may_cover(approval, asked)
}

_lacks(approval, asked, lack) if {
	lack == unscoped
	_may_cover(approval, asked)
}

_lacks(approval, asked, "another region") if {
	words.text(approval.region)
	place = _location(asked)
	_region(approval.region) != _region(place)
}

_lacks(approval, asked, lack) if {
	lack == unplaced
	words.text(approval.region)
	not _location(asked)
}

_is_granted(approval) if words.folded(approval.status) == "granted"

# A subscription, a resource group or a workspace: the tenant is too wide, a single compute too narrow.
_covers(approval, asked) if {
	count(ids.segments(approval.scope)) in {2, 4, 8}
	ids.is_at_or_under(ids.workspace_id(asked.resource.id), approval.scope)
}

_may_cover(approval, asked) if {
	count(ids.segments(approval.scope)) in {2, 4, 8}
	ids.may_hold(approval.scope, ids.workspace_id(asked.resource.id))
}

# The nodes of a compute may be in another region than the workspace; what names none is in the workspace's.
_location(asked) := place if {
	lower(asked.resource.type) == computes.compute_type # nothing else has a `computeLocation`
	place = words.text(asked.resource.properties.computeLocation)
} else := place if {
	place = words.text(asked.resource.location)
} else := words.text(asked.workspace.location)

_region(name) := replace(words.folded(name), " ", "")
