"""Which role an assignment assigns that names it by `role_definition_name`: one that is made here, or a built-in one.

The names of built-in roles are those of the catalogue that comes with the policies (`policies/facts`).
"""

from __future__ import annotations

from functools import cache

from policyeng.bundle.tree import built_in_root
from policyeng.facts import Facts
from policyeng.models import lowered
from policyeng.sources.terraform.estate import Estate, Settled
from policyeng.sources.terraform.instances import Instance
from policyeng.strict.json_text import DEFAULT_MAX_BYTES, parse_json, shortened

ASSIGNMENT = "azurerm_role_assignment"
_DEFINITION = "azurerm_role_definition"
_ID, _NAME = "role_definition_id", "role_definition_name"
_BUILT_IN = "/providers/Microsoft.Authorization/roleDefinitions/"


def with_role(estate: Estate, instance: Instance, settled: Settled) -> Settled:
    """The attributes of an assignment with the id of its role in place of the name, where that is what is stated."""
    name = settled.values.get(_NAME)
    is_named = isinstance(name, str) or estate.configuration.expression(instance, f"/{_NAME}") is not None
    other = _NAME if settled.values.get(_ID) is not None or not is_named else _ID
    values = {key: value for key, value in settled.values.items() if key != other}
    unread = {at: why for at, why in settled.unread.items() if at != f"/{other}"}
    if other == _ID and isinstance(name, str):
        found = _made_here(estate, name) or _built_in(name)
        if found:
            values[_NAME] = found
        else:
            unread[f"/{_NAME}"] = _unknown(name)
    return Settled(values, unread)


def _unknown(name: str) -> str:
    known = f"`{_NAME}` is `{shortened(name)}`, which is neither made here nor a built-in role that is known"
    return f"{known}; give its `{_ID}`, or check the state after it, too (`terraform show -json`)"


def _made_here(estate: Estate, name: str) -> str:
    """The id of the custom role of the document that has a name; empty when there is not just one."""
    ids = {
        estate.identity(one)
        for one in estate.instances
        if one.type == _DEFINITION and lowered(str(one.values.get("name") or "")) == lowered(name)
    }
    return ids.pop() if len(ids) == 1 else ""


def _built_in(name: str) -> str:
    role = _catalogue().role(name)
    return f"{_BUILT_IN}{role.guid}" if role is not None and lowered(role.name) == lowered(name.strip()) else ""


@cache
def _catalogue() -> Facts:
    tables = {name: built_in_root() / "facts" / name / "data.json" for name in ("roles", "roles_elsewhere")}
    return Facts.from_document(
        {name: parse_json(path.read_bytes(), str(path), max_bytes=DEFAULT_MAX_BYTES) for name, path in tables.items()}
    )
