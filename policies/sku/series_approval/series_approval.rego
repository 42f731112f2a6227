# METADATA
# scope: package
# title: A restricted series carries a valid approval
# description: >-
#   "Some VM series are restricted. To use a restricted series, contact support and request a quota increase for the
#   series." The approval must be granted, in force, for the scope of the workspace, and for the region of the nodes if it names one.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-manage-quotas]
# custom:
#   id: AML-SKU-101
#   severity: high
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/computes
#       where: {/properties/computeType: [AmlCompute, ComputeInstance]}
#     - type: Microsoft.MachineLearningServices/workspaces/onlineEndpoints/deployments
#   remediation:
#     text: >-
#       If the denial gives a retirement date, the series can no longer be requested; recreate the compute with a size
#       of the series that it names. Otherwise request the series from Azure support (Help + support > New support
#       request > Service and subscription limits > Machine Learning) and state the grant under `approvals` of the
#       snapshot, or choose a size of a series without restriction.
#   source: '001 "Supported VM series and sizes"'
#   parameters:
#     extra_series:
#       type: object
#       additionalProperties: {type: object, required: [category, restricted, source], additionalProperties: false,
#         properties: {category: {type: string, pattern: '\S'}, restricted: {type: boolean}, source: {type: string,
#           pattern: '\S'}, supported_by: {type: array, items: {type: string, enum: [cluster, instance]}}}}
#       default: {}
#       description: further series by name, and whether each is restricted; the tables stay as they are
#     vendor_series:
#       type: boolean
#       default: true
#       description: whether the series that the vendor lists today (`facts/offered_series`) count
#   since: 0.1.0
package sku.series_approval

import data.lib.approvals
import data.lib.computes
import data.lib.sizes

applies if computes.kind(input.resource)

deny contains {
	"msg": "the series needs an approval that is in force here",
	"path": computes.size_pointer(input.resource),
	"actual": {"series": series, "approvals": near},
	"expected": "an approval of the series: granted, in force, at or above the workspace, for the region",
} if {
	is_unapproved
	not retired
}

deny contains {
	"msg": "the size is retired, so its series can no longer be requested",
	"path": computes.size_pointer(input.resource),
	"actual": {"size": computes.size(input.resource), "series": series, "retired on": retired.date, "approvals": near},
	"expected": {"move to": sizes.successor(retired)},
} if {
	is_unapproved
}

unknown contains approvals.open[lack] if {
	is_restricted
	not is_approved
	some lack in open
}

unknown contains {"msg": "the size is not in the catalogue, so its series is not known", "path": path} if {
	not series
	path := computes.size_pointer(input.resource)
}

series := sizes.series(computes.size(input.resource))
is_restricted if sizes.needs_approval(series, input.parameters)

is_approved if approvals.one_counts(input.snapshot.approvals, input.snapshot.by_series[lower(series)], asked)

is_unapproved if {
	is_restricted
	not is_approved
	count(open) == 0
}

retired := sizes.retirement(computes.size(input.resource), input.as_of)

# In the order of the snapshot, which is by id.
near := [{"id": approval.id, "lacks": approvals.lacking(approval, asked)} | some approval in of_series]

of_series := approvals.of_series({"approvals": input.snapshot.approvals, "by_series": input.snapshot.by_series}, series)

# What the approvals that may count lack.
open := {lack | some approval in near; approvals.may_count(approval.lacks); some lack in approval.lacks}

asked := approvals.asked(input.resource, input.workspace, input.as_of)
