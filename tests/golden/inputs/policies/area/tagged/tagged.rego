# METADATA
# scope: package
# title: A quarter is named until it ends
# custom:
#   id: G-TAG-002
#   severity: medium
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   inspects: [/tags/until]
#   when_absent: {/tags/until: unknown}
#   parameters:
#     grace: {type: integer, minimum: 0, default: 0, description: days after the date that still pass}
#   since: 0.1.0
package area.tagged

until := input.resource.tags.until

unknown contains {"msg": "no date is stated", "path": "/tags/until"} if not until

deny contains {"msg": "the date is over", "path": "/tags/until", "actual": until, "expected": "a later date"} if {
	time.parse_rfc3339_ns(until) + (((input.parameters.grace * 24) * 3600) * 1000000000) < time.parse_rfc3339_ns(input.as_of)
}
