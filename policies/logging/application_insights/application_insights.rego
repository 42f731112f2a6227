# METADATA
# scope: package
# title: The workspace has Application Insights
# description: >-
#   Without Application Insights it is not visible how endpoints answer, and where they fail.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-monitor-online-endpoints]
# custom:
#   id: AML-LOG-008
#   severity: low
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   remediation:
#     text: >-
#       Create a component and name it: `az ml workspace update --name <workspace> --resource-group <group>
#       --application-insights <id>`.
#   source: LOG-08
#   since: 0.2.0
package logging.application_insights

import data.lib.networks
import data.lib.settings

applies if not networks.is_project(input.resource)

deny contains {
	"msg": "the workspace names no Application Insights",
	"path": "/properties/applicationInsights",
	"actual": object.get(input.resource, ["properties", "applicationInsights"], null),
	"expected": "the id of a component",
} if {
	not unreadable
	settings.at(input.resource, path) == null
}

unknown contains {"msg": "the Application Insights of the workspace is not text", "path": unreadable}

unreadable := settings.unreadable(input.resource, path, "string")

path := ["properties", "applicationInsights"]
