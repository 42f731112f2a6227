# METADATA
# scope: package
# title: Custom services of an instance are confined
# description: >-
#   A privileged container controls the machine that it runs on, and an image whose tag moves may run tomorrow what
#   was not reviewed today. The image of a custom service is fixed by a digest, or by a tag other than `latest`.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-create-compute-instance]
# custom:
#   id: AML-CMP-203
#   severity: high
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/computes
#       where: {/properties/computeType: [ComputeInstance]}
#   remediation: >-
#     Recreate the instance with a custom service that is not privileged and that names its image with a version or a
#     digest.
#   source: CMP-203
#   since: 0.2.0
package compute.confined_services

import data.lib.images
import data.lib.settings
import data.lib.words

applies if not settings.at(input.resource, place) in {null, []}

applies if settings.unreadable(input.resource, place, "array")

deny contains {
	"msg": "the custom service is privileged",
	"path": settings.pointer(array.concat(place, array.concat([index], privileged_place))),
	"actual": settings.at(service, privileged_place),
	"expected": false,
} if {
	some index, service in services
	settings.flag(settings.at(service, privileged_place))
}

deny contains {
	"msg": "the image of the custom service is not fixed by a digest or a tag other than latest",
	"path": settings.pointer(array.concat(place, array.concat([index], image_place))),
	"actual": reference,
	"expected": "a digest, or a tag other than `latest`",
} if {
	some index, service in services
	reference := words.text(settings.at(service, image_place))
	not is_pinned(trim_space(reference))
}

unknown contains {"msg": "the custom services are not a list", "path": pointer} if {
	pointer := settings.unreadable(input.resource, place, "array")
}

unknown contains {"msg": "the custom service is not an object", "path": settings.pointer(array.concat(place, [index]))} if {
	some index, service in stated
	not is_object(service)
}

unknown contains {
	"msg": "whether the custom service is privileged cannot be read",
	"path": concat("", [settings.pointer(array.concat(place, [index])), pointer]),
} if {
	some index, service in services
	pointer := settings.unreadable_flag(service, privileged_place)
}

unknown contains {
	"msg": "the image of the custom service is missing or not text",
	"path": settings.pointer(array.concat(place, array.concat([index], image_place))),
} if {
	some index, service in services
	not words.text(settings.at(service, image_place))
}

# The services by their position, without those that are no object.
services[index] := service if {
	some index, service in stated
	is_object(service)
}

stated := list if {
	list := settings.at(input.resource, place)
	is_array(list)
}

# The reference is of an image, or of a version of an environment.
is_pinned(reference) if images.is_pinned(trim_prefix(lower(reference), "azureml:"))

is_pinned(reference) if regex.match(`(?i)/versions/[^/]+$`, reference)

place := ["properties", "properties", "customServices"]

privileged_place := ["docker", "privileged"]

image_place := ["image", "reference"]
