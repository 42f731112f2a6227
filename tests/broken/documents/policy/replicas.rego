# Broken on purpose, in the form of Conftest: a deployment that is both small and public has two limits.
package main

import rego.v1

deny contains msg if {
	input.replicas > limit
	msg := sprintf("more than %d replicas", [limit])
}

limit := 3 if input.size == "small"

limit := 5 if input.public == true
