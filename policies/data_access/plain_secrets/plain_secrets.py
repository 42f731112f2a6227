"""Secrets that the settings of computes, deployments, jobs, environments and schedules have in plain text."""

from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from policyeng import Denial, PolicyInput, Unknown, policy
from policyeng.facts.words import fold, trim
from policyeng.models import JsonObject
from policyeng.parsing.json_pointer import escaped
from policyeng.redaction import MASK, VALUE_EXPECTED, VALUE_FOUND, has_secret_shape, names_secret

_WORKSPACES = "Microsoft.MachineLearningServices/workspaces"
#: The commands write the steps of pipelines with the keys of their own format.
_VARIABLES = ("environmentVariables", "environment_variables")
#: How a text begins, in lower case, that only refers to a secret.
_REFERENCES = ("${{", "{{", "azureml:", "@microsoft.keyvault(", "/subscriptions/")
_SHORTEST = 4
#: The settings of computes whose words Azure defines, or that the service sets; many formats do not state all of them.
_WITHOUT_SECRETS = frozenset(
    {
        *("allocationState", "applicationSharingPolicy", "clusterPurpose", "computeInstanceAuthorizationType"),
        *(
            "connectivityEndpoints",
            "currentNodeCount",
            "errors",
            "lastOperation",
            "loadBalancerType",
            "nodeStateCounts",
        ),
        *(
            "osImageMetadata",
            "osType",
            "remoteLoginPortPublicAccess",
            "state",
            "targetNodeCount",
            "vmPriority",
            "vmSize",
        ),
    }
)

Place = tuple[str, ...]


class _Text(NamedTuple):
    """A text where a secret may be, with the name of the variable or property; a script has none."""

    place: Place
    name: str
    text: str


class _Other(NamedTuple):
    """The place of what is neither a text nor a number or a boolean, or leads to none."""

    place: Place


_Found = Iterator[_Text | _Other]


@policy(
    id="AML-DAT-003",
    title="No secret is stored in plain text",
    description="Environment variables, properties and scripts are shown to everybody who may read the resource, and "
    "stay in its history, so a secret in them has to be replaced. A value counts by its shape, or by a name such as "
    "`DB_PASSWORD` unless it is a reference, a number, a boolean or very short.",
    related_resources=["https://learn.microsoft.com/azure/machine-learning/how-to-use-secrets-in-runs"],
    severity="high",
    judges=[
        f"{_WORKSPACES}/computes",
        f"{_WORKSPACES}/onlineEndpoints/deployments",
        f"{_WORKSPACES}/batchEndpoints/deployments",
        f"{_WORKSPACES}/jobs",
        f"{_WORKSPACES}/environments/versions",
        f"{_WORKSPACES}/schedules",
    ],
    remediation="Replace the secret, move it to Key Vault and read it from there with a managed identity, or use a "
    "managed identity in place of it.",
    parameters={
        "ignored_names": {
            "type": "array",
            "items": {"type": "string", "pattern": r"\S"},
            "default": [],
            "description": "regular expressions on names of variables and properties that are no names of secrets",
        }
    },
    source="DAT-03",
    since="0.2.0",
)
def plain_secrets(given: PolicyInput) -> Iterator[Denial | Unknown]:
    """Deny each text that is a secret by its shape or by its name; what is masked may be one."""
    for found in _list_texts(given.resource):
        pointer = "".join(f"/{escaped(key)}" for key in found.place)
        if isinstance(found, _Other):
            yield Unknown(
                msg="what is stated here cannot be read, so whether it is a secret is not known", path=pointer
            )
        elif trim(found.text) == MASK:
            yield Unknown(msg="the value is masked, so whether it is a secret is not known", path=pointer)
        elif _is_secret(found, given.parameters["ignored_names"]):
            yield Denial(
                msg="a secret is in plain text",
                path=pointer,
                actual=VALUE_FOUND,
                expected=VALUE_EXPECTED,
            )


def _is_secret(found: _Text, ignored: Iterable[str]) -> bool:
    if has_secret_shape(found.text) or (not found.name and has_secret_shape(_decode(found.text))):
        return True
    text = trim(found.text)
    return names_secret(found.name, text) and not _is_harmless(text) and not _is_ignored(found.name, ignored)


def _decode(script: str) -> str:
    """Return the text of a script in base64; empty where it is in plain text."""
    try:
        return b64decode("".join(script.split()), validate=True).decode(errors="replace")
    except ValueError:
        return ""


def _is_harmless(text: str) -> bool:
    lower = text.lower()
    is_in_vault = lower.startswith("https://") and ".vault." in lower.removeprefix("https://").partition("/")[0]
    is_number = lower.lstrip("+-").replace(".", "", 1).isdecimal()
    is_short = len(text) < _SHORTEST or lower in ("true", "false")
    return is_short or is_number or is_in_vault or lower.startswith(_REFERENCES)


def _is_ignored(name: str, ignored: Iterable[str]) -> bool:
    import re2

    return any(re2.search(expression, name) for expression in ignored)


