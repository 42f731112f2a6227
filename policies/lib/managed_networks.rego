# METADATA
# description: The managed networks of workspaces. Rules that are resources of their own are in their workspace, too.
package lib.managed_networks

import data.lib.settings
import data.lib.words

mode_place := ["properties", "managedNetwork", "isolationMode"]

rules_place := ["properties", "managedNetwork", "outboundRules"]

# The isolation modes in lower case, from the least to the most strict.
modes := ["disabled", "allowinternetoutbound", "allowonlyapprovedoutbound"]

# rank(mode): the position of an isolation mode in `modes`, absent as Azure's default; undefined for other words.
rank(mode) := 0 if words.is_blank(mode)

rank(mode) := index if {
	some index, known in modes
	known == words.folded(mode)
}

# isolates(workspace): whether it has a managed network; `unreadable_mode` is where it cannot be read whether it has.
isolates(workspace) if rank(settings.at(workspace, mode_place)) > 0

unreadable_mode(workspace) := settings.unreadable_word(workspace, mode_place, {mode | some mode in modes})

# rules(workspace): its outbound rules by name, none where they are not an object.
rules(workspace) := {name: rule |
	stated := object.get(workspace, rules_place, null)
	is_object(stated)
	some name, rule in stated
	rule != null
}
