# METADATA
# scope: package
# title: A workspace is closed to the public network
# description: >-
#   Broken: a workspace that is tagged as one for tests is let off, although the header says that no tag makes a
#   difference.
# custom:
#   id: BROKEN-INSENSITIVE-001
#   severity: high
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   inspects: [/properties/publicNetworkAccess]
#   when_absent: fail
#   remediation: Set `publicNetworkAccess` to Disabled.
#   insensitive_to: [/tags]
package access.quiet_tags

import data.lib.words

deny contains {
	"msg": "the workspace is open",
	"path": "/properties/publicNetworkAccess",
	"actual": object.get(input.resource, ["properties", "publicNetworkAccess"], null),
	"expected": "Disabled",
} if {
	not is_disabled
	not words.stage(input.resource, null).name in {"dev", "test"}
}

is_disabled if words.folded(input.resource.properties.publicNetworkAccess) == "disabled"