def _list_texts(resource: JsonObject) -> _Found:
    """Yield the texts of a resource where secrets may be, and what is none there."""
    kind, place = resource["type"].lower().rpartition("/")[2], ("properties",)
    properties = resource.get("properties")
    if not isinstance(properties, dict):
        yield from _unexpected(properties, place)
    elif kind == "computes":
        yield from _texts_of_settings(properties.get("properties"), (*place, "properties"))
        if fold(properties.get("computeType")) == "computeinstance":
            yield from _texts_of_instance(properties.get("properties"), (*place, "properties"))
    elif kind == "schedules":
        yield from _in_each(properties.get("properties"), (*place, "properties"), _texts_of_value)
        yield from _texts_of_action(properties.get("action"), (*place, "action"))
    else:
        # An environment has no variables of its own in most formats.
        if kind != "versions" or "environmentVariables" in _known_keys(properties):
            yield from _texts_of_step(properties, place)
        yield from _in_each(properties.get("properties"), (*place, "properties"), _texts_of_value)
        if kind == "jobs":
            yield from _in_each(properties.get("jobs"), (*place, "jobs"), _texts_of_step)


def _texts_of_settings(settings: object, place: Place) -> _Found:
    """Yield the texts among the settings of a compute, which are also numbers, objects and lists."""
    if isinstance(settings, dict):
        for key in _known_keys(settings):
            if key not in _WITHOUT_SECRETS and isinstance(value := settings[key], str):
                yield _Text((*place, key), key, value)
    else:
        yield from _unexpected(settings, place)


def _texts_of_instance(settings: object, place: Place) -> _Found:
    if isinstance(settings, dict):
        setup = settings.get("setupScripts")
        if isinstance(setup, dict):
            yield from _in_each(setup.get("scripts"), (*place, "setupScripts", "scripts"), _texts_of_script)
        else:
            yield from _unexpected(setup, (*place, "setupScripts"))
        yield from _in_each(settings.get("customServices"), (*place, "customServices"), _texts_of_service)


def _texts_of_action(action: object, place: Place) -> _Found:
    definition = action.get("jobDefinition") if isinstance(action, dict) else action
    inner = (*place, "jobDefinition") if isinstance(action, dict) else place
    if isinstance(definition, dict):
        yield from _texts_of_step(definition, inner)
        yield from _in_each(definition.get("properties"), (*inner, "properties"), _texts_of_value)
        yield from _in_each(definition.get("jobs"), (*inner, "jobs"), _texts_of_step)
    else:
        yield from _unexpected(definition, inner)


def _texts_of_step(step: object, place: Place) -> _Found:
    """Yield the variables of a job, a step of a pipeline or a deployment."""
    if isinstance(step, dict):
        for key in _VARIABLES:
            if key == _VARIABLES[0] or key in _known_keys(step):
                yield from _in_each(step.get(key), (*place, key), _texts_of_value)
    else:
        yield from _unexpected(step, place)


def _texts_of_script(script: object, place: Place) -> _Found:
    text = script.get("scriptData") if isinstance(script, dict) else script
    inner = (*place, "scriptData") if isinstance(script, dict) else place
    if isinstance(script, dict) and isinstance(text, str):
        yield _Text(inner, "", text)
    else:
        yield from _unexpected(text, inner)


def _texts_of_service(service: object, place: Place) -> _Found:
    if isinstance(service, dict):
        yield from _in_each(service.get("environmentVariables"), (*place, "environmentVariables"), _texts_of_variable)
    else:
        yield from _unexpected(service, place)


def _texts_of_variable(variable: object, place: Place) -> _Found:
    if isinstance(variable, dict):
        for found in _texts_of_value(variable.get("value"), (*place, "value")):
            yield found._replace(name=place[-1]) if isinstance(found, _Text) else found
    else:
        yield from _unexpected(variable, place)


def _texts_of_value(value: object, place: Place) -> _Found:
    if isinstance(value, str):
        yield _Text(place, place[-1], value)
    elif not isinstance(value, int | float):
        yield from _unexpected(value, place)


def _in_each(holder: object, place: Place, texts_of: Callable[[object, Place], _Found]) -> _Found:
    """Yield what each member of an object has, or each item of the list of services."""
    if isinstance(holder, dict):
        for key, member in holder.items():
            yield from texts_of(member, (*place, key))
    elif isinstance(holder, list) and place[-1] == "customServices":
        for index, item in enumerate(holder):
            yield from texts_of(item, (*place, str(index)))
    else:
        yield from _unexpected(holder, place)


def _unexpected(value: object, place: Place) -> _Found:
    """Yield a place where neither nothing nor the expected is stated."""
    if not (value is None or (isinstance(value, str) and not trim(value))):
        yield _Other(place)


def _known_keys(holder: JsonObject) -> list[str]:
    """Return the keys that are stated, whether or not the format of the input has others."""
    return list(getattr(holder, "known_keys", holder.keys)())
