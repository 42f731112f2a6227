# METADATA
# description: Subnets, which are resources of their own or parts of their virtual network.
package lib.subnets

import data.lib.ids
import data.lib.words

# named(id, by_id): the subnet of an id; undefined where the snapshot has neither it nor its virtual network.
named(id, by_id) := subnet if {
	subnet := ids.named(id, by_id)
} else := [part | some part in parts; _key(part, network) == key][0] if {
	key := ids.folded(words.text(id))
	network := split(key, "/subnets/")[0]
	network != key
	parts := by_id[network].properties.subnets
	is_array(parts)
}

# The id of a part of a virtual network, or its name where templates leave the id out.
_key(part, network) := ids.folded(stated) if {
	stated := words.text(part.id)
} else := concat("", [network, "/subnets/", words.folded(part.name)])
