package main

import data.kinds

warn contains msg if {
	kinds.is_service
	msg := sprintf("the service %s opens %d ports", [kinds.name, count(input.spec.ports)])
}

warn_labels contains msg if {
	required := {"app", "team"}
	missing := required - object.keys(object.get(input.metadata, "labels", {}))
	count(missing) > 0
	msg := sprintf("%s lacks the labels %s", [kinds.name, concat(", ", sort(missing))])
}
