# METADATA
# scope: package
# title: Functions serve sporadic, event-driven inference
# description: >-
#   "While not typically used for high-throughput or low-latency inference, Azure Functions can be a suitable choice for
#   sporadic or event-driven inference scenarios." Work that never pauses pays for every call and gains nothing.
# related_resources: [https://learn.microsoft.com/azure/azure-functions/functions-scale]
# custom:
#   id: AML-INF-116
#   severity: low
#   judges:
#     - type: workload
#       where:
#         /target: [functions]
#   remediation:
#     text: >-
#       Serve continuous requests from a managed online endpoint (`az ml online-endpoint create`) or from AKS. Where the
#       cadence is not known, declare it: `cadence` with `sporadic`, `scheduled` or `continuous`.
#     patches:
#       - {patch: [{op: test, path: /purpose, value: realtime-inference}, {op: replace, path: /target, value: aks}],
#         provided: [AML-INF-110]}
#   source: 002 "Azure Functions"
#   monotone_in: {/cadence: [continuous, scheduled, sporadic]}
#   since: 0.1.0
package inference.functions_cadence

import data.lib.words

deny contains {
	"msg": "functions serve continuous inference",
	"path": "/cadence",
	"actual": input.resource.cadence,
	"expected": "sporadic or scheduled",
} if {
	cadence == "continuous"
}

unknown contains {"msg": "nothing states how often the work runs", "path": "/cadence"} if not cadence

cadence := words.folded(input.resource.cadence)
