# METADATA
# scope: package
# title: The workspace is encrypted with a customer-managed key
# description: >-
#   With a key of its own, an organization can end the access to all data of a workspace by itself. Without an encryption
#   block, Microsoft's key is used. A project is encrypted with the key of its hub, which is evaluated.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/concept-customer-managed-keys]
# custom:
#   id: AML-ENC-001
#   severity: medium
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   remediation: >-
#     Create the workspace again with `customer_managed_key` in its YAML file; the key cannot be added later.
#   source: ENC-01
#   since: 0.2.0
package encryption.customer_managed_key

import data.lib.networks
import data.lib.settings

applies if not networks.is_project(input.resource)

deny contains {
	"msg": "the workspace is not encrypted with a customer-managed key",
	"path": settings.pointer(status),
	"actual": settings.at(input.resource, status),
	"expected": "Enabled",
} if {
	settings.word(settings.at(input.resource, status), words) == "disabled"
}

deny contains {
	"msg": "the workspace is not encrypted with a customer-managed key",
	"path": settings.pointer(status),
	"actual": null,
	"expected": "Enabled",
} if {
	settings.at(input.resource, status) == null
	settings.is_unset(input.resource, key)
}

unknown contains {"msg": "whether the encryption is enabled cannot be read", "path": pointer} if {
	pointer := settings.unreadable_word(input.resource, status, words)
}

# Some formats state the key and no status.
unknown contains {"msg": "the key of the encryption cannot be read", "path": pointer} if {
	settings.at(input.resource, status) == null
	pointer := settings.unreadable(input.resource, key, "string")
}

words := {"enabled", "disabled"}

status := ["properties", "encryption", "status"]

key := ["properties", "encryption", "keyVaultProperties", "keyIdentifier"]
