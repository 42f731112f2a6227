package lib.computes_test

import data.lib.computes

ml := "Microsoft.MachineLearningServices/workspaces"

base := "/subscriptions/s/resourceGroups/rg/providers"

workspace := concat("/", [base, ml, "ws"])

compute(name, kind, inner) := {
	"id": concat("/", [workspace, "computes", name]),
	"type": concat("/", [ml, "computes"]),
	"properties": {"computeType": kind, "resourceId": concat("/", [base, "x/y", name]), "properties": inner},
}

cluster(pools) := {
	"id": concat("/", [base, "x/y/K8S"]),
	"type": "Microsoft.ContainerService/ManagedClusters",
	"properties": {"agentPoolProfiles": pools},
}

deployment(properties) := {"type": concat("/", [ml, "onlineEndpoints/deployments"]), "properties": properties}

machine := {"type": "Microsoft.Compute/virtualMachines", "properties": {"hardwareProfile": {"vmSize": "B"}}}

index(resources) := {lower(resource.id): resource | some resource in resources}

test_kinds if {
	computes.kind(compute("c", " AmlCompute", {})) == "amlcompute"
	computes.kind(cluster([])) == "managedcluster"
	computes.kind(deployment({})) == "deployment"
	computes.kind(deployment({"endpointComputeType": "Managed"})) == "deployment"
	not computes.kind(deployment({"endpointComputeType": "KUBERNETES"}))
	not computes.kind(deployment({"endpointComputeType": "K8S"}))
	not computes.kind(compute("c", 7, {}))
	not computes.kind({"type": "Microsoft.Other/accounts", "properties": {"computeType": "AKS"}})
	not computes.kind(machine)
}

test_priority if {
	computes.priority({}) == "dedicated"
	computes.priority(compute("c", "AmlCompute", {"vmPriority": null})) == "dedicated"
	computes.priority(compute("c", "AmlCompute", {"vmPriority": "LowPriority"})) == "lowpriority"
	not computes.priority(compute("c", "AmlCompute", {"vmPriority": "Spot"}))
	not computes.priority(compute("c", "AmlCompute", {"vmPriority": 1}))
}

test_purposes if {
	computes.purpose(compute("c", "AKS", {"clusterPurpose": " FastProd "})) == "fastprod"
	every inner in [{}, null, {"clusterPurpose": null}, {"clusterPurpose": " "}] {
		computes.purpose(compute("c", "AKS", inner)) == ""
	}
	not computes.purpose(compute("c", "AKS", {"clusterPurpose": 7}))
}

test_own_sizes if {
	inner := {"vmSize": "a", "agentVmSize": "b", "virtualMachineSize": "c"}
	kinds := {"AmlCompute": "a", "ComputeInstance": "a", "AKS": "b", "VirtualMachine": "c"}
	every kind, size in kinds {
		computes.node_sizes(compute("c", kind, inner), {})[0].size == size
	}
	computes.node_sizes(deployment({"instanceType": "d"}), {}) == [{"path": "/properties/instanceType", "size": "d"}]
}

test_size_that_is_not_stated if {
	missing := [{"path": "/properties/properties/vmSize", "size": null}]
	computes.node_sizes(compute("c", "AmlCompute", {}), {}) == missing
	computes.node_sizes(compute("c", "AmlCompute", null), {}) == missing
	computes.node_sizes(compute("c", "AKS", {}), {}) == []
	computes.node_sizes(compute("c", "VirtualMachine", {}), {}) == []
	computes.node_sizes(compute("c", "Kubernetes", {}), {}) == []
	not computes.node_sizes(compute("c", "Databricks", {}), {})
}

test_size_that_the_virtual_machine_states if {
	by_id := {concat("/", [base, "x/y/vm"]): machine}
	folded := {lower(id): resource | some id, resource in by_id}
	found := computes.node_sizes(compute("VM", "VirtualMachine", {"virtualMachineSize": "A"}), folded)
	found == [
		{"path": "/properties/properties/virtualMachineSize", "size": "A"},
		{"path": "/properties/resourceId", "size": "B"},
	]
	other := {id: object.union(resource, {"type": "x"}) | some id, resource in folded}
	computes.node_sizes(compute("VM", "VirtualMachine", {}), other) == []
}

