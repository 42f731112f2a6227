package rbac.known_principals_test

import data.rbac.known_principals

# A snapshot that says that it is incomplete proves no absence; no `cases.yaml` can say so.
test_an_incomplete_snapshot_proves_no_absence if {
	whole := {
		"resource": {"properties": {"principalId": "a", "principalType": "User"}},
		"parameters": {"allow_guests": false},
		"snapshot": {"principals": [{"id": "b"}], "by_principal": {"b": [0]}, "incomplete": []},
	}
	partial := json.patch(whole, [{"op": "replace", "path": "/snapshot/incomplete", "value": ["principals: forbidden"]}])
	count(known_principals.deny) == 1 with input as whole
	count(known_principals.unknown) == 0 with input as whole
	count(known_principals.deny) == 0 with input as partial
	count(known_principals.unknown) == 1 with input as partial
}
