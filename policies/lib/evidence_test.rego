package lib.evidence_test

import data.lib.evidence

_workspace := "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"

_in_force := {
	"id": "E-1",
	"for": "AML-X-001",
	"scope": "-",
	"givenAt": "2026-01-01T00:00:00Z",
	"expiresAt": "2026-12-01T00:00:00Z",
}

_lapsed := object.union(_in_force, {"id": "E-2", "expiresAt": "2026-06-01T00:00:00Z"})

_cases := {
	"nothing": {"entries": [], "state": "none"},
	"in force": {"entries": [_lapsed, _in_force], "state": "in force"},
	"in another case": {"entries": [object.union(_in_force, {"for": "aml-x-001"})], "state": "in force"},
	"for another policy": {"entries": [object.union(_in_force, {"for": "AML-X-0011"})], "state": "none"},
	"not given yet": {"entries": [object.union(_in_force, {"givenAt": "2026-06-01T00:00:01Z"})], "state": "none"},
	"given now": {"entries": [object.union(_in_force, {"givenAt": "2026-06-01T00:00:00Z"})], "state": "in force"},
	"lapsed now": {"entries": [_lapsed], "state": "lapsed"},
	"the resource": {"entries": [object.union(_in_force, {"scope": upper(_workspace)})], "state": "in force"},
	"the subscription": {"entries": [object.union(_in_force, {"scope": "/subscriptions/S"})], "state": "in force"},
	"a name that begins alike": {
		"entries": [object.union(_in_force, {"scope": concat("", [_workspace, "2"])})],
		"state": "none",
	},
	"an open subscription": {
		"entries": [object.union(_in_force, {"scope": "/subscriptions/{subscription}"})],
		"state": "perhaps in force",
	},
	"a management group": {
		"entries": [object.union(_in_force, {"scope": "/providers/Microsoft.Management/managementGroups/m"})],
		"state": "perhaps in force",
	},
	"an open subscription that lapsed": {
		"entries": [object.union(_lapsed, {"scope": "/subscriptions/{subscription}"})],
		"state": "perhaps lapsed",
	},
}

test_state[name] if {
	some name, case in _cases
	evidence.state(case.entries, "AML-X-001", _workspace, "2026-06-01T00:00:00Z") == case.state
}
