# METADATA
# description: >-
#   Twins of a workspace: workspaces in another region with the same value of a tag, which take over where a region
#   fails. `policies/recovery/twin_quota` does the same in Python.
package lib.twins

import data.lib.networks
import data.lib.words

workspace_type := "microsoft.machinelearningservices/workspaces"

# is_evaluated(workspace): whether a workspace needs a twin: it is of production, and no project, which has its hub's.
is_evaluated(workspace) if {
	not networks.is_project(workspace)
	words.stage(workspace, null).name == "production"
}

# of(workspace, name, snapshot): {"certain", "perhaps"}: its twins by the tag of that name, and the workspaces that may be
# twins because a region or tag cannot be read. None if the workspace has no such tag, or one that is not text.
of(workspace, name, snapshot) := {
	"certain": [other | some other in alike; _is_elsewhere(location(other), location(workspace))],
	"perhaps": array.concat(
		[other | some other in alike; not _is_placed([location(other), location(workspace)])],
		_tagged(false, name, workspace, snapshot),
	),
} if {
	key := words.folded(words.tag(workspace, name))
	alike := _tagged(key, name, workspace, snapshot)
} else := {"certain": [], "perhaps": []}

_tagged(key, name, workspace, snapshot) := [other |
	some other in snapshot.by_type[workspace_type]
	_key(other, name) == key
	lower(other.id) != lower(workspace.id)
	not networks.is_project(other)
]

# The value of a tag for comparing: "" for none, and false for one that is not text.
_key(workspace, name) := words.folded(words.tag(workspace, name)) if {
	is_string(words.tag(workspace, name))
} else := false if {
	words.tag(workspace, name) != null
} else := ""

_is_elsewhere(one, other) if {
	_is_placed([one, other])
	one != other
}

_is_placed(locations) if every location in locations {
	location != ""
}

# location(resource): its region for comparing, "" where it states none.
location(resource) := replace(folded, " ", "") if {
	folded := words.folded(resource.location)
} else := ""
