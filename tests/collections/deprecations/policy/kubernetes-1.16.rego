package main

deny[msg] {
  input.kind == "List"
  object := input.items[_]
  msg := _cannot with input as object
}

deny[msg] {
  input.kind != "List"
  msg := _cannot
}

warn[msg] {
  input.kind == "List"
  object := input.items[_]
  msg := _should_not with input as object
}

warn[msg] {
  input.kind != "List"
  msg := _should_not
}

# Served no longer.
_cannot = msg {
  groups := ["extensions/v1beta1", "apps/v1beta1", "apps/v1beta2"]
  input.apiVersion == groups[_]
  input.kind == "Deployment"
  msg := sprintf("%s/%s: %s is gone, use apps/v1", [input.kind, input.metadata.name, input.apiVersion])
}

# Served a little longer.
_should_not = msg {
  input.apiVersion == "extensions/v1beta1"
  input.kind == "Ingress"
  msg := sprintf("%s/%s: %s will go, use networking.k8s.io/v1", [input.kind, input.metadata.name, input.apiVersion])
}
