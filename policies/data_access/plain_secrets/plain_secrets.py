"""Secrets that the settings of computes, connections, deployments, jobs, environments and schedules have as text."""

from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from policyeng import Denial, PolicyInput, Unknown, policy
from policyeng.facts.words import fold, get_inside, is_blank, list_stated_keys, trim
from policyeng.models import JsonObject
from policyeng.parsing.json_pointer import escaped
from policyeng.redaction import MASK, VALUE_EXPECTED, VALUE_FOUND, has_secret_shape, names_secret

_WORKSPACES = "Microsoft.MachineLearningServices/workspaces"
#: How a text begins, in lower case, that only refers to a secret.
_REFERENCES = ("${{", "{{", "azureml:", "@microsoft.keyvault(", "/subscriptions/")
_SHORTEST = 4
#: The settings of computes whose words Azure defines, or that the service sets; many formats do not state all of them.
_WITHOUT_SECRETS = frozenset(
    {
        *("allocationState", "applicationSharingPolicy", "clusterPurpose", "computeInstanceAuthorizationType"),
        *("connectivityEndpoints", "currentNodeCount", "errors", "lastOperation", "loadBalancerType"),
        *("nodeStateCounts", "osImageMetadata", "osType", "remoteLoginPortPublicAccess", "state"),
        *("targetNodeCount", "vmPriority", "vmSize"),
    }
)

Place = tuple[str, ...]
# Each key of a tree leads to what may have texts, and below an empty tree is the text. `*` is each member of an object,
# `[]` each item of a list, and `*?` each setting of a compute that is a text. A key with `?` at its end is read only
# where it is stated, as many formats do not have it.
_EACH: JsonObject = {"*": {}}
#: The commands write the steps of pipelines with the keys of their own format.
_STEP: JsonObject = {"environmentVariables": _EACH, "environment_variables?": _EACH}
_DEPLOYMENT: JsonObject = {**_STEP, "properties": _EACH}
_JOB: JsonObject = {**_DEPLOYMENT, "jobs": {"*": _STEP}}
_SERVICE: JsonObject = {"environmentVariables": {"*": {"value": {}}}}
#: The members of a connection's credentials that are secrets, whatever their names; the service defines the names.
_SECRET_MEMBERS = (
    *("clientSecret", "developerToken", "key", "password", "pat", "refreshToken", "sas", "secretAccessKey"),
    "securityToken",
)
_INSTANCE: JsonObject = {"setupScripts": {"scripts": {"*": {"scriptData": {}}}}, "customServices": {"[]": _SERVICE}}
#: By the last word of the type of a resource, what its `properties` have.
_PROPERTIES: Mapping[str, JsonObject] = {
    "computes": {"properties": {"*?": {}}},
    "deployments": _DEPLOYMENT,
    "jobs": _JOB,
    "versions": {"environmentVariables?": _EACH, "properties": _EACH},
    "connections": {"credentials": {**{f"{name}?": {} for name in _SECRET_MEMBERS}, "keys?": _EACH}},
    "schedules": {"properties": _EACH, "action": {"jobDefinition": _JOB}},
}


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
    "stay in its history, so a secret in them has to be replaced; a secret of a connection stays in the history of its "
    "file. A value counts by its shape, or by a name such as `DB_PASSWORD` unless it is a reference, a number, a "
    "boolean or very short.",
    related_resources=["https://learn.microsoft.com/azure/machine-learning/how-to-use-secrets-in-runs"],
    severity="high",
    judges=[
        f"{_WORKSPACES}/computes",
        f"{_WORKSPACES}/connections",
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
        if isinstance(found, _Other):
            message = "what is stated here cannot be read, so whether it is a secret is not known"
            yield Unknown(msg=message, path=_pointer_to(found))
        elif trim(found.text) == MASK:
            message = "the value is masked, so whether it is a secret is not known"
            yield Unknown(msg=message, path=_pointer_to(found))
        elif _is_secret(found, given.parameters["ignored_names"]):
            message = "a secret is in plain text"
            yield Denial(msg=message, path=_pointer_to(found), actual=VALUE_FOUND, expected=VALUE_EXPECTED)


def _pointer_to(found: _Text | _Other) -> str:
    return "".join(f"/{escaped(key)}" for key in found.place)


def _is_secret(found: _Text, ignored: Iterable[str]) -> bool:
    if has_secret_shape(found.text) or (not found.name and _has_encoded_secret(found.text)):
        return True
    text = trim(found.text)
    return names_secret(found.name, text) and not _is_harmless(text) and not _is_ignored(found.name, ignored)


def _has_encoded_secret(script: str) -> bool:
    """Check whether a script is in base64 and has the shape of a secret in it."""
    try:
        decoded = b64decode("".join(script.split()), validate=True)
    except ValueError:
        return False
    return has_secret_shape(decoded.decode(errors="replace"))


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
    yield from _texts_below(properties, _PROPERTIES[kind], place)
    if kind == "computes" and fold(get_inside(properties, "computeType")) == "computeinstance":
        settings = get_inside(properties, "properties")
        if isinstance(settings, dict):
            yield from _texts_below(settings, _INSTANCE, (*place, "properties"))


def _texts_below(value: object, tree: JsonObject, place: Place) -> _Found:
    """Yield the texts of a value at the places that a tree names, and what is none there."""
    if isinstance(value, str) and not tree:
        yield _Text(place, _name_of(place), value)
    elif isinstance(value, list) and "[]" in tree:
        for index, item in enumerate(value):
            yield from _texts_below(item, tree["[]"], (*place, str(index)))
    elif isinstance(value, dict) and tree and "[]" not in tree:
        for key, below in tree.items():
            for name in _list_names(value, key):
                yield from _texts_below(value.get(name), below, (*place, name))
    elif not (is_blank(value) or (not tree and isinstance(value, int | float))):
        yield _Other(place)


def _name_of(place: Place) -> str:
    """Return the name that tells whether a text is a secret; empty for a script."""
    if place[1] == "credentials":
        return "secret"
    if place[-1] == "scriptData":
        return ""
    return place[-2 if place[-1] == "value" else -1]


def _list_names(holder: JsonObject, key: str) -> list[str]:
    """Return the names that a key of a tree means in an object."""
    if key == "*":
        return list(holder)
    # What is known here is what is stated, whether or not the format of the input has other keys.
    known = list_stated_keys(holder)
    if key == "*?":
        return [name for name in known if name not in _WITHOUT_SECRETS and isinstance(holder[name], str)]
    name = key.removesuffix("?")
    return [name] if name in (key, *known) else []
