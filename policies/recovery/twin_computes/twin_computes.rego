# METADATA
# scope: package
# title: The twin has the same computes
# description: >-
#   Work moves to the twin only where it finds a compute of the same name, or one of the same VM size. Every cluster
#   and instance of a workspace of production needs one.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-high-availability-machine-learning]
# custom:
#   id: AML-DR-002
#   severity: low
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   remediation:
#     text: >-
#       Create the compute in the twin (`az ml compute create --name <name> --type <type> --size <VM size>
#       --workspace-name <twin> --resource-group <group>`); a cluster may scale to no nodes.
#   source: DR-02
#   parameters:
#     pair_tag: {type: string, pattern: '\S', default: dr-group, description: the tag that twins share}
#   since: 0.2.0
package recovery.twin_computes

import data.lib.computes
import data.lib.ids
import data.lib.twins
import data.lib.words

applies if {
	twins.is_evaluated(input.resource)
	count(own) > 0
	has_twin
}

has_twin if count(found.certain) > 0

has_twin if count(found.perhaps) > 0

deny contains {
	"msg": "the twin has not all of the computes",
	"path": "/id",
	"actual": {"missing": missing, "because": words.stage(input.resource, null).reason},
	"expected": "a compute of the same name or VM size in a twin",
} if {
	count(missing) > 0
	count(input.snapshot.incomplete) == 0
}

unknown contains {"msg": "whether the twin has a compute cannot be read", "path": "/id"} if {
	some compute in own
	not has_counterpart(compute)
	may_have_counterpart(compute)
}

unknown contains {"msg": "the snapshot is incomplete: more computes may exist", "path": "/id"} if {
	count(input.snapshot.incomplete) > 0
}

missing := [compute.id | some compute in own; not has_counterpart(compute); not may_have_counterpart(compute)]

own := [compute |
	some compute in computes.computes_of(input.resource.id, input.snapshot)
	has_nodes(compute)
]

others := [compute |
	some twin in found.certain
	some compute in computes.computes_of(twin.id, input.snapshot)
]

names := {name(compute) | some compute in others}

sizes := {size(compute) | some compute in others}

has_counterpart(compute) if name(compute) in names

has_counterpart(compute) if {
	size(compute) != "?"
	size(compute) in sizes
}

may_have_counterpart(compute) if {
	size(compute) == "?"
	count(others) > 0
}

may_have_counterpart(_) if "?" in sizes

# A workspace that may be a twin may have what is missing.
may_have_counterpart(_) if count(found.perhaps) > 0

name(compute) := parts[count(parts) - 1] if parts := split(ids.folded(compute.id), "/")

# The VM size, "?" where it should be stated and cannot be read; undefined of computes that have none of their own.
size(compute) := folded if {
	folded := words.folded(computes.size(compute))
} else := "?" if has_nodes(compute)

has_nodes(compute) if computes.kind(compute) in {"amlcompute", "computeinstance"}

found := twins.of(input.resource, input.parameters.pair_tag, input.snapshot)
