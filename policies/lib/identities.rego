# METADATA
# description: The managed identities of resources.
package lib.identities

import data.lib.settings
import data.lib.words

place := ["identity", "type"]

# kinds(resource): the kinds of managed identity that a resource has, in lower case: `systemassigned` and `userassigned`.
# There are none where no type is stated; undefined where the type cannot be read.
kinds(resource) := set() if {
	settings.at(resource, place) == null
	not settings.unreadable(resource, place, "string")
} else := _kinds(words.folded(settings.at(resource, place)))

_kinds("none") := set()

_kinds(stated) := found if {
	found := {trim_space(part) | some part in split(stated, ",")}
	every kind in found { kind in {"systemassigned", "userassigned"} }
}
