# METADATA
# scope: package
# title: A compute instance is closed to SSH from outside
# description: >-
#   An open SSH port lets anyone on the internet try to log in to the instance. Azure's default is Disabled.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-create-compute-instance]
# custom:
#   id: AML-CMP-201
#   severity: medium
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/computes
#       where: {/properties/computeType: [ComputeInstance]}
#   remediation: Recreate the instance with `ssh_public_access_enabled` false in its YAML (`az ml compute create`).
#   source: CMP-201
#   monotone_in: {/properties/properties/sshSettings/sshPublicAccess: [Enabled, Disabled]}
#   since: 0.2.0
package compute.no_public_ssh

import data.lib.settings

deny contains {
	"msg": "the instance is open to SSH from the public network",
	"path": settings.pointer(place),
	"actual": stated,
	"expected": "Disabled",
} if {
	settings.word(stated, words) == "enabled"
}

unknown contains {"msg": "the public access to SSH is neither Enabled nor Disabled", "path": pointer} if {
	pointer := settings.unreadable_word(input.resource, place, words)
}

words := {"enabled", "disabled"}

stated := settings.at(input.resource, place)

place := ["properties", "properties", "sshSettings", "sshPublicAccess"]
