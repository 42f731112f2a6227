package lib.pods

import data.lib.konstraint

default pod = false

pod = konstraint.resource.spec.template {
  kinds := ["DaemonSet", "Deployment", "Job"]
  konstraint.kind == kinds[_]
}

pod = konstraint.resource {
  konstraint.kind == "Pod"
}

containers[container] {
  lists := ["containers", "initContainers"]
  container := pod.spec[lists[_]][_]
}
