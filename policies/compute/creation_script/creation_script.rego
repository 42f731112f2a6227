# METADATA
# scope: package
# title: A compute instance runs the mandated creation script
# description: >-
#   The creation script sets up on every instance what an organization demands, such as certificates and agents. What
#   `creation_script` states is compared: the source without case, the data exactly. The policy is off while it is empty.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-customize-compute-instance]
# custom:
#   id: AML-CMP-012
#   severity: low
#   judges: [Microsoft.MachineLearningServices/workspaces/computes]
#   remediation: >-
#     Recreate the instance with the script (`setup_scripts.creation_script` in its YAML, then `az ml compute create`).
#   source: CMP-12
#   parameters:
#     creation_script: {type: object, additionalProperties: false, properties: {source: {type: string, pattern: '\S'},
#       data: {type: string, pattern: '\S'}}, default: {}, description: "the `scriptSource` and `scriptData` of the script;
#       empty: not evaluated"}
#   since: 0.2.0
package compute.creation_script

import data.lib.computes
import data.lib.settings
import data.lib.words

# The type is read only where there is something to compare.
applies if {
	count(demanded) > 0
	computes.kind(input.resource) in {"computeinstance"}
}

deny contains {
	"msg": "the creation script is not the mandated one",
	"path": settings.pointer(place(key)),
	"actual": settings.at(input.resource, place(key)),
	"expected": "what `creation_script` states",
} if {
	some key, wanted in demanded
	not settings.unreadable(input.resource, place(key), "string")
	not is_masked(key)
	not is_equal(key, wanted)
}

unknown contains {"msg": "the creation script is not text", "path": pointer} if {
	some key, _ in demanded
	pointer := settings.unreadable(input.resource, place(key), "string")
}

unknown contains {"msg": "the creation script is masked", "path": settings.pointer(place(key))} if {
	some key, _ in demanded
	is_masked(key)
}

demanded[key] := wanted if {
	some key, name in {"scriptSource": "source", "scriptData": "data"}
	wanted := words.text(input.parameters.creation_script[name])
}

is_equal("scriptSource", wanted) if words.folded(settings.at(input.resource, place("scriptSource"))) == words.folded(wanted)

is_equal("scriptData", wanted) if settings.at(input.resource, place("scriptData")) == wanted

# `snapshot collect` masks what looks like a secret.
is_masked(key) if settings.at(input.resource, place(key)) == "***"

place(key) := ["properties", "properties", "setupScripts", "scripts", "creationScript", key]
