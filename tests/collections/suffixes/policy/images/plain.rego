package kubernetes.plain

deny contains {"msg": "a default namespace", "_loc": {"file": "x", "line": 3}, "severity": "LOW"} if {
	object.get(input.metadata, "namespace", "default") == "default"
}

exception contains rules if {
	input.metadata.annotations["policy/skip"] == "all"
	rules := {""}
}
