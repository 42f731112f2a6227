"""The environments and components that jobs and deployments name, and where their names lead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from policyeng.facts.ids import fold_id, workspace_of
from policyeng.facts.words import fold
from policyeng.models import JsonObject, Unknown, lowered
from policyeng.parsing.json_pointer import escaped

_REGISTRIES = "azureml://registries/"
_SCHEME = "azureml:"


class AssetReference(Struct, frozen=True):
    """A place where a job, a step of its pipeline, the trial of a sweep or a deployment names an asset.

    Attributes:
        pointer: the JSON Pointer of the place.
        written: what is written there: text that is not blank, or something else than text.
        holder: the object that has the reference.
        holder_pointer: the JSON Pointer of that object.
    """

    pointer: str
    written: object
    holder: JsonObject
    holder_pointer: str

    @property
    def name(self) -> str | None:
        """The reference in lower case; None if it is no text."""
        return fold(self.written)

    @property
    def registry(self) -> str | None:
        """The URI `azureml://registries/<registry>` in lower case, if that is where the asset is."""
        name = self.name or ""
        return _REGISTRIES + name.removeprefix(_REGISTRIES).partition("/")[0] if name.startswith(_REGISTRIES) else None


def list_references(resource: JsonObject, key: str, *, of_trial: bool = False) -> Iterator[AssetReference | Unknown]:
    """Yield the references under a key, and what is on the way to them and cannot be read.

    Args:
        resource: a job or a deployment.
        key: the name of the key, such as `environmentId`. The steps of pipelines spell it in several ways.
        of_trial: whether the trial of a sweep has the key.
    """
    properties = resource.get("properties")
    if properties is None:
        return
    if not isinstance(properties, dict):
        yield Unknown(msg="the properties are not an object", path="/properties")
        return
    yield from _list_of_holder(properties, "/properties", [key])
    trial = properties.get("trial") if of_trial else None
    if isinstance(trial, dict):
        yield from _list_of_holder(trial, "/properties/trial", [key])
    steps = properties.get("jobs")
    if isinstance(steps, dict):
        for name in steps:
            pointer = f"/properties/jobs/{escaped(name)}"
            if isinstance(steps[name], dict):
                yield from _list_of_step(steps[name], pointer, key)
            else:
                yield Unknown(msg="a step is not an object", path=pointer)
    elif steps is not None:
        yield Unknown(msg="the steps are not an object", path="/properties/jobs")


def _list_of_step(step: JsonObject, pointer: str, key: str) -> Iterator[AssetReference]:
    """Yield the references of a step: its own, and that of the trial if it is a sweep."""
    yield from _list_of_holder(step, pointer, list_spellings(step, key))
    trial = step.get("trial")
    if isinstance(trial, dict):
        yield from _list_of_holder(trial, f"{pointer}/trial", list_spellings(trial, key))


def _list_of_holder(holder: JsonObject, pointer: str, names: Iterable[str]) -> Iterator[AssetReference]:
    for name in names:
        written = holder.get(name)
        if written is not None and (not isinstance(written, str) or fold(written) is not None):
            yield AssetReference(f"{pointer}/{escaped(name)}", written, holder, pointer)


def list_spellings(step: JsonObject, key: str) -> list[str]:
    """Return the names in a step that are a key in any letter case, with or without underscores."""
    return [name for name in step if lowered(name).replace("_", "") == lowered(key)]


def find_asset(
    reference: AssetReference, noun: str, resource: JsonObject, by_id: Mapping[str, JsonObject]
) -> JsonObject | Unknown:
    """Return the version of an asset that a reference names, or why it is not known.

    A label, such as `@latest`, names another version at another time, so it leads nowhere.

    Args:
        reference: what is looked up.
        noun: `environment` or `component`.
        resource: what has the reference; short names are those of its workspace.
        by_id: that of the snapshot.
    """
    if reference.name is None:
        return Unknown(msg=f"the reference to the {noun} is not text", path=reference.pointer)
    arm_id = _arm_id(reference.name, workspace_of(resource["id"]) or "", f"{noun}s")
    found = by_id.get(arm_id) if arm_id else None
    if found is None or not lowered(found["type"]).endswith(f"/{noun}s/versions"):
        return Unknown(msg=f"the {noun} is not in the snapshot", path=reference.pointer)
    return found


def _arm_id(name: str, home: str, collection: str) -> str | None:
    """Return the lower-case ARM id of a name in lower case; None for a registry, a label or no name."""
    if name.startswith("azureml://subscriptions/"):
        parts = name.removeprefix("azureml:/").split("/")
        if "workspaces" in parts[5:6]:  # /subscriptions/S/resourcegroups/G/workspaces/W
            parts[5:5] = ["providers", "microsoft.machinelearningservices"]
        return fold_id("/".join(parts))
    path = name.removeprefix(_SCHEME)
    if path.startswith("//"):
        return None
    if path.startswith("/"):
        return fold_id(path)
    asset, _, version = path.partition(":")
    return f"{home}/{collection}/{asset}/versions/{version}" if home and asset and version else None
