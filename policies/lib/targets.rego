# METADATA
# description: >-
#   What training targets support, and the runs of a workload: itself, or the steps of its pipeline. A feature of a run is
#   true, false or null, its target null for the `reason` that it gives.
package lib.targets

import data.lib.computes
import data.lib.ids
import data.lib.numbers

# has_feature(workload, feature): whether training has a feature in one of its runs, as far as known.
has_feature(workload, feature) if {
	_may_train(workload.purpose)
	some run in workload.runs
	run.features[feature] != false
}

_may_train("training") := true

_may_train(null) := true

# unsupported(workload, feature, extra): the runs with the feature whose target does not support it, each as `shown`.
# `extra` is the parameter `extra_targets`.
unsupported(workload, feature, extra) := {shown(run) |
	workload.purpose == "training"
	some run in workload.runs
	run.features[feature] == true
	support(feature, run.target, extra) == "no"
}

# doubts(workload, feature, extra): why it is not known of a run whether its target supports the feature.
doubts(workload, feature, extra) := {doubt |
	some run in workload.runs
	run.features[feature] != false
	doubt = _doubt(workload, run, feature, extra)
}

_doubt(workload, run, feature, extra) := run.reason if {
	run.target == null
} else := "the documents support it on this target in the local mode of the SDK only" if {
	support(feature, run.target, extra) == "sdk-local-mode"
} else := "the documents do not list the target for training" if {
	support(feature, run.target, extra) == "unlisted"
} else := "it is not known whether the work has the feature" if {
	support(feature, run.target, extra) == "no"
	run.features[feature] == null
} else := "it is not known whether this is training" if {
	support(feature, run.target, extra) == "no"
	workload.purpose == null
}

# support(feature, target, extra): `yes`, `no`, `sdk-local-mode` or `unlisted`. What the documents say goes first, the
# parameter decides what they leave open.
support(feature, target, extra) := said if {
	said = data.facts.training_targets[target][feature]
	said in {"yes", "no"}
} else := "yes" if {
	_stated(extra, target) == true
} else := "no" if {
	_stated(extra, target) == false
} else := said if {
	said = data.facts.training_targets[target][feature]
} else := "unlisted" if is_string(target)

_stated(extra, target) := [supported | some name, supported in extra; lower(trim_space(name)) == target][0]

# shown(run): what a denial says of a run.
shown(run) := object.remove(object.filter(run, _said), [key | some key in _said; run[key] == null])

_said := ["step", "target", "concurrentTrials"]

# nodes(run, by_id): how many nodes the cluster of a run may have; undefined where the snapshot does not say.
nodes(run, by_id) := numbers.whole(compute.properties.properties.scaleSettings.maxNodeCount) if {
	compute = ids.named(run.computeId, by_id)
	computes.kind(compute) == "amlcompute"
}
