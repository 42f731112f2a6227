# METADATA
# description: >-
#   ARM ids, compared by whole segments and without case. `policyeng.facts.ids` does the same in Python, and is stricter
#   about what an id may have between its slashes.
package lib.ids

# segments(id): the parts after the slashes, in lower case, none for `/`; one slash at the end makes no difference.
# Undefined for what is not an id: no slash first, or a blank part.
segments(id) := [] if {
	id == "/"
} else := parts if {
	is_string(id)
	startswith(id, "/")
	path := folded(id)
	not regex.match(`/[\p{Z}\t-\r\x{85}]*(/|$)`, path) # no blank part; one by one would take longer
	parts := split(substring(path, 1, -1), "/")
}

# is_at_or_under(id, scope): whether the id is the scope or something below it; `/` is above everything.
is_at_or_under(id, scope) if {
	outer := segments(scope)
	array.slice(segments(id), 0, count(outer)) == outer
}

# may_hold(scope, id): whether the id is only perhaps at or under the scope: they would agree, but parts of one are still
# open. Such a part is in braces, where a template does not state the place of a deployment.
may_hold(scope, id) if agree_perhaps(segments(scope), segments(id))

# agree_perhaps(outer, parts): the same of their segments.
agree_perhaps(outer, parts) if {
	count(outer) <= count(parts)
	array.slice(parts, 0, count(outer)) != outer
	every index, part in outer {
		_may_be(part, parts[index])
	}
}

_may_be(one, other) if one == other

_may_be(one, other) if {
	some part in [one, other]
	startswith(part, "{")
	endswith(part, "}")
}

# folded(id): an id in lower case and without a slash at its end, for comparing.
folded(id) := trim_suffix(lower(id), "/")

# subscription(id): the subscription that it is in, in lower case.
subscription(id) := parts[1] if {
	parts := segments(id)
	parts[0] == "subscriptions"
}

# scopes(id): the set of the ids, in lower case, of itself and of the resource group and the subscription that it is in.
scopes(id) := {scope |
	parts := segments(id)
	some length in [2, 4, count(parts)]
	length <= count(parts)
	scope := concat("/", array.concat([""], array.slice(parts, 0, length)))
}

# workspace_id(id): the Machine Learning workspace that it is or is in, in lower case; types and names come in pairs.
workspace_id(id) := concat("/", array.concat([""], array.slice(parts, 0, 8))) if {
	parts := segments(id)
	parts[0] == "subscriptions"
	parts[2] == "resourcegroups"
	array.slice(parts, 4, 7) == ["providers", "microsoft.machinelearningservices", "workspaces"]
	count(parts) > 7
	count(parts) % 2 == 0
}

# named(id, by_id): the resource of the snapshot that has the id.
named(id, by_id) := by_id[folded(id)] if is_string(id)

# workspace_of(id, by_id): the workspace of the snapshot that it is or is in, null when there is none.
workspace_of(id, by_id) := workspace if {
	workspace := by_id[workspace_id(id)]
} else := null
