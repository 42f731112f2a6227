# METADATA
# scope: package
# title: Environment images are pinned
# description: >-
#   An image without a tag, or with the tag `latest`, can change at any time, so runs cannot be reproduced and what
#   was scanned is not what runs. Archived and curated environments are not evaluated.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/concept-environments]
# custom:
#   id: AML-JOB-201
#   severity: medium
#   judges: [Microsoft.MachineLearningServices/workspaces/environments/versions]
#   remediation:
#     text: >-
#       Create a version of the environment whose `image` has a tag that is never moved, or better a digest
#       (`<image>@sha256:...`), and archive this one.
#   source: JOB-201
#   parameters:
#     require_digest: {type: boolean, default: false, description: whether only a digest pins an image}
#   since: 0.2.0
package jobs.pinned_images

import data.lib.images
import data.lib.settings
import data.lib.words

applies if {
	not is_archived
	not is_curated
	is_imaged
}

is_archived if settings.flag(settings.at(input.resource, archived))

is_curated if settings.word(settings.at(input.resource, type), types) == "curated"

is_imaged if settings.at(input.resource, place) != null

is_imaged if settings.unreadable(input.resource, place, "string")

deny contains {
	"msg": "the image is not pinned",
	"path": settings.pointer(place),
	"actual": image,
	"expected": {true: "a digest", false: "a digest, or a tag other than `latest`"}[input.parameters.require_digest],
} if {
	not is_pinned
	not settings.unreadable_flag(input.resource, archived)
	not settings.unreadable_word(input.resource, type, types)
}

unknown contains {"msg": "the image is not text", "path": settings.unreadable(input.resource, place, "string")}

unknown contains {"msg": "`isArchived` is neither true nor false", "path": pointer} if {
	pointer := settings.unreadable_flag(input.resource, archived)
}

unknown contains {"msg": "the type of the environment is not a known value", "path": pointer} if {
	pointer := settings.unreadable_word(input.resource, type, types)
}

is_pinned if images.has_digest(image)

is_pinned if {
	not input.parameters.require_digest
	images.is_pinned(image)
}

image := words.text(settings.at(input.resource, place))

place := ["properties", "image"]
archived := ["properties", "isArchived"]
type := ["properties", "environmentType"]
types := {"usercreated", "curated"}
