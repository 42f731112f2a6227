package ocp.bestpractices.replicas

import data.lib.konstraint

violation[msg] {
  konstraint.kind == "Deployment"
  any([konstraint.resource.spec.replicas < 2, is_even(konstraint.resource.spec.replicas)])
  msg := konstraint.format(sprintf("%s has %d replicas", [konstraint.name, konstraint.resource.spec.replicas]))
} {
  konstraint.kind == "Deployment"
  not konstraint.has_field(konstraint.resource.spec, "replicas")
  msg := konstraint.format(sprintf("%s leaves its replicas open", [konstraint.name]))
}

is_even(number) = true {
  number % 2 == 0
} else = false
