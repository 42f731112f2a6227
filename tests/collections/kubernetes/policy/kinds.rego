package kinds

is_workload if input.kind in {"Deployment", "StatefulSet", "DaemonSet"}

is_service if input.kind == "Service"

containers contains container if some container in input.spec.template.spec.containers

name := input.metadata.name
