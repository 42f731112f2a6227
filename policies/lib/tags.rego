# METADATA
# description: >-
#   Tags that a resource must have itself; neither those of its workspace nor any in `properties.tags` replace them.
package lib.tags

import data.lib.settings
import data.lib.words

# has_any(resource): whether the resource has a tag, which may be blank.
has_any(resource) if {
	some value in resource.tags
	value != null
}

# are_unreadable(resource): whether the value of the tags is neither an object nor blank.
are_unreadable(resource) if settings.unreadable(resource, ["tags"], "object")

# missing(resource, names): the names of which the resource has no tag or a blank one, compared without case.
missing(resource, names) := [name |
	count(names) > 0 # most organizations require none
	stated := _stated(resource)
	some name in names
	not lower(name) in stated
]

# unreadable(resource, names): the names whose tag is a list or an object. A number or a boolean is what a file has
# where Azure stores text.
unreadable(resource, names) := [name |
	_has_unreadable(resource) # most resources have none
	some name in names
	_is_unreadable(words.tag({"tags": resource.tags}, name))
]

# pointer(name): the JSON Pointer of a tag.
pointer(name) := settings.pointer(["tags", name])

_stated(resource) := {lower(key) | is_object(resource.tags); some key, value in resource.tags; not words.is_blank(value)}

_has_unreadable(resource) if {
	some value in resource.tags
	_is_unreadable(value)
}

_is_unreadable(value) if type_name(value) in {"array", "object"}
