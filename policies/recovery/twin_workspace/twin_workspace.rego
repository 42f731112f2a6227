# METADATA
# scope: package
# title: A twin of the workspace is in another region
# description: >-
#   Where a region fails, work goes on only where a workspace in another one was prepared. Twins are workspaces in
#   different regions with the same value of a tag; a workspace of production with the tag needs one.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-high-availability-machine-learning]
# custom:
#   id: AML-DR-001
#   severity: low
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   remediation:
#     text: >-
#       Create a workspace in another region and give both the same tag (`az resource tag --is-incremental --ids <id>
#       --tags dr-group=<name>`).
#   source: DR-01
#   parameters:
#     pair_tag: {type: string, pattern: '\S', default: dr-group, description: the tag that twins share}
#     require_pair:
#       type: boolean
#       default: false
#       description: whether a workspace of production without the tag fails, too
#   since: 0.2.0
package recovery.twin_workspace

import data.lib.tags
import data.lib.twins
import data.lib.words

applies if {
	twins.is_evaluated(input.resource)
	is_asked
}

is_asked if has_tag

is_asked if input.parameters.require_pair

deny contains {
	"msg": "the workspace names no group of twins",
	"path": pointer,
	"actual": null,
	"expected": "a tag that a workspace in another region shares",
} if {
	not has_tag
}

deny contains {
	"msg": "no twin of the workspace is in another region",
	"path": pointer,
	"actual": stated,
	"expected": "a workspace in another region with the same value",
} if {
	is_alone
	count(doubts) == 0
}

unknown contains doubt if {
	is_alone
	some doubt in doubts
}

unknown contains {"msg": "the value of the tag is not text", "path": pointer} if {
	type_name(stated) != "string"
}

pointer := tags.pointer(input.parameters.pair_tag)

has_tag if stated != null

# The value of the tag, undefined where the workspace has none.
stated := words.tag(input.resource, input.parameters.pair_tag)

is_alone if {
	is_string(stated)
	count(found.certain) == 0
}

# Why a twin may exist that is not certain.
doubts contains {
	"msg": "the tag or the region of a workspace that may be the twin cannot be read",
	"path": pointer,
} if {
	count(found.perhaps) > 0
}

doubts contains {"msg": "the snapshot is incomplete: a twin may exist", "path": pointer} if {
	count(input.snapshot.incomplete) > 0
}

found := twins.of(input.resource, input.parameters.pair_tag, input.snapshot)
