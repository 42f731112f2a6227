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
	some run in workload.runs
	run.features[feature] != false
	workload.purpose in {"training", null}
}

# unsupported(workload, feature, parameters): the runs with the feature whose target does not support it, each as
# `shown`. Of the parameters, `extra_targets` and `vendor_targets` count.
unsupported(workload, feature, parameters) := {shown(run) |
	some run in workload.runs
	run.features[feature] == true
	support(feature, run.target, parameters) == "no"
	workload.purpose == "training"
}

# doubts(workload, feature, parameters): why it is not known of a run whether its target supports the feature.
doubts(workload, feature, parameters) := {doubt |
	some run in workload.runs
	run.features[feature] != false
	doubt := _doubt(workload, run, feature, parameters)
}

_doubt(workload, run, feature, parameters) := run.reason if {
	run.target == null
} else := "the target supports it in the local mode of the SDK only" if {
	support(feature, run.target, parameters) == "sdk-local-mode"
} else := "no list of training targets has this target" if {
	support(feature, run.target, parameters) == "unlisted"
} else := "it is not known whether the work has the feature" if {
	support(feature, run.target, parameters) == "no"
	run.features[feature] == null
} else := "it is not known whether this is training" if {
	support(feature, run.target, parameters) == "no"
	workload.purpose == null
}

# support(feature, target, parameters): `yes`, `no`, `sdk-local-mode` or `unlisted`. The vendor's list of today goes first
# where the parameter `vendor_targets` is true, then the documents' table; `extra_targets` decides what they leave open.
support(feature, target, parameters) := listed if {
	listed := _listed(feature, target, parameters)
	listed in {"yes", "no"}
} else := "yes" if {
	_stated(parameters.extra_targets, target) == true
} else := "no" if {
	_stated(parameters.extra_targets, target) == false
} else := listed if {
	listed := _listed(feature, target, parameters)
} else := "unlisted" if is_string(target)

_listed(feature, target, parameters) := listed if {
	parameters.vendor_targets == true
	listed := data.facts.offered_targets[target][feature]
} else := data.facts.training_targets[target][feature]

_stated(extra, target) := [supported | some name, supported in extra; lower(trim_space(name)) == target][0]

# shown(run): what a denial reports of a run.
shown(run) := {key: run[key] | some key in ["step", "target", "concurrentTrials"]; run[key] != null}

# nodes(run, by_id): how many nodes the cluster of a run may have; undefined where the snapshot does not state it.
nodes(run, by_id) := numbers.whole(compute.properties.properties.scaleSettings.maxNodeCount) if {
	compute := ids.named(run.computeId, by_id)
	computes.kind(compute) == "amlcompute"
}
