package uniquehost

violation[{"msg": "the host is taken"}] {
  host := input.review.object.spec.rules[_].host
  other := data.inventory.namespace[_][_].Ingress[name]
  name != input.review.name
  other.spec.rules[_].host == host
}
