package lib.networks_test

import data.lib.computes
import data.lib.networks

ml := "Microsoft.MachineLearningServices/workspaces"

base := "/subscriptions/s/resourceGroups/rg/providers"

workspace_id := concat("/", [base, ml, "ws"])

compute(kind, inner) := {
	"id": concat("/", [workspace_id, "computes/c"]),
	"type": concat("/", [ml, "computes"]),
	"properties": {"computeType": kind, "resourceId": "/k", "properties": inner},
}

cluster(pools) := {
	"id": "/k",
	"type": "Microsoft.ContainerService/managedClusters",
	"properties": {"agentPoolProfiles": pools},
}

workspace(mode) := {
	"id": workspace_id,
	"type": ml,
	"kind": "Default",
	"properties": {"managedNetwork": {"isolationMode": mode}},
}

project := {
	"id": concat("/", [base, ml, "project"]),
	"type": upper(ml),
	"kind": "PROJECT",
	"properties": {"hubResourceId": upper(workspace_id)},
}

snapshot(resources) := {
	"by_id": {format_int(index, 10): resource | some index, resource in resources},
	"by_scope": {lower(workspace_id): {computes.compute_type: [format_int(index, 10) | some index, _ in resources]}},
	"incomplete": [],
}

within := {"subnet": {"id": "/v/subnets/a"}}

test_subnets if {
	networks.subnet(compute("AmlCompute", within)) == "/v/subnets/a"
	networks.subnet_pointer(compute("ComputeInstance", {})) == "/properties/properties/subnet/id"
	networks.subnet(compute("AKS", {"aksNetworkingConfiguration": {"subnetId": "/v"}})) == "/v"
	every inner in [{}, null, {"subnet": null}, {"subnet": {"id": " "}}, {"subnet": {"id": 7}}, {"subnet": "text"}] {
		not networks.subnet(compute("AmlCompute", inner))
	}
	not networks.subnet(compute("Kubernetes", within))
}

test_container_groups if {
	networks.states_group_subnet({"properties": {"subnetIds": [{"name": "a"}, {"id": "/v/subnets/a"}]}})
	networks.states_group_subnet({"properties": {"subnetIds": [], "networkProfile": {"id": "/p"}}})
	every properties in [null, "text", {}, {"subnetIds": "text"}, {"subnetIds": [7]}, {"networkProfile": {"id": " "}}] {
		not networks.states_group_subnet({"properties": properties})
	}
}

test_placement if {
	inside := {"/k": cluster([{"vnetSubnetID": "/v"}, {"vnetSubnetID": "/w"}])}
	half := {"/k": cluster([{"vnetSubnetID": "/v"}, {"vnetSubnetID": ""}])}
	networks.placement(compute("ComputeInstance", within), {}) == "inside"
	networks.placement(compute("AmlCompute", {}), {}) == "outside"
	networks.placement(compute("AKS", {"aksNetworkingConfiguration": {"subnetId": "/v"}}), half) == "inside"
	networks.placement(compute("AKS", {}), inside) == "inside"
	networks.placement(compute("Kubernetes", {}), half) == "outside"
	networks.placement(compute("Kubernetes", {}), {"/k": cluster([])}) == "outside"
	networks.placement(compute("Kubernetes", {}), {}) == "unknown"
	nowhere := json.patch(compute("AKS", {}), [{"op": "remove", "path": "/properties/resourceId"}])
	networks.placement(nowhere, inside) == "outside"
	networks.placement(compute("VirtualMachine", {}), {}) == "inside"
	not networks.placement(compute("Databricks", {}), {})
	not networks.placement(compute("Databricks", {}), inside)
}

test_settings_of_a_project_are_its_hubs if {
	hub := workspace("Disabled")
	networks.settings_holder(project, {lower(workspace_id): hub}) == hub
	networks.settings_holder(hub, {}) == hub
	networks.settings_holder(object.union(hub, {"properties": {"hubResourceId": "/h"}}), {"/h": project}).id == hub.id
	not networks.settings_holder(project, {lower(workspace_id): object.union(hub, {"type": "x"})})
	not networks.settings_holder(project, {})
	not networks.settings_holder(null, {})
}

test_a_setting_is_the_hubs_for_a_project if {
	networks.settings_pointer(workspace("Disabled"), "/properties/managedNetwork") == "/properties/managedNetwork"
	networks.settings_pointer(project, "/properties/managedNetwork") == "/properties/hubResourceId"
}

test_public_access if {
	networks.public_access({"properties": {"publicNetworkAccess": " Disabled"}}) == "disabled"
	every workspace in [{}, {"properties": null}, {"properties": {"publicNetworkAccess": 7}}] {
		networks.public_access(workspace) == "enabled"
	}
}

test_isolation_mode if {
	networks.isolation_mode(workspace("AllowInternetOutbound")) == "allowinternetoutbound"
	every mode in [null, "", 7] {
		networks.isolation_mode(workspace(mode)) == "disabled"
	}
	networks.isolation_mode({}) == "disabled"
}

test_egress if {
	holding := snapshot([compute("AmlCompute", within), compute("Databricks", {})])
	open := snapshot([compute("AmlCompute", {}), compute("Kubernetes", {})])
	unsure := snapshot([compute("AmlCompute", within), compute("AKS", {})])
	networks.egress(workspace("AllowOnlyApprovedOutbound"), open) == "closed"
	networks.egress(workspace("AllowInternetOutbound"), holding) == "closed"
	networks.egress(workspace("AllowInternetOutbound"), open) == "open"
	networks.egress(workspace("Disabled"), unsure) == "unknown"
	networks.egress(workspace("Disabled"), snapshot([])) == "open"
	networks.egress(workspace("Disabled"), snapshot([compute("VirtualMachine", {})])) == "closed"
	partial := {"incomplete": ["computes: forbidden"]}
	networks.egress(workspace("Disabled"), object.union(snapshot([]), partial)) == "unknown"
	networks.egress(workspace("Disabled"), object.union(holding, partial)) == "unknown"
	networks.egress(workspace("Disabled"), object.union(open, partial)) == "open"
	not networks.egress(project, open)
}

test_egress_of_a_project_without_its_hub_is_undefined if {
	by_id := {"a": compute("AmlCompute", within), "b": compute("AKS", {})}
	every ids in [[], ["a"], ["b"], ["a", "b"]] {
		every incomplete in [[], ["workspaces: forbidden"]] {
			by_scope := {lower(project.id): {computes.compute_type: ids}}
			not networks.egress(project, {"by_id": by_id, "by_scope": by_scope, "incomplete": incomplete})
		}
	}
}
