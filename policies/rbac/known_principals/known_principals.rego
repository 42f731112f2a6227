# METADATA
# scope: package
# title: Nobody unknown holds access
# description: >-
#   Access control "ensures that only authorized individuals have the ability to manage and interact with compute
#   resources". Every role assignment counts, whatever its role and scope. When principals are stated, one that is not
#   among them is unknown. Azure calls the type of a deleted principal `Unknown`.
# related_resources: [https://learn.microsoft.com/azure/role-based-access-control/troubleshooting]
# custom:
#   id: AML-RBAC-102
#   severity: high
#   judges: [Microsoft.Authorization/roleAssignments]
#   remediation:
#     text: >-
#       Remove the assignment (`az role assignment delete --ids <id>`), or state the principal under `principals` of the
#       snapshot. Where guests are allowed, set `allow_guests`.
#     patches: [{patch: [{op: remove, path: ""}], provided: [AML-GOV-006, AML-GOV-007, AML-GOV-008]}]
#   source: 002 "Role-Based Access Control (RBAC)"
#   parameters: {allow_guests: {type: boolean, default: false, description: whether guests may hold access}}
#   monotone_in: {"parameter:allow_guests": [true, false]}
#   since: 0.1.0
package rbac.known_principals

import data.lib.words

deny contains {
	"msg": faults[standing],
	"path": "/properties/principalId",
	"actual": input.resource.properties.principalId,
	"expected": "a principal of the directory: a member, a group or a service principal",
} if some standing in standings

unknown contains {"msg": doubts[standing], "path": "/properties/principalId"} if some standing in standings

faults := {"gone": "the principal is deleted or unknown", "guest": "a guest holds access"}
doubts := {
	"unnamed": "the assignment names no principal",
	"unstated": "the snapshot names no principals",
	"unread": "the snapshot is incomplete: the principal may exist",
	"unclear": "it is not stated whether the user is a guest",
}

standings := {"unnamed"} if {
	not principal
} else := {"gone"} if {
	stated_type == "unknown"
} else := {"unstated"} if {
	count(input.snapshot.principals) == 0
} else := {standing_of(input.snapshot.principals[position]) | some position in positions} if {
	positions := input.snapshot.by_principal[principal]
} else := {"unread"} if {
	count(input.snapshot.incomplete) > 0
} else := {"gone"}

standing_of(entry) := "gone" if {
	entry.deleted == true
} else := user_type(entry) if {
	not input.parameters.allow_guests
}

user_type(entry) := stated if {
	stated := words.folded(entry.userType)
	stated in {"guest", "member"}
} else := "unclear" if {
	type_of(entry) in {"user", "unknown"}
}

# Only a user can be a guest; what states no type has the one of the assignment, else counts as a user.
type_of(entry) := own if {
	own := words.folded(entry.type)
} else := stated_type if {
	stated_type
} else := "user"

principal := words.folded(input.resource.properties.principalId)
stated_type := words.folded(input.resource.properties.principalType)
