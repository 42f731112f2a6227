# METADATA
# description: What an online endpoint and its deployments run on, as far as they state it.
package lib.endpoints

import data.lib.words

# kind(endpoint): the kind of an online endpoint in lower case. One that states none is `kubernetes` if it names a
# compute, else `managed`. Undefined if this is not text. `K8S` is the word of earlier API versions.
kind(endpoint) := _named(word) if {
	word := words.folded(endpoint.kind)
} else := "kubernetes" if {
	words.is_blank(object.get(endpoint, "kind", null))
	words.text(endpoint.properties.compute)
} else := "managed" if {
	words.is_blank(object.get(endpoint, "kind", null))
	words.is_blank(object.get(endpoint, ["properties", "compute"], null))
}

# deployment_kind(deployment): `managed`, also if an online deployment does not state it, `kubernetes` or
# `azuremlcompute`; undefined for anything else.
deployment_kind(deployment) := kind if {
	kind := _named(words.folded(deployment.properties.endpointComputeType))
	kind in {"managed", "kubernetes", "azuremlcompute"}
} else := "managed" if {
	words.is_blank(object.get(deployment, ["properties", "endpointComputeType"], null))
}

_named(word) := "kubernetes" if {
	word == "k8s"
} else := word
