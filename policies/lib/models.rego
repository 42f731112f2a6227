# METADATA
# description: The models that deployments and serverless endpoints name.
package lib.models

import data.lib.ids
import data.lib.settings
import data.lib.words

_place := {
	"microsoft.machinelearningservices/workspaces/onlineendpoints/deployments": ["properties", "model"],
	"microsoft.machinelearningservices/workspaces/batchendpoints/deployments": ["properties", "model", "assetId"],
	"microsoft.machinelearningservices/workspaces/serverlessendpoints": ["properties", "modelSettings", "modelId"],
}

# pointer(resource): where a deployment or serverless endpoint names its model.
pointer(resource) := settings.pointer(_place[lower(resource.type)])

# id(resource): the model that it names, as it is written; undefined where it names none, or not in text.
id(resource) := words.text(object.get(resource, _place[lower(resource.type)], null))

# unreadable(resource): the JSON Pointer of what it states in the place of its model and is no text; undefined otherwise.
unreadable(resource) := settings.unreadable(resource, _place[lower(resource.type)], "string")

# registry(id): the registry in lower case that a URI `azureml://registries/<registry>/...` names, which may be blank;
# undefined for other ids.
registry(id) := split(words.folded(id), "/")[3] if startswith(words.folded(id), "azureml://registries/")

# full_id(resource): the model as an id that names its workspace or registry, in lower case and without a slash at its
# end. Undefined for a name without a version and for a label, which names another version at another time.
full_id(resource) := _full(id(resource)) if {
	_full(id(resource))
} else := concat("/", [ids.workspace_id(resource.id), "models", parts[1], "versions", parts[2]]) if {
	parts := split(words.folded(id(resource)), ":")
	parts[0] == "azureml"
	count(parts) == 3
}

# same(written, full): whether what is written is an id that names a workspace or registry, and is a model in full.
same(written, full) if _full(written) == full

# may_be_same(written, full): whether they are one model only perhaps: parts of an id are not stated yet.
may_be_same(written, full) if {
	ids.may_hold(_full(written), full)
	count(ids.segments(_full(written))) == count(ids.segments(full))
}

_full(written) := ids.folded(words.folded(written)) if {
	registry(written)
} else := ids.folded(trim_prefix(words.folded(written), "azureml:")) if {
	startswith(trim_prefix(words.folded(written), "azureml:"), "/")
}
