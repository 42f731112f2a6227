package lib.azure_policy_test

import data.lib.azure_policy

_definition := "1d413020-63de-11ea-bc55-0242ac130003"

_wanted := {"definition": _definition, "parameters": ["logFilters", "datastore"]}

_group := "/subscriptions/s/resourcegroups/g"

_workspace := concat("/", [_group, "providers/Microsoft.MachineLearningServices/workspaces/w"])

_set_id := "/providers/Microsoft.Authorization/policySetDefinitions/Logs"

_values := {"logFilters": {"value": ["a"]}, "datastore": {"value": "store"}}

_assignment := {"id": "/a", "properties": {
	"policyDefinitionId": concat("/", ["/providers/Microsoft.Authorization/policyDefinitions", upper(_definition)]),
	"parameters": _values,
}}

_changed(properties) := object.union(_assignment, {"properties": properties})

_with(parameters) := _changed({"parameters": parameters})

_state(assignment) := azure_policy.state(assignment, _workspace, _wanted, {})

_states := {
	"in force": [
		_assignment,
		_changed({"enforcementMode": "Default", "notScopes": ["/subscriptions/s/resourceGroups/other"]}),
		_changed({"resourceSelectors": [], "overrides": null}),
		_with({"effect": {"value": "enforceSetting"}, "computeType": {"value": "Any"}, "isIsolatedNetwork": {"value": "any"}}),
		_with({"computeNames": {"value": []}, "tags": {"value": {}}}),
		_with({"extra": "no parameter"}),
		_with({"TAGS": {"value": null}}),
		_with({"DATASTORE": {"value": "store"}}),
	],
	"not in force": [
		_changed({"notScopes": ["/subscriptions/S/resourceGroups/G/"]}),
		_changed({"enforcementMode": "DoNotEnforce"}),
		_changed({"policyDefinitionId": "/providers/Microsoft.Authorization/policyDefinitions/other"}),
		_with({"effect": {"value": "Disabled"}}),
		_with({"logFilters": {"value": []}}),
		_with({"datastore": {"value": null}}),
	],
	"cannot be read": [
		_changed({"policyDefinitionId": 7}),
		_changed({"enforcementMode": "perhaps"}),
		_changed({"parameters": "none"}),
		_changed({"notScopes": "none"}),
		_with({"effect": {"value": {}}}),
		_with({"datastore": {"value": 7}}),
		_with({"DATASTORE": {"value": "other store"}}),
		_with({"effect": {"value": "disabled"}, "Effect": {"value": "enforceSetting"}}),
	],
	"covers only some computes": [
		_changed({"resourceSelectors": [{"name": "one region"}]}),
		_changed({"overrides": [{"kind": "policyEffect"}]}),
		_with({"computeNames": {"value": ["c"]}}),
		_with({"Tags": {"value": {"team": "a"}}}),
		_with({"computeType": {"value": "AmlCompute"}}),
		_with({"isIsolatedNetwork": {"value": "Yes"}}),
	],
}

test_state[name] if {
	some name, assignments in _states
	every assignment in assignments {
		_state(assignment) == name
	}
}

_of_set := {"id": "/a", "properties": {
	"policyDefinitionId": _set_id,
	"parameters": {"LogFilter": {"value": ["b"]}},
}}

_member(parameters) := {"policyDefinitionId": _assignment.properties.policyDefinitionId, "parameters": parameters}

_handing := {"logFilters": {"value": "[parameters('logFilter')]"}, "datastore": {"value": "[parameters('store')]"}}

_through_set(members, defaults) := azure_policy.state(_of_set, _workspace, _wanted, {lower(_set_id): {"properties": {
	"policyDefinitions": members,
	"parameters": defaults,
}}})

_default := {"Store": {"defaultValue": "store"}, "unused": "no parameter"}

test_set_hands_on_its_parameters_and_their_defaults if {
	_through_set([_member(_handing)], _default) == "in force"
	_through_set([_member(_values)], {}) == "in force"
	_through_set([_member(_handing)], {}) == "not in force"
	_through_set([_member(_handing)], null) == "not in force"
	azure_policy.state(_of_set, _workspace, _wanted, {lower(_set_id): {"properties": {"policyDefinitions": [_member(_handing)]}}}) == "not in force"
	_through_set([_member({"logFilters": "no parameter"})], _default) == "not in force"
	_through_set([_member(null)], _default) == "not in force"
	_through_set([{"policyDefinitionId": "/providers/Microsoft.Authorization/policyDefinitions/other"}], {}) == "not in force"
}

test_spellings_of_a_parameter_with_different_values_cannot_be_read if {
	several := object.union(_handing, {"DataStore": {"value": "other store"}})
	_through_set([_member(several)], _default) == "cannot be read"
	_through_set([_member(_handing)], object.union(_default, {"STORE": {"defaultValue": "b"}})) == "cannot be read"
}

test_best_of_the_members_of_a_set_counts if {
	some_computes := object.union(_values, {"computeNames": {"value": ["c"]}})
	disabled := object.union(_values, {"effect": {"value": "disabled"}})
	_through_set([_member(some_computes), _member(_values)], {}) == "in force"
	_through_set([_member(disabled), _member(some_computes)], {}) == "covers only some computes"
}

test_set_that_is_not_in_the_snapshot if {
	_state(_of_set) == "is of a policy set that is not in the snapshot"
}

_type := "microsoft.authorization/policyassignments"

_indices(extended, scopes) := {
	"by_id": {"/a": _assignment, "/b": _changed({"enforcementMode": "DoNotEnforce"})},
	"by_extended": {scope: {_type: keys} | some scope, keys in extended},
	"by_scope": {scope: {_type: keys} | some scope, keys in scopes},
}

_above := {
	"the workspace": _indices({lower(_workspace): ["/a"]}, {}),
	"the resource group": _indices({_group: ["/b", "/a"]}, {}),
	"the subscription": _indices({"/subscriptions/s": ["/a"]}, {}),
	"a management group": _indices({}, {"/": ["/a"]}),
}

_elsewhere := {
	"another group": _indices({"/subscriptions/s/resourcegroups/other": ["/a"]}, {}),
	"a part of the subscription": _indices({}, {"/subscriptions/s": ["/a"]}),
	"one that is not enforced": _indices({_group: ["/b"]}, {"/": ["/b"]}),
}

test_assignment_above_is_in_force[name] if {
	some name, indices in _above
	azure_policy.is_in_force(_workspace, _wanted, indices)
	_assignment in azure_policy.above(_workspace, indices)
}

test_assignment_elsewhere_is_not[name] if {
	some name, indices in _elsewhere
	not azure_policy.is_in_force(_workspace, _wanted, indices)
	not _assignment in azure_policy.above(_workspace, indices)
}
