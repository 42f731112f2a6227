# METADATA
# description: >-
#   Tags that a resource must carry itself; neither those of its workspace nor any in `properties.tags` stand in for them.
package lib.tags

import data.lib.words

# missing(resource, names): the names of which the resource has no tag or a blank one, compared without case.
missing(resource, names) := [name |
	some name in names
	not _is_stated(resource, name)
]

# unreadable(resource, names): the names whose tag is a list or an object. A number or a boolean is what a file says
# where Azure keeps text.
unreadable(resource, names) := [name |
	some name in names
	value = words.tag(_own(resource), name)
	type_name(value) in {"array", "object"}
]

# pointer(name): the JSON Pointer of a tag.
pointer(name) := concat("", ["/tags/", replace(replace(name, "~", "~0"), "/", "~1")])

_is_stated(resource, name) if {
	value = words.tag(_own(resource), name)
	value != null # false is stated, too
}

_own(resource) := {"tags": object.get(resource, "tags", null)}
