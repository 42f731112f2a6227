package terraform.cost

import rego.v1

weights := {"azurerm_machine_learning_compute_cluster": 10, "azurerm_machine_learning_workspace": 2}

score := sum([weight |
	some change in input.resource_changes
	weight := weights[change.type] * count([action | some action in change.change.actions; action != "no-op"])
])

violation contains msg if {
	score > data.limits.cost.most
	msg := sprintf("the plan weighs %d, more than %d", [score, data.limits.cost.most])
}

warn contains msg if {
	deleted := [change.address | some change in input.resource_changes; "delete" in change.change.actions]
	count(deleted) > 0
	msg := sprintf("the plan deletes %s", [concat(" and ", deleted)])
}
