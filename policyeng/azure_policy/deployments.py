"""Deployments of models as the mode `Microsoft.MachineLearningServices.v2.Data` sees them."""

from __future__ import annotations

from policyeng.azure_policy.values import MISSING, read
from policyeng.models import JsonObject
from policyeng.rego.markers import UnknownValue

#: The mode, in lower case.
MODE = "microsoft.machinelearningservices.v2.data"
#: The type that its definitions name, and those of the resources that are meant.
KIND = "Microsoft.MachineLearningServices.v2.Data/workspaces/deployments"
JUDGED = tuple(
    f"Microsoft.MachineLearningServices/workspaces/{kind}Endpoints/deployments" for kind in ("batch", "online")
)
_REGISTRY = "azureml://registries/"


def as_data_plane(resource: JsonObject) -> JsonObject:
    """Return an online or batch deployment in the form that definitions of the mode read.

    Raises:
        Undecided: the model is not known.
    """
    model = read(resource, ("properties", "model"))
    if isinstance(model, dict):
        model = read(model, ("assetId",))
    document: JsonObject = {name: resource[name] for name in ("id", "name") if name in resource}
    if model is MISSING or not isinstance(model, str):
        return {**document, "type": KIND, "properties": {}}
    publisher = UnknownValue(f"{resource['id']}:/properties/model", "the publisher of a model is not in the snapshot")
    stated: JsonObject = {"assetId": model, "publisher": publisher}
    if model.lower().startswith(_REGISTRY):
        stated["registryName"] = model[len(_REGISTRY) :].partition("/")[0]
    return {**document, "type": KIND, "properties": {"model": stated}}
