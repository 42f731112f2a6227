# METADATA
# description: Where the nodes of a compute are, and which workspace has the network settings.
package lib.networks

import data.lib.computes
import data.lib.ids
import data.lib.words

# subnet_pointer(compute), subnet(compute): where a compute states its own subnet, and the id of the subnet (not blank).
subnet_pointer(compute) := concat("/", array.concat([""], _subnet_place[computes.kind(compute)]))

subnet(compute) := _subnet(compute, computes.kind(compute))

_subnet(compute, kind) := words.text(object.get(compute, _subnet_place[kind], null))

_subnet_place := {
	"amlcompute": ["properties", "properties", "subnet", "id"],
	"computeinstance": ["properties", "properties", "subnet", "id"],
	"aks": ["properties", "properties", "aksNetworkingConfiguration", "subnetId"],
}

# pools_outside(cluster): positions of the pools of a managed cluster that state no subnet.
pools_outside(cluster) := [index |
	some index, pool in computes.pools(cluster)
	not _states_subnet(pool)
]

_states_subnet(pool) if words.text(pool.vnetSubnetID)

# states_group_subnet(group): whether a container group names a subnet, or the network profile that named it before the
# version 2021-07-01 of the API.
states_group_subnet(group) if {
	words.text(group.properties.networkProfile.id)
} else if {
	is_array(group.properties.subnetIds)
	some entry in group.properties.subnetIds
	words.text(entry.id)
}

# placement(compute, by_id): `inside` a subnet (a virtual machine always is), `outside`, or `unknown` when the cluster
# that has its nodes is not in the snapshot. Undefined for other computes whose subnet is not a setting.
placement(compute, by_id) := _placement(compute, computes.kind(compute), by_id)

_placement(compute, kind, by_id) := "inside" if {
	_subnet(compute, kind)
} else := "inside" if {
	kind == "virtualmachine"
} else := "outside" if {
	kind in {"amlcompute", "computeinstance"}
} else := _pools_placement(cluster) if {
	kind in {"aks", "kubernetes"}
	cluster := computes.cluster_of(compute, by_id)
} else := "unknown" if {
	kind in {"aks", "kubernetes"}
	words.text(compute.properties.resourceId)
} else := "outside" if {
	kind in {"aks", "kubernetes"}
}

_pools_placement(cluster) := "outside" if {
	count(pools_outside(cluster)) > 0
} else := "inside" if {
	count(computes.pools(cluster)) > 0
} else := "outside"

# settings_holder(workspace, by_id): the workspace whose network settings count: its own, or for a project its hub's.
# Undefined when it is not in the snapshot.
settings_holder(workspace, by_id) := hub if {
	is_project(workspace)
	hub := ids.named(workspace.properties.hubResourceId, by_id)
	lower(hub.type) == "microsoft.machinelearningservices/workspaces"
} else := workspace if {
	is_object(workspace)
	not is_project(workspace)
}

# settings_pointer(workspace, pointer): where a workspace states a network setting: there, or by naming its hub.
settings_pointer(workspace, pointer) := pointer if not is_project(workspace)

else := "/properties/hubResourceId"

is_project(workspace) if words.folded(workspace.kind) == "project"

# public_access(workspace): in lower case; absent means enabled, as in Azure.
public_access(workspace) := stated if {
	stated := words.folded(workspace.properties.publicNetworkAccess)
} else := "enabled"

# isolation_mode(workspace): of its managed network, in lower case; absent means disabled, as in Azure.
isolation_mode(workspace) := stated if {
	stated := words.folded(workspace.properties.managedNetwork.isolationMode)
} else := "disabled"

# egress(workspace, snapshot): `closed` by a managed network that allows only approved outbound traffic, or by a subnet
# under every compute that can have one; `open` otherwise, also without any compute; `unknown` when a cluster that it
# depends on is not in the snapshot, or the snapshot is incomplete. Undefined for a project whose hub is not in it.
egress(workspace, snapshot) := _egress(mode, placements, snapshot) if {
	mode := isolation_mode(settings_holder(workspace, snapshot.by_id))
	placements := {placement(compute, snapshot.by_id) | some compute in computes.computes_of(workspace.id, snapshot)}
}

_egress(mode, placements, snapshot) := "closed" if {
	mode == "allowonlyapprovedoutbound"
} else := "open" if {
	"outside" in placements
} else := "closed" if {
	placements == {"inside"}
	snapshot.incomplete == []
} else := "unknown" if {
	placements in {{"inside"}, {"unknown"}, {"inside", "unknown"}}
} else := "unknown" if {
	placements == set()
	snapshot.incomplete != []
} else := "open"
