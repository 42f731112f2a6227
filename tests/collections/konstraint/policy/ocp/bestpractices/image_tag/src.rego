# METADATA
# title: Images carry a tag that does not move
# description: A tag that moves runs what nobody looked at.
# custom:
#   severity: MEDIUM
#   matchers:
#     kinds:
#     - apiGroups: [""]
#       kinds: [Pod]
package ocp.bestpractices.image_tag

import data.lib.konstraint
import data.lib.pods

violation[msg] {
  container := pods.containers[_]
  not has_tag(container)

  msg := konstraint.format_with_id(sprintf("%s/%s: container '%s' has an image without a tag", [konstraint.kind, konstraint.name, container.name]), "ORG-001")
}

has_tag(container) {
  re_match("^.+:[A-Za-z0-9._-]+$", container.image)
  not endswith(container.image, ":latest")
}
