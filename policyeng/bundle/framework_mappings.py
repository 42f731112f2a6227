"""The controls of frameworks that policies map to, from the framework documents of a bundle and from headers.

The documents are in the root `frameworks` of a bundle, where OPA reads them as data. They are large and no built-in
policy reads them, so the bundle stores them as text, apart from its data, and parses them only when controls are used.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

import orjson

from policyeng.bundle.policy_types import Policy
from policyeng.errors import BundleError
from policyeng.facts.catalogue import built_in_root
from policyeng.models import JsonObject, lowered

#: The key of `data` and the root of a bundle with the documents.
ROOT = "frameworks"


def is_framework_file(name: str) -> bool:
    """Return whether a framework is given as a file and not by its name."""
    return "/" in name or name.lower().endswith((".json", ".yaml", ".yml"))


def separate_frameworks(data: JsonObject, modules: Iterable[tuple[str, str]]) -> bytes:
    """Return the framework documents of a bundle as JSON, and remove them from its data unless a module names them.

    Raises:
        BundleError: they are no object of objects.
    """
    found = data.get(ROOT, {})
    if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
        raise BundleError("the frameworks are no object", place=(f"data.{ROOT}",), remedy="name each by a folder")
    if not any(ROOT in source for _, source in modules):
        data.pop(ROOT, None)
    return orjson.dumps(found) if found else b""


def shipped_frameworks() -> JsonObject:
    """Return the documents of the built-in frameworks by name."""
    places = sorted((built_in_root() / ROOT).glob("*/data.json"))
    return {place.parent.name: orjson.loads(place.read_bytes()) for place in places}


def controls_of(policies: Collection[Policy], frameworks: JsonObject) -> dict[str, tuple[str, ...]]:
    """Return the controls that each policy tests, as `FRAMEWORK:CONTROL`, by the id of the policy.

    Raises:
        BundleError: a header maps its policy to a control to which a framework maps it, too.
    """
    found: dict[str, list[str]] = {policy.id: [] for policy in policies}
    for name, document in frameworks.items():
        for control, identity in _direct_mappings(document):
            if identity in found:
                found[identity].append(f"{name}:{control}")
    for policy in policies:
        stated = [f"{name}:{control}" for name, ids in policy.header.controls.items() for control in ids]
        known = {lowered(control): control for control in found[policy.id]}
        if twice := [known[lowered(control)] for control in stated if lowered(control) in known]:
            message = f"the header of `{policy.id}` maps it to `{twice[0]}`, and so does the framework"
            raise BundleError(message, place=(policy.file,), remedy="remove it from `controls` of the header")
        found[policy.id] += stated
    return {policy: tuple(controls) for policy, controls in found.items() if controls}


def _direct_mappings(document: object) -> Iterator[tuple[str, str]]:
    """Yield the control and the policy of each direct mapping; `policyeng.frameworks` reports wrong documents."""
    for control in _list(document, "controls"):
        for mapping in _list(control, "policies"):
            if isinstance(mapping, dict) and isinstance(control, dict) and mapping.get("relevance") == "direct":
                yield str(control.get("id")), str(mapping.get("id"))


def _list(holder: object, key: str) -> list[object]:
    value = holder.get(key) if isinstance(holder, Mapping) else None
    return value if isinstance(value, list) else []
