package hostnamespace

import data.lib.exempt.is_exempt

violation[{"msg": msg, "details": {}}] {
  object := input.review.object
  not is_exempt(object)
  shares(object)
  msg := sprintf("%v shares a namespace of its host", [object.metadata.name])
}

shares(object) {
  object.spec.hostPID
}

shares(object) {
  object.spec.hostNetwork
}
