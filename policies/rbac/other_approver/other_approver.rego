# METADATA
# scope: package
# title: An approval is not given by the person who asked for it
# description: >-
#   "To use a restricted series, contact support and request a quota increase": a second person must decide. Access control
#   assigns "specific permissions and access levels to users and groups"; `approver_roles` states which roles may approve.
#   A request without a decision is not evaluated.
# custom:
#   id: AML-RBAC-104
#   severity: high
#   judges: [approval]
#   remediation:
#     text: >-
#       Have a second person approve it, and state them as `approvedBy`: with `approver_roles`, by the object id that holds one
#       of these roles at or above the scope of the approval.
#   source: 002 "Role-Based Access Control (RBAC)"; 001 "Supported VM series and sizes"
#   parameters:
#     approver_roles:
#       type: array
#       items: {type: string, pattern: '\S'}
#       default: []
#       description: names or ids of roles; with none, anybody else may approve
#   since: 0.1.0
package rbac.other_approver

import data.lib.approvers
import data.lib.words

applies if approver

applies if words.folded(input.resource.status) in {"granted", "revoked"}

deny contains {
	"msg": "the approval was given by the person who asked for it",
	"path": "/approvedBy",
	"actual": input.resource.approvedBy,
	"expected": "a person other than the requester",
} if {
	approver == words.folded(input.resource.requestedBy)
}

deny contains {
	"msg": "the approver holds no approver role",
	"path": "/approvedBy",
	"actual": input.resource.approvedBy,
	"expected": input.parameters.approver_roles,
} if {
	holds_role == false
}

unknown contains {"msg": "whether the approver holds an approver role is not known", "path": "/approvedBy"} if {
	holds_role == null
}

unknown contains {"msg": "the approval does not state who gave it", "path": "/approvedBy"} if not approver

unknown contains {"msg": "the approval does not state who asked for it", "path": "/requestedBy"} if {
	not words.folded(input.resource.requestedBy)
}

approver := words.folded(input.resource.approvedBy)

holds_role := approvers.holds(approver, input.resource.scope, input.parameters.approver_roles, input.snapshot) if {
	count(input.parameters.approver_roles) > 0
}
