# METADATA
# description: >-
#   The words that policies share: tags, regulated and stage. `policyeng.facts.words` says the same in Python. Here and
#   in the other libraries two habits keep the engines in agreement: what may be undefined is bound with `=` (the
#   embedded engine lets `:=` bind nothing), and is no argument of a call inside a `not` (OPA evaluates it outside).
package lib.words

# The tag that says how sensitive the work on a resource is.
classification_tag := "data-classification"

# The tags that say the stage, the first one that is stated decides.
stage_tags := ["environment", "stage"]

stages := {"dev", "test", "staging", "production"}

# text(value): the value if it is a string with more than white space in it, undefined otherwise.
text(value) := value if {
	is_string(value)
	trim_space(value) != ""
}

# folded(value): a text without case and without white space around it, for comparing.
folded(value) := lower(trim_space(text(value)))

# tag(document, name): the value of the tag of that name, compared without case; undefined when none is stated (absent,
# null or blank). The tags of a job and of other assets are in `properties.tags`. A value that is not a string is
# returned as it is: it is stated, and no word is equal to it.
tag(document, name) := array.concat(
	[value | some value in _stated(document.tags, name)],
	[value | some value in _stated(document.properties.tags, name)],
)[0]

_stated(holder, name) := [value |
	is_object(holder)
	some key, value in holder
	lower(key) == lower(name)
	not _blank(value)
]

_blank(null) := true

_blank(value) if {
	is_string(value)
	trim_space(value) == ""
}

# regulated(resource, workspace, classifications): {"decided": true|false|null, "reason": why}. It is regulated by
# `hbiWorkspace` of the workspace, or by the tag of the resource, else of the workspace. `decided` is null when nothing
# makes it regulated and something that could is missing or unreadable. `workspace` is null when it is not in the
# snapshot.
regulated(resource, workspace, classifications) := {"decided": true, "reason": reason} if {
	reason = _regulating(resource, workspace, classifications)[0]
} else := {"decided": null, "reason": reason} if {
	reason = _undeciding(resource, workspace)[0]
} else := {"decided": false, "reason": "no flag and no tag says so"}

_regulating(resource, workspace, classifications) := array.concat(
	["`hbiWorkspace` of the workspace is true" | _flag(workspace) == "true"],
	[reason |
		reason = {
			"resource": "the tag `data-classification` of the resource is a regulated one",
			"workspace": "the tag `data-classification` of the workspace is a regulated one",
		}[classification(resource, workspace).of]
		folded(classification(resource, workspace).value) in {folded(entry) | some entry in classifications}
	],
)

_undeciding(resource, workspace) := array.concat(
	["the workspace is not in the snapshot, so it is not known whether the work is regulated" | workspace == null],
	array.concat(
		["`hbiWorkspace` of the workspace is neither true nor false" | _flag(workspace) == "unreadable"],
		["the tag `data-classification` is not text" | not is_string(classification(resource, workspace).value)],
	),
)

# classification(resource, workspace): {"value", "of"} of the tag that counts; "" of nobody when none is stated.
classification(resource, workspace) := {"value": value, "of": "resource"} if {
	value = tag(resource, classification_tag)
} else := {"value": value, "of": "workspace"} if {
	value = tag(workspace, classification_tag)
} else := {"value": "", "of": "nobody"}

# The flag as text; absent and null are false.
_flag(workspace) := "false" if {
	object.get(_object(workspace), ["properties", "hbiWorkspace"], null) in {null, false}
} else := "true" if {
	workspace.properties.hbiWorkspace == true
} else := stated if {
	stated = folded(workspace.properties.hbiWorkspace)
	stated in {"true", "false"}
} else := "unreadable"

_object(value) := value if is_object(value)

else := {}

# stage(resource, workspace): {"name": dev|test|staging|production, "reason": which tag says so}. What is unknown or
# not stated counts as production, so that a missing tag never loosens a policy.
stage(resource, workspace) := {"name": _stage(stated.value), "reason": reason} if {
	stated = _stages_stated(resource, workspace)[0]
	reason := concat("", ["tag `", stated.tag, "` of the ", stated.of])
} else := {"name": "production", "reason": "no tag says otherwise"}

_stages_stated(resource, workspace) := [{"value": value, "tag": name, "of": of} |
	some of in ["resource", "workspace"]
	some name in stage_tags
	value = tag({"resource": resource, "workspace": workspace}[of], name)
]

_stage(value) := stated if {
	stated = folded(value)
	stated in stages
} else := "production"
