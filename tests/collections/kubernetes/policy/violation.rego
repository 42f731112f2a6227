package main

import data.kinds

violation contains {"msg": msg, "details": {"container": container.name, "drop": drop}} if {
	kinds.is_workload
	some container in kinds.containers
	drop := object.get(container, ["securityContext", "capabilities", "drop"], [])
	not "ALL" in drop
	msg := sprintf("%s keeps capabilities", [container.name])
}
