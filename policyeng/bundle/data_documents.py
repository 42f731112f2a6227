"""Data documents of a bundle, joined as OPA joins them."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from policyeng.bundle.parsing import bundle_json, bundle_yaml
from policyeng.bundle.tree import text_of
from policyeng.errors import BundleError
from policyeng.models import JsonObject


def join_document(data: JsonObject, path: PurePosixPath, content: bytes, root: Path) -> None:
    """Put a data document where its directory says, as OPA does; no two documents may give one key."""
    place = str(root / path)
    yaml = path.suffix != ".json"
    document = bundle_yaml(text_of(content, root / path), place) if yaml else bundle_json(content, place)
    holder: JsonObject = {"data": data}
    key = "data"
    for part in path.parts[:-1]:
        below = holder.setdefault(key, {})
        if not isinstance(below, dict):
            raise BundleError("it lies under a value of another data document that is no object", place=(place,))
        holder, key = below, part
    if isinstance(document, dict) and isinstance(holder.setdefault(key, {}), dict):
        clash = sorted(set(document) & set(holder[key]))
        if clash:
            raise BundleError(f"the key `{clash[0]}` stands in two data documents", place=(place,))
        holder[key].update(document)
    elif key == "data" or key in holder:
        raise BundleError("the data document is no object", place=(place,))
    else:
        holder[key] = document
