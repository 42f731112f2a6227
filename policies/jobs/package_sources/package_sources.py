"""Packages of environments from indexes that are not allowed."""

from collections.abc import Iterator

from policyeng import Denial, PolicyInput, Unknown, policy
from policyeng.facts.asset_references import AssetReference, find_asset, list_references, list_spellings
from policyeng.facts.package_sources import (
    DEFAULT_INDEX,
    INDEX_VARIABLES,
    PackageSources,
    is_below,
    is_listed,
    normalized_source,
    parse_conda,
)
from policyeng.facts.words import fold, get_inside, is_blank
from policyeng.models import JsonObject
from policyeng.parsing.json_pointer import escaped

_MASKED = "***"
_MESSAGE = "packages come from an index that is not allowed"


def _applies(given: PolicyInput) -> bool:
    return bool(given.parameters["allowed_package_indexes"]) and any(
        list_references(given.resource, "environmentId", of_trial=True)
    )


@policy(
    id="AML-JOB-002",
    title="Packages come from allowed indexes",
    description="A package from an untrusted index can run malicious code in your jobs. The conda files of "
    "environments and the variables that name an index are evaluated once `allowed_package_indexes` is "
    "set. Packages of pip without an index come from https://pypi.org/simple.",
    related_resources=["https://learn.microsoft.com/azure/machine-learning/how-to-use-private-python-packages"],
    severity="high",
    judges=[
        "Microsoft.MachineLearningServices/workspaces/jobs",
        "Microsoft.MachineLearningServices/workspaces/onlineEndpoints/deployments",
        "Microsoft.MachineLearningServices/workspaces/batchEndpoints/deployments",
    ],
    remediation="Name an allowed index in the conda file (`--index-url <url>` as the first entry of `pip`, and "
    "`channels`), or add the index to `allowed_package_indexes` of AML-JOB-002.",
    source="JOB-02",
    parameters={
        "allowed_package_indexes": {
            "type": "array",
            "items": {"type": "string", "pattern": r"^\S+$"},
            "default": [],
            "description": "addresses of indexes for pip, and names or addresses of channels for conda; with none, "
            "nothing is evaluated",
        }
    },
    since="0.2.0",
    applies=_applies,
)
def package_sources(given: PolicyInput) -> Iterator[Denial | Unknown]:
    """Deny each index and channel that is not allowed."""
    listed = list(list_references(given.resource, "environmentId", of_trial=True))
    references = [one for one in listed if isinstance(one, AssetReference)]
    yield from (one for one in listed if isinstance(one, Unknown))
    whole = {"/properties": given.resource["properties"]} if references else {}
    replacing = set[str]()
    for pointer, holder in {**whole, **{one.holder_pointer: one.holder for one in references}}.items():
        is_step = pointer.startswith("/properties/jobs/")
        names = list_spellings(holder, "environmentVariables") if is_step else ["environmentVariables"]
        for name in names:
            place = f"{pointer}/{escaped(name)}"
            yield from _of_variables(holder.get(name), place, given)
            if _replaces_default(holder.get(name)):
                replacing.add(pointer)
    for reference in references:
        is_replaced = not replacing.isdisjoint(("/properties", reference.holder_pointer))
        environment = find_asset(reference, "environment", given.resource, given.snapshot.by_id)
        if isinstance(environment, Unknown):
            yield environment
        else:
            yield from _of_environment(environment, reference.pointer, given, is_replaced=is_replaced)


def _replaces_default(variables: object) -> bool:
    names = variables if isinstance(variables, dict) else {}
    return any(INDEX_VARIABLES.get(name.upper()) and fold(names[name]) is not None for name in names)


def _of_variables(variables: object, place: str, given: PolicyInput) -> Iterator[Denial | Unknown]:
    """Yield what the environment variables of a job, a step or a deployment state about indexes."""
    if variables is None:
        return
    if not isinstance(variables, dict):
        yield Unknown(msg="the environment variables are not an object", path=place)
        return
    allowed = given.parameters["allowed_package_indexes"]
    for name in variables:
        if name.upper() not in INDEX_VARIABLES:
            continue
        pointer, value = f"{place}/{escaped(name)}", variables[name]
        if not isinstance(value, str | None):
            yield Unknown(msg="the index is not text", path=pointer)
        for index in value.split() if isinstance(value, str) else ():
            # uv also takes `name=address`
            address = index[index.partition("://")[0].rfind("=") + 1 :]
            # an expression can contain spaces
            if _MASKED in address or "${{" in value:
                yield Unknown(msg="the index is masked, or an expression", path=pointer)
            elif not is_listed(address, allowed):
                yield Denial(msg=_MESSAGE, path=pointer, actual=normalized_source(address), expected=allowed)


def _of_environment(
    environment: JsonObject, path: str, given: PolicyInput, *, is_replaced: bool
) -> Iterator[Denial | Unknown]:
    """Yield what the conda file of an environment states about indexes."""
    allowed = given.parameters["allowed_package_indexes"]
    if get_inside(environment, "properties", "build") is not None:
        yield Unknown(msg="the environment is built from a Dockerfile, which ARM does not return", path=path)
    conda = get_inside(environment, "properties", "condaFile")
    if is_blank(conda):
        return
    if not isinstance(conda, str) or _MASKED in conda:
        yield Unknown(msg="the conda file is masked or not text", path=path)
        return
    sources = parse_conda(conda)
    yield from (Unknown(msg=doubt, path=path) for doubt in sources.doubts)
    defaults = [DEFAULT_INDEX] if sources.needs_default and not is_replaced else []
    for source in _unlisted(sources, defaults, allowed):
        found = {"environment": environment["id"], "source": source}
        yield Denial(msg=_MESSAGE, path=path, actual=found, expected=allowed)


def _unlisted(sources: PackageSources, defaults: list[str], allowed: list[str]) -> list[str]:
    named = [source for source in (*sources.named, *defaults) if not is_listed(source, allowed)]
    addresses = [address for address in sources.addresses if not is_below(address, allowed)]
    return sorted({normalized_source(source) for source in (*named, *addresses)})
