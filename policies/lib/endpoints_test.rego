package lib.endpoints_test

import data.lib.endpoints

_endpoints := {
	"stated": {"resource": {"kind": "Managed", "properties": {"compute": "c"}}, "kind": "managed"},
	"Kubernetes": {"resource": {"kind": "KUBERNETES"}, "kind": "kubernetes"},
	"an earlier word": {"resource": {"kind": "K8S"}, "kind": "kubernetes"},
	"another word": {"resource": {"kind": "Other"}, "kind": "other"},
	"a compute": {"resource": {"kind": " ", "properties": {"compute": "c"}}, "kind": "kubernetes"},
	"nothing": {"resource": {"properties": {"compute": null}}, "kind": "managed"},
	"no text": {"resource": {"kind": 1, "properties": {"compute": "c"}}, "kind": "none"},
	"a compute that is no text": {"resource": {"properties": {"compute": {}}}, "kind": "none"},
}

test_kind[name] if {
	some name, case in _endpoints
	_or_none({kind | kind := endpoints.kind(case.resource)}) == case.kind
}

_deployments := {
	"stated": {"type": "managed", "kind": "managed"},
	"Kubernetes": {"type": "Kubernetes", "kind": "kubernetes"},
	"an earlier word": {"type": "k8s", "kind": "kubernetes"},
	"a third": {"type": "AzureMLCompute", "kind": "azuremlcompute"},
	"blank": {"type": "", "kind": "managed"},
	"nothing": {"type": null, "kind": "managed"},
	"another word": {"type": "Other", "kind": "none"},
	"no text": {"type": ["Managed"], "kind": "none"},
}

test_deployment_kind[name] if {
	some name, case in _deployments
	deployment := {"properties": {"endpointComputeType": case.type}}
	_or_none({kind | kind := endpoints.deployment_kind(deployment)}) == case.kind
}

_or_none(kinds) := [kind | some kind in kinds][0] if {
	count(kinds) > 0
} else := "none"
