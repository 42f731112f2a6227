# METADATA
# description: IP addresses and prefixes of them.
package lib.addresses

import data.lib.words

# prefix(text): {"family": 4 or 6, "length": in bits} of a prefix in CIDR notation; a single address is the longest one.
# Undefined for anything else.
prefix(text) := {"family": _family(stated), "length": to_number(parts[1])} if {
	stated := words.folded(text)
	parts := split(_whole(stated), "/")
	net.cidr_is_valid(concat("/", parts))
}

_family(text) := 6 if contains(text, ":")

else := 4

_whole(text) := text if contains(text, "/")

else := concat("", [text, "/32"]) if _family(text) == 4

else := concat("", [text, "/128"])
