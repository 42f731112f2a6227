"""Jobs and online deployments on environments that Microsoft does not maintain."""

from collections.abc import Iterator

from policyeng import Denial, PolicyInput, Unknown, policy
from policyeng.facts.asset_references import AssetReference, find_asset, list_references
from policyeng.facts.words import fold, get_inside, is_blank

_CURATED = "azureml://registries/azureml"


def _applies(given: PolicyInput) -> bool:
    return given.parameters["required"] is True and any(list_references(given.resource, "environmentId", of_trial=True))


@policy(
    id="AML-JOB-011",
    title="Jobs use curated environments",
    description="Microsoft patches curated environments regularly; you have to patch your own environments yourself. "
    "Jobs and online deployments are evaluated once `required` is true.",
    related_resources=["https://learn.microsoft.com/azure/machine-learning/concept-environments"],
    severity="info",
    judges=[
        "Microsoft.MachineLearningServices/workspaces/jobs",
        "Microsoft.MachineLearningServices/workspaces/onlineEndpoints/deployments",
    ],
    remediation="Use an environment of the registry `azureml` (`az ml environment list --registry-name azureml`).",
    source="JOB-11",
    parameters={
        "required": {
            "type": "boolean",
            "default": False,
            "description": "whether jobs and online deployments must use curated environments",
        }
    },
    since="0.2.0",
    applies=_applies,
)
def curated_environments(given: PolicyInput) -> Iterator[Denial | Unknown]:
    """Deny each environment that is known not to be curated."""
    for reference in list_references(given.resource, "environmentId", of_trial=True):
        yield from [reference] if isinstance(reference, Unknown) else _findings(reference, given)


def _findings(reference: AssetReference, given: PolicyInput) -> Iterator[Denial | Unknown]:
    path = reference.pointer
    if reference.registry == _CURATED:
        return
    environment = find_asset(reference, "environment", given.resource, given.snapshot.by_id)
    if isinstance(environment, Unknown):
        yield environment
        return
    kind = get_inside(environment, "properties", "environmentType")
    if is_blank(kind) or fold(kind) == "usercreated":
        yield Denial(
            msg="the environment is not curated",
            path=path,
            actual={"environment": environment["id"], "environmentType": kind},
            expected="an environment of the registry `azureml`, or one of the type Curated",
        )
    elif fold(kind) != "curated":
        yield Unknown(msg="the type of the environment is not a known value", path=path)
