# METADATA
# description: >-
#   The words that policies share: tags, regulated and stage. `policyeng.facts.words` says the same in Python. Here and
#   in the other libraries two habits keep the engines in agreement: what may be undefined is bound with `=` (the
#   embedded engine lets `:=` bind nothing), and is no argument of a call inside a `not` (OPA evaluates it outside).
package lib.words

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
# null or blank). The tags of a job and of other assets are in `properties.tags`, those of workspaces and computes never.
# A value that is not a string is returned as it is: it is stated, and no word is equal to it.
tag(document, name) := value if {
	is_object(document.tags)
	wanted := lower(name)
	value = [stated | some key, stated in document.tags; lower(key) == wanted; not is_blank(stated)][0]
} else := value if {
	is_object(document.properties.tags)
	not _is_tagged_outside(document)
	wanted := lower(name)
	value = [stated | some key, stated in document.properties.tags; lower(key) == wanted; not is_blank(stated)][0]
}

_is_tagged_outside(document) if {
	lower(document.type) in {
		"microsoft.machinelearningservices/workspaces",
		"microsoft.machinelearningservices/workspaces/computes",
	}
}

# is_blank(value): null, or a text with nothing but white space in it.
is_blank(null) := true

is_blank(value) if {
	is_string(value)
	trim_space(value) == ""
}

# shown(value): how a reason writes a value down. Of a long text it says the length alone: reports mask texts that hold a
# secret, and would not know a part of one.
shown(value) := concat("", ["`", trimmed, "`"]) if {
	is_string(value)
	trimmed := trim_space(value)
	count(trimmed) <= 60
} else := concat("", ["a text of ", format_int(count(trim_space(value)), 10), " characters"]) if {
	is_string(value)
} else := "not text"

# regulated(resource, workspace, classifications): {"decided": true|false|null, "reason": why}. It is regulated by
# `hbiWorkspace` of the workspace, or by the tag of the resource, else of the workspace. `decided` is null when nothing
# makes it regulated and something that could is missing or unreadable. `workspace` is null when it is not in the
# snapshot.
regulated(resource, workspace, classifications) := {"decided": true, "reason": reason} if {
	workspace.properties.hbiWorkspace # spares most workspaces the next line
	_flag(workspace) == "true"
	reason := "`hbiWorkspace` of the workspace is true"
} else := _by_tag(classification(resource, workspace), workspace, classifications)

_by_tag(stated, workspace, classifications) := {"decided": true, "reason": reason} if {
	stated.of != "nobody"
	folded(stated.value) in {lower(trim_space(entry)) | some entry in classifications}
	reason := _tag_reason("data-classification", stated)
} else := {"decided": null, "reason": reason} if {
	workspace == null
	reason := "the workspace is not in the snapshot, so it is not known whether the work is regulated"
} else := {"decided": null, "reason": reason} if {
	workspace.properties.hbiWorkspace
	_flag(workspace) == "unreadable"
	reason := "`hbiWorkspace` of the workspace is neither true nor false"
} else := {"decided": null, "reason": _tag_reason("data-classification", stated)} if {
	not is_string(stated.value)
} else := {"decided": false, "reason": "no flag and no tag says so"}

_tag_reason(name, stated) := concat("", ["the tag `", name, "` of the ", stated.of, " is ", shown(stated.value)])

# classification(resource, workspace): {"value", "of"} of the tag that counts; "" of nobody when none is stated.
classification(resource, workspace) := {"value": value, "of": "resource"} if {
	value = tag(resource, "data-classification")
} else := {"value": value, "of": "workspace"} if {
	value = tag(workspace, "data-classification")
} else := {"value": "", "of": "nobody"}

# The flag that a workspace states as text; null is false.
_flag(workspace) := "true" if {
	workspace.properties.hbiWorkspace == true
} else := stated if {
	stated = folded(workspace.properties.hbiWorkspace)
	stated in {"true", "false"}
} else := "unreadable" if {
	workspace.properties.hbiWorkspace != null
} else := "false"

# stage(resource, workspace): {"name": dev|test|staging|production, "reason": which tag says so, or that none does}. What
# is unknown or not stated counts as production, so that a missing tag never loosens a policy.
stage(resource, workspace) := _stage(stated) if {
	stated = _stage_tag(resource, "resource")
} else := _stage(stated) if {
	stated = _stage_tag(workspace, "workspace")
} else := {"name": "production", "reason": "no tag `environment` or `stage`, which counts as production"}

# The first tag of these that is stated decides.
_stage_tag(document, of) := {"name": "environment", "value": value, "of": of} if {
	value = tag(document, "environment")
} else := {"name": "stage", "value": value, "of": of} if {
	value = tag(document, "stage")
}

_stage(stated) := {"name": name, "reason": _tag_reason(stated.name, stated)} if {
	name = folded(stated.value)
	name in stages
} else := {"name": "production", "reason": concat("", [_tag_reason(stated.name, stated), _taken_as(stated.value)])}

_taken_as(value) := ", which is none of dev, test, staging and production and counts as production" if {
	is_string(value)
} else := ", which counts as production"
