# METADATA
# scope: package
# title: Registries are in more than one region
# description: >-
#   A registry in one region gives no models to anybody while that region is down.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-manage-registries]
# custom:
#   id: AML-REG-005
#   severity: low
#   judges: [Microsoft.MachineLearningServices/registries]
#   remediation: Add a region to `replication_locations` of the registry's YAML (`az ml registry update --file <file>`).
#   source: REG-05
#   since: 0.2.0
package registries.several_regions

import data.lib.locations
import data.lib.settings

deny contains {
	"msg": "the registry is in fewer than two regions",
	"path": settings.pointer(place),
	"actual": [region | some region in regions],
	"expected": "two regions",
} if {
	count(regions) < 2
	stated
	unlocated == []
}

unknown contains doubt

doubt := {"msg": "the regions of the registry are not a list", "path": pointer} if {
	pointer := settings.unreadable(input.resource, place, "array")
} else := {"msg": "the regions of the registry are not stated", "path": settings.pointer(place)} if {
	settings.at(input.resource, place) == null
}

unknown contains {
	"msg": "a region of the registry states no location",
	"path": settings.pointer(array.concat(place, [index, "location"])),
} if {
	count(regions) < 2
	some index in unlocated
}

unlocated := [index | some index, detail in stated; not region_of(detail)]

regions := {region | some detail in stated; region := region_of(detail)}

region_of(detail) := locations.folded(detail.location)

stated := list if {
	list := settings.at(input.resource, place)
	is_array(list)
}

place := ["properties", "regionDetails"]
