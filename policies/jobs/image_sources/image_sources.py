"""Images of environments from registries that are not allowed."""

from collections.abc import Iterator

from policyeng import Denial, PolicyInput, Unknown, policy
from policyeng.facts.asset_references import AssetReference, find_asset, list_references
from policyeng.facts.images import is_from
from policyeng.facts.words import get_inside, trim
from policyeng.models import lowered


def _applies(given: PolicyInput) -> bool:
    return bool(given.parameters["allowed_image_sources"]) and any(
        list_references(given.resource, "environmentId", of_trial=True)
    )


@policy(
    id="AML-JOB-001",
    title="Images come from allowed registries",
    description="Anyone who can push to a container registry decides what runs with the permissions and the data of "
    "your jobs. Jobs, steps of pipelines and deployments are evaluated once `allowed_image_sources` is "
    "set.",
    related_resources=["https://learn.microsoft.com/azure/machine-learning/how-to-integrate-azure-policy"],
    severity="high",
    judges=[
        "Microsoft.MachineLearningServices/workspaces/jobs",
        "Microsoft.MachineLearningServices/workspaces/onlineEndpoints/deployments",
        "Microsoft.MachineLearningServices/workspaces/batchEndpoints/deployments",
    ],
    remediation="Push the image to an allowed registry and create a version of the environment with it, or add its "
    "source to `allowed_image_sources` of AML-JOB-001.",
    source="JOB-01",
    parameters={
        "allowed_image_sources": {
            "type": "array",
            "items": {"type": "string", "pattern": r"^\S+$"},
            "default": [],
            "description": "hosts or hosts with a path below which images may be, such as "
            "`amlrepo.azurecr.io/foo`, and registries of environments, such as `azureml://registries/azureml`; "
            "with none, nothing is evaluated",
        }
    },
    since="0.2.0",
    applies=_applies,
)
def image_sources(given: PolicyInput) -> Iterator[Denial | Unknown]:
    """Deny each environment whose image or registry is not allowed."""
    for reference in list_references(given.resource, "environmentId", of_trial=True):
        yield from [reference] if isinstance(reference, Unknown) else _findings(reference, given)


def _findings(reference: AssetReference, given: PolicyInput) -> Iterator[Denial | Unknown]:
    allowed, path = given.parameters["allowed_image_sources"], reference.pointer
    if reference.registry:
        if reference.registry not in {lowered(entry).removesuffix("/") for entry in allowed}:
            yield Denial(
                msg="the registry of the environment is not allowed",
                path=path,
                actual=reference.written,
                expected=allowed,
            )
        return
    environment = find_asset(reference, "environment", given.resource, given.snapshot.by_id)
    image = get_inside(environment, "properties", "image")
    if isinstance(environment, Unknown):
        yield environment
    elif not (isinstance(image, str) and trim(image)):
        yield Unknown(msg="the environment has no image", path=path)
    elif "***" in image or "${{" in image:
        yield Unknown(msg="the image of the environment is masked or an expression", path=path)
    elif not is_from(image, allowed):
        yield Denial(
            msg="the registry of the image is not allowed",
            path=path,
            actual={"environment": environment["id"], "image": image},
            expected=allowed,
        )
