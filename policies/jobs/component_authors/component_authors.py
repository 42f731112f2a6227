"""Components of jobs whose authors are not allowed."""

from collections.abc import Iterator

from policyeng import Denial, PolicyInput, Unknown, policy
from policyeng.facts.asset_references import AssetReference, find_asset, list_references
from policyeng.facts.words import fold, get_inside, trim
from policyeng.models import lowered


def _applies(given: PolicyInput) -> bool:
    return bool(given.parameters["allowed_component_authors"]) and any(list_references(given.resource, "componentId"))


@policy(
    id="AML-JOB-003",
    title="Components are of allowed authors",
    description="A component runs with the permissions of the job that uses it, so its author must be one that you "
    "trust. Jobs with components are evaluated once `allowed_component_authors` is set.",
    related_resources=["https://learn.microsoft.com/azure/machine-learning/how-to-integrate-azure-policy"],
    severity="medium",
    judges=["Microsoft.MachineLearningServices/workspaces/jobs"],
    remediation="Use a component of an allowed author, or add the author to `allowed_component_authors` of "
    "AML-JOB-003.",
    source="JOB-03",
    parameters={
        "allowed_component_authors": {
            "type": "array",
            "items": {"type": "string", "pattern": r"\S"},
            "default": [],
            "description": "values of `systemData.createdBy` of components, and registries of components, such as "
            "`azureml://registries/azureml`; with none, nothing is evaluated",
        }
    },
    since="0.2.0",
    applies=_applies,
)
def component_authors(given: PolicyInput) -> Iterator[Denial | Unknown]:
    """Deny each component whose author or registry is not allowed."""
    for reference in list_references(given.resource, "componentId"):
        yield from [reference] if isinstance(reference, Unknown) else _findings(reference, given)


def _findings(reference: AssetReference, given: PolicyInput) -> Iterator[Denial | Unknown]:
    path, expected = reference.pointer, given.parameters["allowed_component_authors"]
    allowed = {lowered(trim(entry)).removesuffix("/") for entry in expected}
    if reference.registry:
        if reference.registry not in allowed:
            message = "the registry of the component is not allowed"
            yield Denial(msg=message, path=path, actual=reference.written, expected=expected)
        return
    component = find_asset(reference, "component", given.resource, given.snapshot.by_id)
    author = get_inside(component, "systemData", "createdBy")
    if isinstance(component, Unknown):
        yield component
    elif not (isinstance(author, str) and trim(author)):
        yield Unknown(msg="the component does not state who created it", path=path)
    elif fold(author) not in allowed:
        yield Denial(
            msg="the author of the component is not allowed",
            path=path,
            actual={"component": component["id"], "author": author},
            expected=expected,
        )
