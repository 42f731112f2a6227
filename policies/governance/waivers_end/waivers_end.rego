# METADATA
# scope: package
# title: Waivers have an end date
# description: >-
#   A waiver without an end turns a risk that was accepted for some time into the rule. Exemptions of the category Mitigated
#   are not evaluated.
# related_resources: [https://learn.microsoft.com/azure/governance/policy/concepts/exemption-structure]
# custom:
#   id: AML-GOV-012
#   severity: medium
#   judges:
#     - type: Microsoft.Authorization/policyExemptions
#       where: {/properties/exemptionCategory: [Waiver]}
#   remediation: "Set an end: `az policy exemption update --name <name> --expires-on <time>`."
#   source: GOV-12
#   parameters:
#     longest_days: {type: integer, minimum: 1, maximum: 36500, default: 366, description: how many days from now on a
#       waiver may last}
#   monotone_in: {/properties/expiresOn: lower, "parameter:longest_days": lower}
#   since: 0.2.0
package governance.waivers_end

import data.lib.settings
import data.lib.times

deny contains {
	"msg": "the waiver has no end",
	"path": settings.pointer(place),
	"actual": null,
	"expected": {"at most days": input.parameters.longest_days},
} if {
	settings.is_unset(input.resource, place)
}

deny contains {
	"msg": "the waiver lasts longer than allowed",
	"path": settings.pointer(place),
	"actual": stated,
	"expected": {"at most days": input.parameters.longest_days},
} if {
	times.ordered(times.moment(stated)) > latest
}

unknown contains {"msg": "the end of the waiver is no moment with a time zone", "path": pointer} if {
	pointer := settings.unreadable(input.resource, place, "string")
}

unknown contains {"msg": "the end of the waiver is no moment with a time zone", "path": settings.pointer(place)} if {
	is_string(stated)
	not times.moment(stated)
}

latest := times.shifted(times.ordered(input.as_of), input.parameters.longest_days)

stated := settings.at(input.resource, place)

place := ["properties", "expiresOn"]
