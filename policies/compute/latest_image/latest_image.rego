# METADATA
# scope: package
# title: A compute instance runs the latest image
# description: >-
#   The image of a running instance gets no security updates from Azure; only a new instance has the fixes of the latest
#   one. Azure states after deployment which image an instance has.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/concept-vulnerability-management]
# custom:
#   id: AML-CMP-006
#   severity: medium
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/computes
#       where: {/properties/computeType: [ComputeInstance]}
#   remediation: Recreate the instance (`az ml compute delete`, then `az ml compute create`), after its files are saved.
#   source: CMP-06
#   monotone_in: {/properties/properties/osImageMetadata/isLatestOsImageVersion: [false, true]}
#   since: 0.2.0
package compute.latest_image

import data.lib.settings

deny contains {
	"msg": "the image of the instance is not the latest",
	"path": settings.pointer(place),
	"actual": stated,
	"expected": true,
} if {
	settings.flag(stated) == false
}

unknown contains {"msg": "whether the image is the latest is not stated", "path": settings.pointer(place)} if {
	settings.is_unset(input.resource, place)
}

unknown contains {"msg": "`isLatestOsImageVersion` is neither true nor false", "path": pointer} if {
	pointer := settings.unreadable_flag(input.resource, place)
}

stated := settings.at(input.resource, place)

place := ["properties", "properties", "osImageMetadata", "isLatestOsImageVersion"]
