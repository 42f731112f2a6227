# METADATA
# scope: package
# title: A compute instance keeps room on its OS disk
# description: >-
#   "The compute instance has 120GB OS disk. If you run out of disk space, use the terminal to clear at least 1-2 GB before
#   you stop or restart the compute instance." The newest sample of the metric `diskFreeBytes` up to as-of decides: its
#   minimum, else its average, is at least 2 GB of 1,073,741,824 bytes, as the disk is measured. Without samples nothing
#   is evaluated.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-manage-compute-instance]
# custom:
#   id: AML-OPS-101
#   severity: medium
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/computes
#       where:
#         /properties/computeType: [ComputeInstance]
#   remediation:
#     text: >-
#       Open a terminal of the instance and clear at least 2 GB (`df -h /`, `conda clean --all`, `docker system prune`,
#       files outside of `~/cloudfiles`) before it is stopped or restarted.
#   source: 001 "Training compute targets" (tip on the OS disk)
#   since: 0.1.0
package operations.free_disk

import data.lib.ids
import data.lib.times
import data.lib.words

least := 2 * 1073741824

applies if count(samples) > 0

deny contains {
	"msg": "the OS disk is almost full",
	"path": "/id",
	"actual": {"freeBytes": min(readings), "measured": newest[0].to},
	"expected": {"freeBytes": least},
} if {
	min(readings) < least
}

unknown contains {"msg": "the newest sample of free disk space gives no number of bytes", "path": "/id"} if {
	count(readings) < count(newest)
}

samples := [sample |
	some position in input.snapshot.by_measured[ids.folded(input.resource.id)]
	sample := input.snapshot.metrics[position]
	words.folded(sample.name) == "diskfreebytes"
	taken(sample) <= times.ordered(input.as_of)
]

# Several may be of one moment.
newest := [sample | some sample in samples; taken(sample) == latest]

latest := max([taken(sample) | some sample in samples])

readings := [free | some sample in newest; words.folded(sample.unit) in {"byte", "bytes"}; free := reading(sample)]

reading(sample) := sample.minimum if {
	is_number(sample.minimum)
} else := sample.average if {
	is_number(sample.average)
}

# A sample without a time is older than all others.
taken(sample) := moment if {
	moment := times.ordered(words.text(sample.to))
} else := []