test_sizes_of_pools if {
	none := [{"path": "/properties/agentPoolProfiles", "size": null}]
	every pools in [[], null, "text", {"vmSize": "A"}] {
		computes.node_sizes(cluster(pools), {}) == none
	}
	computes.node_sizes(cluster([{"vmSize": "A"}, "text", {}]), {}) == [
		{"path": "/properties/agentPoolProfiles/0/vmSize", "size": "A"},
		{"path": "/properties/agentPoolProfiles/1/vmSize", "size": null},
		{"path": "/properties/agentPoolProfiles/2/vmSize", "size": null},
	]
}

test_cluster_behind_a_compute if {
	by_id := index([cluster([])])
	computes.cluster_of(compute("k8s", "Kubernetes", {}), by_id) == cluster([])
	not computes.cluster_of(compute("k8s-2", "Kubernetes", {}), by_id)
	not computes.cluster_of(compute("k8s", "Kubernetes", {}), {lower(cluster([]).id): machine})
}

test_computes_on_a_cluster if {
	on := [compute("K8S", kind, {}) | some kind in ["AKS", "Kubernetes"]]
	other := [compute("k8s", "VirtualMachine", {}), compute("k8s-2", "Kubernetes", {}), compute("k8s", null, {})]
	keyed := {format_int(index, 10): one | some index, one in array.concat(on, other)}
	hosted := [key | some key, one in keyed; lower(one.properties.resourceId) == lower(cluster([]).id)]
	by_host := {lower(cluster([]).id): hosted}
	count(hosted) == 4
	computes.backed_by(cluster([]), {"by_host": by_host, "by_id": keyed}) == on
	computes.backed_by(cluster([]), {"by_host": {}, "by_id": keyed}) == []
}

test_computes_of_a_workspace if {
	other := object.union(compute("c", "AmlCompute", {}), {"id": concat("", [workspace, "2/computes/c"])})
	own := compute("a", "AKS", {})
	by_scope := {lower(workspace): {computes.compute_type: [lower(own.id)]}}
	snapshot := {"by_id": index([own, other]), "by_scope": by_scope}
	computes.computes_of(upper(workspace), snapshot) == [own]
	computes.computes_of(concat("", [workspace, "3"]), snapshot) == []
}

test_cluster_is_regulated_by_what_runs_on_it if {
	on := compute("k8s", "Kubernetes", {})
	other := compute("k8s-2", "Kubernetes", {})
	both := {lower(on.id): on, lower(other.id): other}
	by_host := {lower(on.properties.resourceId): [lower(on.id)], lower(other.properties.resourceId): [lower(other.id)]}
	hbi := {"id": workspace, "properties": {"hbiWorkspace": true}}
	ordinary := {"id": workspace, "properties": {"hbiWorkspace": false}}
	tagged := object.union(cluster([]), {"tags": {"data-classification": "x"}})
	with_hbi := {"by_host": by_host, "by_id": object.union(both, index([hbi]))}
	with_ordinary := {"by_host": by_host, "by_id": object.union(both, index([ordinary]))}
	computes.regulated(cluster([]), null, with_hbi, ["x"]) == {
		"decided": true,
		"reason": "for the compute `k8s` on it: `hbiWorkspace` of the workspace is true",
	}
	computes.regulated(cluster([]), null, with_ordinary, ["x"]).decided == false
	computes.regulated(cluster([]), null, {"by_host": by_host, "by_id": both}, ["x"]).decided == null
	computes.regulated(cluster([]), null, {"by_host": {}, "by_id": index([hbi])}, ["x"]).decided == false
	computes.regulated(tagged, null, {"by_host": {}, "by_id": {}}, ["x"]).decided == true
	computes.regulated(on, hbi, {"by_host": {}, "by_id": {}}, ["x"]).decided == true
	computes.regulated(deployment({"endpointComputeType": "Kubernetes"}), hbi, {}, ["x"]).decided == true
}
