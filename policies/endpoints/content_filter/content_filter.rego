# METADATA
# scope: package
# title: Models of AI services answer behind a content filter
# description: >-
#   Without a content filter, a model of an AI services account answers harmful requests and returns harmful content
#   to your application. Accounts that no connection of a workspace names are not evaluated.
# related_resources: [https://learn.microsoft.com/azure/ai-foundry/openai/concepts/content-filter]
# custom:
#   id: AML-END-204
#   severity: high
#   judges: [Microsoft.CognitiveServices/accounts/deployments]
#   remediation:
#     text: >-
#       Name a content filter in the deployment (`raiPolicyName`), such as `Microsoft.DefaultV2`, or enable
#       every filter of the named one and set it to block.
#   source: END-204
#   since: 0.2.0
package endpoints.content_filter

import data.lib.ids
import data.lib.settings
import data.lib.words

applies if is_connected

deny contains {
	"msg": "the deployment names no content filter",
	"path": settings.pointer(place),
	"actual": null,
	"expected": "the name of a content filter",
} if {
	settings.is_unset(input.resource, place)
}

deny contains {
	"msg": "a content filter of the deployment is off",
	"path": settings.pointer(place),
	"actual": {
		"policy": name,
		"off": {{"filter": filter.name, "source": object.get(filter, "source", null)} | some filter in off},
	},
	"expected": "every filter enabled and blocking",
} if {
	count(off) > 0
}

unknown contains {"msg": "the name of the content filter is not text", "path": pointer} if {
	pointer := settings.unreadable(input.resource, place, "string")
}

unknown contains {"msg": "the content filter is not in the snapshot", "path": settings.pointer(place)} if {
	name
	not is_default
	not filter_policy
}

unknown contains {"msg": "the content filter cannot be read", "path": settings.pointer(place)} if is_unreadable

name := words.text(settings.at(input.resource, place))

is_default if startswith(words.folded(name), "microsoft.default")

filter_policy := ids.named(concat("/", [account_id, "raiPolicies", words.folded(name)]), input.snapshot.by_id) if {
	not is_default
}

# The filters that are off.
off := {filter |
	some filter in guarding
	some key in ["enabled", "blocking"]
	settings.flag(filter[key]) == false
}

guarding := [filter | some filter in filter_policy.properties.contentFilters; is_guarding(filter)]

is_unreadable if settings.unreadable(filter_policy, ["properties", "contentFilters"], "array")

is_unreadable if {
	some filter in guarding
	some key in ["enabled", "blocking"]
	settings.is_unreadable_flag(object.get(filter, key, null))
}

is_unreadable if {
	some filter in filter_policy.properties.contentFilters
	not has_name(filter)
}

has_name(filter) if words.folded(filter.name)

is_guarding(filter) if {
	replace(words.folded(filter.name), "-", "") in {"hate", "sexual", "violence", "selfharm", "jailbreak"}
}

is_connected if {
	account := account_id
	some connection in input.snapshot.by_type["microsoft.machinelearningservices/workspaces/connections"]
	account in accounts_of(connection)
}

is_connected if {
	account := ids.named(account_id, input.snapshot.by_id)
	wanted := host(account.properties.endpoint)
	some connection in input.snapshot.by_type["microsoft.machinelearningservices/workspaces/connections"]
	host(connection.properties.target) == wanted
}

# The ids of the accounts that the metadata of a connection names.
accounts_of(connection) := {ids.folded(words.folded(named)) |
	some key, named in connection.properties.metadata
	words.folded(key) == "resourceid"
}

# The host of a URL in lower case.
host(url) := split(split(split(words.folded(url), "://")[1], "/")[0], ":")[0]

# The account of the deployment.
account_id := concat("/", array.concat([""], array.slice(names, 0, count(names) - 2)))

names := ids.segments(input.resource.id)
place := ["properties", "raiPolicyName"]
