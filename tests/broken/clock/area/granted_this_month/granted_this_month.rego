# METADATA
# scope: package
# title: An approval is of this month
# description: >-
#   Broken on purpose: the header says that the clock is held against times that stand somewhere, and the rule looks at
#   months, which change at times that stand nowhere.
# custom:
#   id: BROKEN-CLOCK-1
#   severity: low
#   judges: [approval]
#   inspects: [/grantedAt]
#   when_absent: pass
#   remediation: Have it granted again.
#   clock: compared
package area.granted_this_month

deny contains {
	"msg": "the approval was not granted this month",
	"path": "/grantedAt",
	"actual": input.resource.grantedAt,
	"expected": "this month",
} if {
	is_string(input.resource.grantedAt)
	substring(input.resource.grantedAt, 0, 7) < substring(input.as_of, 0, 7)
}
