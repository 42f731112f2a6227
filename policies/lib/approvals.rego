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

# asked(resource, workspace, as_of): what approvals are compared with, computed once for all of them. The workspace is
# null when it is not in the snapshot; what is not stated is empty.
asked(resource, workspace, as_of) := {
	"workspace": _workspace(resource.id),
	"region": _region(_location(resource, workspace)),
	"moment": times.ordered(as_of),
}

# one_counts(approvals, positions, asked): whether one of the approvals at some positions lacks nothing. It is for one of
# the scopes that the workspace lies in, and is looked up by that.
one_counts(approvals, positions, asked) if {
	some depth in [2, 4, 8]
	scope := concat("/", array.concat([""], array.slice(asked.workspace, 0, depth)))
	some position in positions
	approval := approvals[position]
	is_string(approval.scope)
	ids.folded(approval.scope) == scope
	count(lacking(approval, asked)) == 0
}

# lacking(approval, asked): why an approval does not count, in a fixed order; empty when it does. One that lacks nothing
# but what is `open` may count.
lacking(approval, asked) := [lack |
	some lack in [
		_of_status(approval),
		_of_start(approval, asked),
		_of_end(approval, asked),
		_of_scope(approval, asked),
		_of_region(approval, asked),
	]
	lack != ""
]

unscoped := "a stated place of the workspace"

unplaced := "a stated region of the nodes"

# open: what may not be stated anywhere, and what is unknown because of it.
open := {
	unscoped: {"msg": "an approval is for a scope, and where the workspace lies is not stated", "path": "/id"},
	unplaced: {
		"msg": "an approval names a region, and that of the nodes is not stated",
		"path": "/properties/computeLocation",
	},
}

may_count(lacks) if {
	count(lacks) > 0
	every lack in lacks { lack in {unscoped, unplaced} }
}

_of_status(approval) := "" if {
	words.folded(approval.status) == "granted"
} else := "not granted"

_of_start(approval, asked) := "not yet in force" if {
	times.ordered(words.text(approval.grantedAt)) > asked.moment
} else := ""

_of_end(approval, asked) := "expired" if {
	times.ordered(words.text(approval.expiresAt)) <= asked.moment
} else := ""

# A subscription, a resource group or a workspace: the tenant is too wide, a single compute too narrow.
_of_scope(approval, asked) := lack if {
	outer := ids.segments(approval.scope)
	count(outer) in {2, 4, 8}
	lack := _of_segments(outer, asked.workspace)
} else := "another scope"

_of_segments(outer, workspace) := "" if {
	array.slice(workspace, 0, count(outer)) == outer
} else := unscoped if {
	ids.agree_perhaps(outer, workspace)
}

_of_region(approval, asked) := unplaced if {
	words.text(approval.region)
	asked.region == ""
} else := "another region" if {
	words.text(approval.region)
	_region(approval.region) != asked.region
} else := ""

_workspace(id) := parts if {
	parts := ids.segments(ids.workspace_id(id))
} else := []

# The nodes of a compute may be in another region than the workspace; what names none is in the workspace's.
_location(resource, workspace) := words.text(resource.properties.computeLocation) if {
	lower(resource.type) == computes.compute_type # nothing else has a `computeLocation`
} else := place if {
	place := words.text(resource.location)
} else := place if {
	place := words.text(workspace.location)
} else := ""

_region(name) := replace(lower(trim_space(name)), " ", "")
