# METADATA
# scope: package
# title: A workspace says that it was reviewed
# description: Nothing is wrong with this policy; no class of workloads has the tag, which is a further choice.
# custom:
#   id: BROKEN-TAGS-001
#   severity: low
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   inspects: [/tags/reviewed]
#   when_absent: fail
#   remediation: {text: Have the workspace reviewed and set the tag.}
#   source: process guideline, section 1
package tags.reviewed

deny contains {
	"msg": "the workspace was not reviewed",
	"path": "/tags/reviewed",
	"actual": reviewed,
	"expected": "yes",
} if {
	reviewed != "yes"
}

reviewed := object.get(input.resource, ["tags", "reviewed"], null)
