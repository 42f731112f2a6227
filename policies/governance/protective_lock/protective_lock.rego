# METADATA
# scope: package
# title: A lock protects the workspace
# description: >-
#   A workspace that is deleted takes its jobs, models and endpoints with it. A lock on it, its resource group or its
#   subscription prevents that, and so does one that makes it read-only.
# related_resources: [https://learn.microsoft.com/azure/azure-resource-manager/management/lock-resources]
# custom:
#   id: AML-GOV-003
#   severity: medium
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   remediation:
#     text: >-
#       Create a lock: `az lock create --name <name> --resource <id> --lock-type CanNotDelete`.
#   source: GOV-03
#   since: 0.2.0
package governance.protective_lock

import data.lib.ids
import data.lib.settings

deny contains {
	"msg": "no lock protects the workspace",
	"path": "/id",
	"actual": [lock.id | some lock in locks],
	"expected": ["CanNotDelete", "ReadOnly"],
} if {
	not is_protected
	count(doubts) == 0
}

unknown contains {"msg": doubt, "path": "/id"} if {
	not is_protected
	some doubt in doubts
}

# A resource group may have many locks, of which one is enough.
is_protected if {
	some scope in ids.scopes(input.resource.id)
	some id in input.snapshot.by_extended[scope][lock_type]
	settings.word(input.snapshot.by_id[id].properties.level, {"cannotdelete", "readonly"})
}

doubts contains "the level of a lock cannot be read" if {
	some lock in locks
	not settings.word(settings.at(lock, ["properties", "level"]), {"notspecified"})
}

doubts contains "the snapshot is incomplete: a lock may exist" if count(input.snapshot.incomplete) > 0

locks := [input.snapshot.by_id[id] |
	some scope in ids.scopes(input.resource.id)
	some id in input.snapshot.by_extended[scope][lock_type]
]

lock_type := "microsoft.authorization/locks"
