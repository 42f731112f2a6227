package main

# METADATA
# title: Containers run as a named user
# custom:
#   severity: critical
deny_root contains msg if {
	input.kind == "Deployment"
	not input.spec.template.spec.securityContext.runAsNonRoot
	msg := sprintf("%s may run as root", [input.metadata.name])
}

warn contains {"msg": msg, "owner": data.teams[input.metadata.labels.team]} if {
	some container in input.spec.template.spec.containers
	not container.resources.limits
	msg := sprintf("%s: container %s has no limits", [input.metadata.name, container.name])
}

exception contains ["root"] if input.metadata.namespace == "lab"
