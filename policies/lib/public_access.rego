# METADATA
# description: Public network access of resources that a workspace depends on.
package lib.public_access

import data.lib.settings
import data.lib.words

place := ["properties", "publicNetworkAccess"]

# is_closed(resource): whether it does not answer the public network; absent means enabled, as in Azure.
is_closed(resource) if words.folded(settings.at(resource, place)) in {"disabled", "securedbyperimeter"}

# unreadable(resource): the JSON Pointer of what keeps it from being known whether it is closed.
unreadable(resource) := settings.unreadable_word(resource, place, {"enabled", "disabled", "securedbyperimeter"})
