# METADATA
# scope: package
# title: VM sizes are on the list
# description: >-
#   A list of VM sizes keeps costs, quotas and hardware to what an organization has agreed on. The policy is off while
#   `allowed_vm_sizes` is empty.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/concept-compute-target]
# custom:
#   id: AML-CMP-007
#   severity: medium
#   judges: [Microsoft.MachineLearningServices/workspaces/computes]
#   remediation: >-
#     Recreate the compute with a size of the list (`az ml compute create --size <size> ...`), or add the size to
#     `allowed_vm_sizes`.
#   source: CMP-07
#   parameters:
#     allowed_vm_sizes: {type: array, items: {type: string, pattern: '\S'}, default: [], description: "the VM sizes that
#       are allowed, compared without case; empty: not evaluated"}
#   since: 0.2.0
package compute.listed_sizes

import data.lib.computes
import data.lib.settings
import data.lib.words

# The type is read only where there is something to compare.
applies if {
	count(input.parameters.allowed_vm_sizes) > 0
	computes.kind(input.resource) in {"amlcompute", "computeinstance"}
}

deny contains {
	"msg": "the VM size is not on the list",
	"path": settings.pointer(place),
	"actual": stated,
	"expected": "a size of `allowed_vm_sizes`",
} if {
	size := words.folded(stated)
	not size in {words.folded(entry) | some entry in input.parameters.allowed_vm_sizes}
}

unknown contains {"msg": "no VM size is stated", "path": settings.pointer(place)} if {
	settings.is_unset(input.resource, place)
}

unknown contains {"msg": "the VM size is not text", "path": pointer} if {
	pointer := settings.unreadable(input.resource, place, "string")
}

stated := settings.at(input.resource, place)

place := ["properties", "properties", "vmSize"]
