# METADATA
# description: >-
#   The words that policies share: tags, regulated and stage. `policyeng.facts.words` does the same in Python.
package lib.words

stages := {"dev", "test", "staging", "production"}

# The spellings of the tag that states how sensitive the work on a resource is, in lower case.
classification_tags := {"data-classification", "data_classification", "data classification", "dataclassification"}

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
# null or blank). Jobs and other assets of a workspace have theirs in `properties.tags`, all other resources never.
# A value that is not a string is returned as it is: it is stated, and no word is equal to it.
tag(document, name) := _stated(document, {lower(name)})[0]

# is_blank(value): null, or a text with nothing but white space in it.
is_blank(null) := true

is_blank(value) if {
	is_string(value)
	trim_space(value) == ""
}

# shown(value): a value as a reason shows it. Of a long text it shows only the length: reports mask texts that contain a
# secret, and would not recognize a part of one.
shown(value) := concat("", ["`", trimmed, "`"]) if {
	is_string(value)
	trimmed := trim_space(value)
	count(trimmed) <= 60
} else := concat("", ["a text of ", format_int(count(trim_space(value)), 10), " characters"]) if {
	is_string(value)
} else := "not text"

# classifications(document): the values of its own tag that states how sensitive the work is, in all spellings of the tag.
classifications(document) := _stated(document, classification_tags)

# regulated(resource, workspace, sensitive): {"decided": true|false|null, "reason": why}. It is regulated by
# `hbiWorkspace` of the workspace, or by the tag of the resource, else of the workspace: by any of its values, where it is
# there in several spellings. `decided` is null when nothing makes it regulated and something that could is missing or
# unreadable. `workspace` is null when it is not in the snapshot.
regulated(resource, workspace, sensitive) := {"decided": true, "reason": reason} if {
	workspace.properties.hbiWorkspace # most workspaces state false
	_flag(workspace.properties.hbiWorkspace) == "true"
	reason := "`hbiWorkspace` of the workspace is true"
} else := _by_tag(_classification(resource, workspace), workspace, sensitive)

_by_tag(stated, workspace, sensitive) := {"decided": true, "reason": _tag_reason("data-classification", stated.of, value)} if {
	count(stated.values) > 0
	known := {lower(trim_space(entry)) | some entry in sensitive}
	value := [each | some each in stated.values; folded(each) in known][0]
} else := {"decided": null, "reason": reason} if {
	workspace == null
	reason := "the workspace is not in the snapshot, so it is not known whether the work is regulated"
} else := {"decided": null, "reason": reason} if {
	workspace.properties.hbiWorkspace
	_flag(workspace.properties.hbiWorkspace) == "unreadable"
	reason := "`hbiWorkspace` of the workspace is neither true nor false"
} else := {"decided": null, "reason": _tag_reason("data-classification", stated.of, value)} if {
	value := [each | some each in stated.values; not is_string(each)][0]
} else := {"decided": false, "reason": "no flag and no tag states so"}

_tag_reason(name, of, value) := concat("", ["the tag `", name, "` of the ", of, " is ", shown(value)])

# The values of the tag that count, and whose they are; no values when none is stated.
_classification(resource, workspace) := {"values": values, "of": "resource"} if {
	values := classifications(resource)
	count(values) > 0
} else := {"values": values, "of": "workspace"} if {
	values := classifications(workspace)
	count(values) > 0
} else := {"values": [], "of": "neither"}

# The values of the tags with these names in lower case, in the order of the names; see `tag` for where tags are.
_stated(document, names) := array.concat(_values(document, names), _values(document.properties, names)) if {
	not _has_tags_outside(document)
	document.properties.tags
} else := _values(document, names)

_has_tags_outside(document) if not startswith(lower(document.type), "microsoft.machinelearningservices/workspaces/")

_has_tags_outside(document) if {
	lower(document.type) in {
		"microsoft.machinelearningservices/workspaces/computes",
		"microsoft.machinelearningservices/workspaces/onlineendpoints",
		"microsoft.machinelearningservices/workspaces/onlineendpoints/deployments",
		"microsoft.machinelearningservices/workspaces/batchendpoints",
		"microsoft.machinelearningservices/workspaces/batchendpoints/deployments",
	}
}

# Of the other tags only the names are read: what they are makes no difference.
_values(holder, names) := [value |
	is_object(holder.tags)
	some key in object.keys(holder.tags)
	lower(key) in names
	value := holder.tags[key]
	not is_blank(value)
]

# A flag that a workspace states otherwise than as false; null is false.
_flag(value) := "true" if {
	value == true
} else := "false" if {
	value == null
} else := word if {
	word := folded(value)
	word in {"true", "false"}
} else := "unreadable"

# stage(resource, workspace): {"name": dev|test|staging|production, "reason": which tag states it, or that none does}. What
# is unknown or not stated counts as production, so that a missing tag never loosens a policy.
stage(resource, workspace) := _stage(stated) if {
	stated := _stage_tag(resource, "resource")
} else := _stage(stated) if {
	stated := _stage_tag(workspace, "workspace")
} else := {"name": "production", "reason": "no tag `environment` or `stage`, which counts as production"}

# The first tag of these that is stated decides.
_stage_tag(document, of) := {"name": "environment", "values": values, "of": of} if {
	values := _stated(document, {"environment"})
	count(values) > 0
} else := {"name": "stage", "values": values, "of": of} if {
	values := _stated(document, {"stage"})
	count(values) > 0
}

_stage(stated) := {"name": "production", "reason": reason} if {
	count(stated.values) > 1 # most documents have one
	count({_folded_or_blank(value) | some value in stated.values}) > 1
	reason := concat("", ["the tag `", stated.name, "` of the ", stated.of, " has several values, which counts as production"])
} else := {"name": name, "reason": _tag_reason(stated.name, stated.of, stated.values[0])} if {
	name := folded(stated.values[0])
	name in stages
} else := {"name": "production", "reason": reason} if {
	value := stated.values[0]
	reason := concat("", [_tag_reason(stated.name, stated.of, value), _taken_as(value)])
}

_folded_or_blank(value) := word if {
	word := folded(value)
} else := ""

_taken_as(value) := ", which is none of dev, test, staging and production and counts as production" if {
	is_string(value)
} else := ", which counts as production"
