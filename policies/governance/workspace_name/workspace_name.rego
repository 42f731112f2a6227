# METADATA
# scope: package
# title: Workspace names fit the service's rule
# description: >-
#   A name that the service refuses is found only when the deployment fails. A name has 3 to 33 letters, digits,
#   underscores and hyphens, and begins with a letter or a digit.
# related_resources: [https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules]
# custom:
#   id: AML-GOV-002
#   severity: medium
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   remediation: Choose another name before the deployment; a workspace cannot be renamed.
#   source: GOV-02
#   since: 0.2.0
package governance.workspace_name

import data.lib.settings

deny contains {
	"msg": "the service does not accept the name",
	"path": path,
	"actual": name,
	"expected": "3 to 33 letters, digits, `_` and `-`, the first a letter or a digit",
} if {
	is_string(name)
	not is_open
	not regex.match(`^[a-zA-Z0-9][a-zA-Z0-9_-]{2,32}$`, name)
}

unknown contains {"msg": "the name is still open", "path": path} if is_open

unknown contains {"msg": "the name is not text", "path": path} if not is_string(name)

# Before a deployment the parts of an id that are not known yet are in braces.
is_open if {
	is_string(name)
	startswith(name, "{")
	endswith(name, "}")
}

name := stated if {
	stated := settings.at(input.resource, ["name"])
	stated != null
} else := parts[count(parts) - 1] if {
	parts := split(trim_suffix(input.resource.id, "/"), "/")
}

path := "/name" if {
	settings.at(input.resource, ["name"]) != null
} else := "/id"
