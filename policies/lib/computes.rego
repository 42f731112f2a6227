# METADATA
# description: Computes and what has their nodes; where the sizes of the nodes are stated.
package lib.computes

import data.lib.ids
import data.lib.words

compute_type := "microsoft.machinelearningservices/workspaces/computes"

# kind(resource): the compute type in lower case, `managedcluster` or `deployment` (a managed one); undefined for
# anything else.
kind(resource) := words.folded(resource.properties.computeType) if {
	lower(resource.type) == compute_type
} else := "managedcluster" if {
	is_cluster(resource)
} else := "deployment" if {
	lower(resource.type) == "microsoft.machinelearningservices/workspaces/onlineendpoints/deployments"
	not _on_kubernetes(resource) # the nodes are the cluster's
}

# `K8S` is the word of API version 2021-03-01-preview.
_on_kubernetes(deployment) if words.folded(deployment.properties.endpointComputeType) in {"kubernetes", "k8s"}

is_cluster(resource) if lower(resource.type) == "microsoft.containerservice/managedclusters"

# size_pointer(resource), size(resource): where a resource states its own VM size, and the size, null when it states none.
size_pointer(resource) := concat("/", array.concat([""], _size_place[kind(resource)]))

size(resource) := object.get(resource, _size_place[kind(resource)], null)

_size_place := {
	"amlcompute": ["properties", "properties", "vmSize"],
	"computeinstance": ["properties", "properties", "vmSize"],
	"aks": ["properties", "properties", "agentVmSize"],
	"virtualmachine": ["properties", "properties", "virtualMachineSize"],
	"deployment": ["properties", "instanceType"],
}

# priority(cluster): dedicated (also when it states none, as in Azure) or lowpriority; undefined for anything else.
priority(cluster) := "dedicated" if {
	object.get(cluster, ["properties", "properties", "vmPriority"], null) == null
} else := stated if {
	stated := words.folded(cluster.properties.properties.vmPriority)
	stated in {"dedicated", "lowpriority"}
}

# purpose(compute): the purpose that an AKS compute states, in lower case, "" where it states none; undefined for what is
# not text.
purpose(compute) := stated if {
	stated := words.folded(compute.properties.properties.clusterPurpose)
} else := "" if {
	type_name(object.get(compute, ["properties", "properties", "clusterPurpose"], null)) in {"null", "string"}
}

# node_sizes(resource, by_id): [{"path", "size"}] for all its nodes, as far as the snapshot states them. The size is
# null where it should be stated and is not; there is no entry where another resource states it.
node_sizes(resource, by_id) := [{"path": size_pointer(resource), "size": size(resource)}] if {
	kind(resource) in {"amlcompute", "computeinstance", "deployment"}
} else := _pool_sizes(resource) if {
	is_cluster(resource)
} else := [] if {
	kind(resource) == "kubernetes"
} else := _own_size(resource) if {
	kind(resource) == "aks"
} else := array.concat(_own_size(resource), _machine_size(resource, by_id)) if {
	kind(resource) == "virtualmachine"
}

_machine_size(resource, by_id) := [{"path": "/properties/resourceId", "size": vm_size} |
	vm_size := words.text(machine_of(resource, by_id).properties.hardwareProfile.vmSize)
]

# machine_of(compute, by_id): the virtual machine of the snapshot that a compute is attached to.
machine_of(compute, by_id) := machine if {
	machine := ids.named(compute.properties.resourceId, by_id)
	lower(machine.type) == "microsoft.compute/virtualmachines"
}

_own_size(resource) := [{"path": size_pointer(resource), "size": size(resource)} | size(resource) != null]

_pool_sizes(cluster) := [{"path": "/properties/agentPoolProfiles", "size": null}] if {
	count(pools(cluster)) == 0
} else := [{"path": path, "size": object.get(pool, "vmSize", null)} |
	some index, pool in pools(cluster)
	path := concat("/", ["/properties/agentPoolProfiles", format_int(index, 10), "vmSize"])
]

# pools(cluster): the node pools of a managed cluster, each an object; empty when it states none.
pools(cluster) := [_object(pool) |
	is_array(cluster.properties.agentPoolProfiles)
	some pool in cluster.properties.agentPoolProfiles
]

_object(value) := value if is_object(value)

else := {}

# cluster_of(compute, by_id): the managed cluster of the snapshot that an AKS or Kubernetes compute is attached to.
cluster_of(compute, by_id) := cluster if {
	cluster := ids.named(compute.properties.resourceId, by_id)
	is_cluster(cluster)
}

# computes_of(workspace_id, snapshot): the computes of a workspace that are in the snapshot.
computes_of(workspace_id, snapshot) := [snapshot.by_id[id] |
	some id in snapshot.by_scope[lower(workspace_id)][compute_type]
]

# backed_by(cluster, snapshot): the computes that run on a managed cluster.
backed_by(cluster, snapshot) := [compute |
	some id in snapshot.by_host[ids.folded(cluster.id)]
	compute := snapshot.by_id[id]
	kind(compute) in {"aks", "kubernetes"}
]

# regulated(resource, workspace, snapshot, classifications): as `words.regulated`; a managed cluster belongs to no
# workspace, it is regulated by its own tag or by any compute that runs on it.
regulated(resource, workspace, snapshot, classifications) := words.regulated(resource, workspace, classifications) if {
	not is_cluster(resource)
} else := [answer | some decided in [true, null, false]; some answer in answers; answer.decided == decided][0] if {
	answers := _answers(resource, snapshot, classifications)
}

_answers(cluster, snapshot, classifications) := array.concat(
	[words.regulated(cluster, {}, classifications)],
	[{"decided": answer.decided, "reason": reason} |
		some compute in backed_by(cluster, snapshot)
		answer := words.regulated(compute, ids.workspace_of(compute.id, snapshot.by_id), classifications)
		parts := split(trim_suffix(compute.id, "/"), "/")
		reason := concat("", ["for the compute ", words.shown(parts[count(parts) - 1]), " on it: ", answer.reason])
	],
)
