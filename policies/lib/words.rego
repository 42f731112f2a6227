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
folded(value) := lower(trimmed) if {
	is_string(value)
	trimmed := trim_space(value)
	trimmed != ""
}

# tag(document, name): the value of the tag of that name, compared without case; undefined when none is stated (absent,
# null or blank). The tags of a job and of other assets are in `properties.tags`. A value that is not a string is
# returned as it is: it is stated, and no word is equal to it.
tag(document, name) := value if {
	value = _stated(document.tags, lower(name))[0]
} else := value if {
	value = _stated(document.properties.tags, lower(name))[0]
}

_stated(holder, name) := [value |
	is_object(holder)
	some key, value in holder
	lower(key) == name
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
	_flag(workspace) == "true"
	reason := "`hbiWorkspace` of the workspace is true"
} else := _regulated(classification(resource, workspace), workspace, classifications)

_regulated(stated, workspace, classifications) := {"decided": true, "reason": reason} if {
	stated.value != ""
	folded(stated.value) in {folded(entry) | some entry in classifications}
	reason := concat("", ["the tag `data-classification` of the ", stated.of, " is a regulated one"])
} else := {"decided": null, "reason": reason} if {
	workspace == null
	reason := "the workspace is not in the snapshot, so it is not known whether the work is regulated"
} else := {"decided": null, "reason": reason} if {
	_flag(workspace) == "unreadable"
	reason := "`hbiWorkspace` of the workspace is neither true nor false"
} else := {"decided": null, "reason": "the tag `data-classification` is not text"} if {
	not is_string(stated.value)
} else := {"decided": false, "reason": "no flag and no tag says so"}

# classification(resource, workspace): {"value", "of"} of the tag that counts; "" of nobody when none is stated.
classification(resource, workspace) := {"value": value, "of": "resource"} if {
	value = tag(resource, classification_tag)
} else := {"value": value, "of": "workspace"} if {
	value = tag(workspace, classification_tag)
} else := {"value": "", "of": "nobody"}

# The flag as text; absent and null are false.
_flag(workspace) := "false" if {
	workspace.properties.hbiWorkspace == false
} else := "true" if {
	workspace.properties.hbiWorkspace == true
} else := stated if {
	stated = folded(workspace.properties.hbiWorkspace)
	stated in {"true", "false"}
} else := "unreadable" if {
	workspace.properties.hbiWorkspace != null
} else := "false"

# stage(resource, workspace): {"name": dev|test|staging|production, "reason": which tag says so}. What is unknown or
# not stated counts as production, so that a missing tag never loosens a policy.
stage(resource, workspace) := {"name": _stage(stated.value), "reason": reason} if {
	stated = _stage_tag(resource)
	reason := concat("", ["tag `", stated.tag, "` of the resource"])
} else := {"name": _stage(stated.value), "reason": reason} if {
	stated = _stage_tag(workspace)
	reason := concat("", ["tag `", stated.tag, "` of the workspace"])
} else := {"name": "production", "reason": "no tag says otherwise"}

_stage_tag(document) := [{"value": value, "tag": name} | some name in stage_tags; value = tag(document, name)][0]

_stage(value) := stated if {
	stated = folded(value)
	stated in stages
} else := "production"
