# METADATA
# scope: package
# title: Deployments reach out only through the workspace's network
# description: >-
#   Code behind an endpoint can send your data anywhere, unless the managed network of the workspace restricts it or
#   the deployment has no access to the public network. Azure's default is that it has access.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/concept-secure-online-endpoint]
# custom:
#   id: AML-END-201
#   severity: high
#   judges: [Microsoft.MachineLearningServices/workspaces/onlineEndpoints/deployments]
#   remediation:
#     text: >-
#       Give the workspace a managed network (`az ml workspace update --managed-network allow_only_approved_outbound`), or
#       create the deployment again with `egress_public_network_access: disabled`.
#   source: END-201
#   monotone_in: {/properties/egressPublicNetworkAccess: [Enabled, Disabled]}
#   since: 0.2.0
package endpoints.confined_egress

import data.lib.endpoints
import data.lib.networks
import data.lib.settings

applies if endpoints.deployment_kind(input.resource) == "managed"

applies if not endpoints.deployment_kind(input.resource)

deny contains {
	"msg": "the deployment can reach the public network, and no managed network restricts it",
	"path": settings.pointer(egress),
	"actual": settings.at(input.resource, egress),
	"expected": "Disabled, or a managed network of the workspace",
} if {
	endpoints.deployment_kind(input.resource) == "managed"
	may_reach_out
	is_unmanaged
}

may_reach_out if settings.word(settings.at(input.resource, egress), accesses) == "enabled"

may_reach_out if {
	settings.is_unset(input.resource, egress)
}

is_unmanaged if settings.word(settings.at(holder, isolation), modes) == "disabled"

is_unmanaged if {
	settings.is_unset(holder, isolation)
}

unknown contains {"msg": "the compute type of the deployment is not a known value", "path": "/properties/endpointComputeType"} if {
	not endpoints.deployment_kind(input.resource)
}

unknown contains {"msg": "the public egress is neither enabled nor disabled", "path": pointer} if {
	pointer := settings.unreadable_word(input.resource, egress, accesses)
}

unknown contains {"msg": "the workspace is not in the snapshot", "path": "/id"} if {
	may_reach_out
	not is_object(input.workspace)
}

unknown contains {
	"msg": "the hub of the project is not in the snapshot",
	"path": "workspace:/properties/hubResourceId",
} if {
	may_reach_out
	is_object(input.workspace)
	not holder
}

unknown contains {
	"msg": "the isolation mode of the managed network is not a known value",
	"path": concat("", ["workspace:", networks.settings_pointer(input.workspace, pointer)]),
} if {
	may_reach_out
	pointer := settings.unreadable_word(holder, isolation, modes)
}

holder := networks.settings_holder(input.workspace, input.snapshot.by_id)
egress := ["properties", "egressPublicNetworkAccess"]
accesses := {"enabled", "disabled"}
isolation := ["properties", "managedNetwork", "isolationMode"]
modes := {"disabled", "allowinternetoutbound", "allowonlyapprovedoutbound"}
