# METADATA
# scope: package
# title: Data assets are fresh or archived
# description: >-
#   Data that has not changed for a long time is trained on by mistake, and costs and leaks as fresh data does. Archived
#   data assets are hidden from those who look for data.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-create-data-assets]
# custom:
#   id: AML-DAT-004
#   severity: low
#   judges: [Microsoft.MachineLearningServices/workspaces/data]
#   remediation: "Archive it: `az ml data archive --name <name> --workspace-name <workspace> --resource-group <group>`."
#   source: DAT-04
#   parameters:
#     stale_days: {type: integer, minimum: 0, default: 90, description: days after which unchanged data is stale}
#   monotone_in: {"parameter:stale_days": lower}
#   since: 0.2.0
package data_access.stale_data

import data.lib.settings
import data.lib.times

deny contains {
	"msg": "the data asset is stale and not archived",
	"path": settings.pointer(archived),
	"actual": {"isArchived": settings.at(input.resource, archived), "changed": settings.at(input.resource, changed)},
	"expected": {"isArchived": true, "or changed within days": input.parameters.stale_days},
} if {
	not is_archived
	not settings.unreadable_flag(input.resource, archived)
	times.ordered(times.moment(settings.at(input.resource, changed))) < times.shifted(times.ordered(input.as_of), 0 - input.parameters.stale_days)
}

unknown contains {"msg": "`isArchived` is neither true nor false", "path": pointer} if {
	pointer := settings.unreadable_flag(input.resource, archived)
}

unknown contains {"msg": "when the data asset was changed is not stated, or cannot be read", "path": settings.pointer(changed)} if {
	not is_archived
	not times.moment(settings.at(input.resource, changed))
}

is_archived if settings.flag(settings.at(input.resource, archived))

archived := ["properties", "isArchived"]

# Where it states when it was last changed, else when it was made.
changed := ["systemData", "createdAt"] if {
	settings.at(input.resource, ["systemData", "lastModifiedAt"]) == null
} else := ["systemData", "lastModifiedAt"]
