package main

import data.kinds

deny contains msg if {
	kinds.is_workload
	not input.spec.template.spec.securityContext.runAsNonRoot
	msg := sprintf("%s must not run as root", [kinds.name])
}

deny contains msg if {
	kinds.is_workload
	some container in kinds.containers
	not container.resources.limits.memory
	msg := sprintf("%s: container %s has no memory limit", [kinds.name, container.name])
}

deny_latest contains msg if {
	some container in kinds.containers
	endswith(container.image, ":latest")
	msg := sprintf("%s runs %v", [container.name, container.image])
}
