package lib.models_test

import data.lib.models

_workspace := "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"

_online(model) := {
	"id": concat("", [_workspace, "/onlineEndpoints/e/deployments/d"]),
	"type": "Microsoft.MachineLearningServices/workspaces/onlineEndpoints/deployments",
	"properties": {"model": model},
}

_batch(model) := {
	"id": concat("", [_workspace, "/batchEndpoints/e/deployments/d"]),
	"type": "Microsoft.MachineLearningServices/workspaces/batchEndpoints/deployments",
	"properties": {"model": model},
}

_serverless(settings) := {
	"id": concat("", [_workspace, "/serverlessEndpoints/e"]),
	"type": "Microsoft.MachineLearningServices/workspaces/serverlessEndpoints",
	"properties": {"modelSettings": settings},
}

test_pointers if {
	models.pointer(_online("m")) == "/properties/model"
	models.pointer(_batch({})) == "/properties/model/assetId"
	models.pointer(_serverless({})) == "/properties/modelSettings/modelId"
}

test_ids if {
	models.id(_online("M")) == "M"
	models.id(_batch({"assetId": "m"})) == "m"
	models.id(_serverless({"modelId": "m"})) == "m"
}

test_no_model if {
	every resource in [_online(null), _online(" "), _batch(null), _batch({}), _serverless({"modelId": ""})] {
		not models.id(resource)
		not models.unreadable(resource)
	}
}

test_unreadable if {
	every resource in [_online(7), _online({"assetId": "m"}), _batch("m"), _batch({"assetId": []}), _serverless(true)] {
		not models.id(resource)
		models.unreadable(resource)
	}
}

test_registry if {
	models.registry("azureml://Registries/AzureML-Meta/models/llama/versions/1") == "azureml-meta"
	models.registry("azureml://registries/") == ""
	not models.registry("azureml:churn:1")
	not models.registry("azureml://registry/r/models/m")
}

_full := concat("", [lower(_workspace), "/models/churn/versions/1"])

test_full_id if {
	models.full_id(_online("azureml://registries/R/models/M/versions/1/")) == "azureml://registries/r/models/m/versions/1"
	models.full_id(_online(concat("", [_workspace, "/models/churn/versions/1"]))) == _full
	models.full_id(_online(concat("", ["azureml:", _workspace, "/models/Churn/versions/1"]))) == _full
	models.full_id(_online("azureml:churn:1")) == _full
	not models.full_id(_online("azureml:churn@latest"))
	not models.full_id(_online("churn"))
	not models.full_id(_online(null))
}

test_same if {
	models.same(concat("", ["azureml:", _workspace, "/models/Churn/versions/1/"]), _full)
	models.same("azureml://registries/R/models/m/versions/1", "azureml://registries/r/models/m/versions/1")
	not models.same("azureml:churn:1", _full)
	not models.same(concat("", [_full, "0"]), _full)
}

test_may_be_same if {
	open := replace(lower(_full), "/subscriptions/", "/subscriptions/{subscription}x")
	unstated := regex.replace(lower(_full), `^/subscriptions/[^/]+`, "/subscriptions/{subscription}")
	models.may_be_same(_full, unstated)
	not models.may_be_same(_full, lower(_full))
	not models.may_be_same(_full, open)
	not models.may_be_same(concat("", [_full, "0"]), unstated)
	not models.may_be_same(_workspace, unstated)
}
