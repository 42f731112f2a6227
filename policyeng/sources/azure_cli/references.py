"""References in Azure CLI documents: computes and assets by name, identities, and other files.

Source: azure-ai-ml 1.35.2, `_schema/core/fields.py` (ArmStr, ComputeField) and `entities/_credentials.py`.
"""

from __future__ import annotations

from policyeng.models import JsonObject, lowered
from policyeng.sources.field_mapping import Bring, UnfitError, convert_word, text

#: Computes that are not in the workspace.
RESERVED = ("serverless", "local")
_PREFIX = "azureml:"
_NO_ID_YET = "a reference with an id: the CLI adds this value to the {} only when it sends the file"

enabled = convert_word({"enabled": "Enabled", "disabled": "Disabled"})


def an_object(value: object) -> JsonObject:
    """Return an object unchanged."""
    if isinstance(value, dict):
        return value
    raise UnfitError("an object")


def compute_in(workspace: str) -> Bring:
    """Return a converter of `azureml:name`, `name` or an id to a compute's ARM id; `serverless` and `local` stay."""

    def bring(value: object) -> object:
        name = _bare(text(value))
        if lowered(name) in RESERVED:
            return lowered(name)
        return name if "/" in name else f"{workspace}/computes/{name}"

    return bring


def asset_in(workspace: str, collection: str) -> Bring:
    """Return a converter of `azureml:name:version` to an asset's ARM id; ids and registry references stay."""

    def bring(value: object) -> object:
        if not isinstance(value, str):
            raise UnfitError(_NO_ID_YET.format(collection))
        if lowered(value).startswith("azureml://"):
            return _check_version(value)
        name, _, version = _bare(value).rpartition(":")
        if _bare(value).startswith("/subscriptions/"):
            return _bare(value)
        if not lowered(value).startswith(_PREFIX):
            raise UnfitError(_NO_ID_YET.format(collection))
        if not name or "@" in version:
            raise UnfitError("a reference with a version, `azureml:name:version`: the service resolves labels")
        return f"{workspace}/{collection}/{name}/versions/{version}"

    return bring


def by_id(value: object) -> object:
    """Convert a list of ids, or of objects with `resource_id`, to ARM's object of user-assigned identities by id."""
    if not isinstance(value, list):
        raise UnfitError("a list")
    ids = [entry.get("resource_id") if isinstance(entry, dict) else entry for entry in value]
    return {str(text(entry)).removeprefix(_PREFIX): {} for entry in ids}


def convert_identity_type(value: object) -> object:
    """Convert `system_assigned`, `user_assigned`, both or `none` to ARM's spelling."""
    words = {"systemassigned": "SystemAssigned", "userassigned": "UserAssigned", "none": "None"}
    parts = [lowered(part).strip().replace("_", "") for part in str(text(value)).split(",")]
    return ",".join(words[part] for part in parts) if all(part in words for part in parts) else value


def milliseconds(value: object) -> object:
    """Convert a whole number of milliseconds to an ISO 8601 duration; a duration stays as it is."""
    if isinstance(value, str) and lowered(value.strip()).startswith("p"):
        return value.strip()
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**15:
        seconds, rest = divmod(value, 1000)
        return f"PT{seconds}.{rest:03d}".rstrip("0").rstrip(".") + "S" if rest else f"PT{seconds}S"
    raise UnfitError("a whole number of milliseconds")


def is_label(value: object) -> bool:
    """Check whether a reference has no version, so its meaning can change."""
    return isinstance(value, str) and (
        "@" in value or "/labels/" in value or (lowered(value).startswith(_PREFIX) and ":" not in _bare(value))
    )


def file_of(value: object) -> str:
    """Return the path in a file reference, `./x.yml` or `file:./x.yml`; empty if it is not a file reference."""
    if not isinstance(value, str) or not value.strip():
        return ""
    written = value.strip()
    if lowered(written).startswith("file:"):
        return written[len("file:") :].removeprefix("//")
    remote = lowered(written).startswith((_PREFIX, "azureml://", "/subscriptions/")) or "://" in written
    return "" if remote else written


def _bare(value: object) -> str:
    written = str(value).strip()
    return written[len(_PREFIX) :].strip() if lowered(written).startswith(_PREFIX) else written


def _check_version(value: str) -> str:
    if "/versions/" in lowered(value):
        return value
    raise UnfitError("a reference with a version: the service resolves labels")
