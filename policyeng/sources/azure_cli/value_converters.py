"""Converters of single values of Azure CLI documents to ARM shape.

The CLI has enumerations in snake case where ARM has Pascal case, and lists of named objects where ARM has maps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from policyeng.models import JsonObject, lowered
from policyeng.parsing.json_pointer import escaped, value_at
from policyeng.sources.field_mapping import (
    Bring,
    FieldMapping,
    UnfitError,
    boolean,
    convert_integer,
    convert_word,
    text,
)
from policyeng.sources.parsed import kind_of

#: How some versions of the SDK print an enumeration: `ProvisioningState.SUCCEEDED`.
_MEMBER = re.compile(r"[A-Z][A-Za-z]*\.([A-Z][A-Z0-9_]*)")


def word(*words: str, others: Mapping[str, str] | None = None) -> Bring:
    """Return a converter to the words of an enumeration from any spelling that the CLI accepts or prints.

    Args:
        words: in ARM's spelling.
        others: ARM's words by the CLI's names that differ.
    """
    bring = convert_word(dict([*((known, known) for known in words), *(others or {}).items()]))

    def brought(value: object) -> object:
        member = _MEMBER.fullmatch(value) if isinstance(value, str) else None
        return bring(member[1] if member else value)

    return brought


def switch(on: str, off: str) -> Bring:
    """Return a converter of a boolean to one of two words."""
    return lambda value: on if boolean(value) else off


def name(value: object) -> object:
    """Convert a name to text; YAML can read a name as a number."""
    return str(value) if type(value) is int else text(value)


def prose(value: object) -> object:
    """Return free text or an object unchanged; braces and `$` in it are not placeholders."""
    return value


def tags(value: object) -> dict[str, str]:
    """Convert the values of tags to text; ARM drops a null."""
    if isinstance(value, dict) and not any(isinstance(entry, (list, dict)) for entry in value.values()):
        return {key: str(entry) for key, entry in value.items() if entry is not None}
    raise UnfitError("an object of text")


def unfit_tags(table: Iterable[FieldMapping], document: JsonObject) -> dict[str, str]:
    """Return by JSON Pointer why the value of a tag is invalid; other tags are not affected."""
    return {
        at: f"`{at[1:]}` is {kind_of(entry)}; it should be text"
        for row in table
        if row.bring is tags and isinstance(stated := value_at(document, row.source), dict)
        for key, entry in stated.items()
        if isinstance(entry, (list, dict)) and (at := f"{row.source}/{escaped(key)}")
    }


def region(value: object) -> object:
    """Convert a region to its name, as ARM does with `East US`."""
    return lowered(str(text(value)).replace(" ", ""))


def convert_list(value: object) -> list[object]:
    """Return a list unchanged."""
    if isinstance(value, list):
        return value
    raise UnfitError("a list")


def mapping(value: object) -> object:
    """Return an object unchanged."""
    if isinstance(value, dict):
        return value
    raise UnfitError("an object")


def convert_number(value: object) -> object:
    """Return a number unchanged."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    raise UnfitError("a number")


def convert_duration(unit: str) -> Bring:
    """Return a converter of a whole number above 0 to an ISO 8601 duration in `S` (seconds) or `M` (minutes).

    The CLI omits 0, and then the default of the service applies.
    """

    def bring(value: object) -> object:
        # The SDK prints the seconds of a time span as a floating-point number.
        number = convert_integer(int(value) if isinstance(value, float) and value.is_integer() else value)
        if isinstance(number, int) and number > 0:
            return f"PT{number}{unit}"
        raise UnfitError("a whole number above 0")

    return bring


def renamed(names: Mapping[str, str]) -> Bring:
    """Return a converter that renames some keys of an object."""
    return lambda value: {names.get(key, key): inner for key, inner in _object(value).items()}


def convert_identity_type(value: object) -> object:
    """Convert the type of an identity; ARM writes both types without a space."""
    both = {"system_assigned,user_assigned": "SystemAssigned,UserAssigned"}
    spaceless = value.replace(" ", "") if isinstance(value, str) else value
    return word("SystemAssigned", "UserAssigned", "None", others=both)(spaceless)


def assigned(value: object) -> object:
    """Convert user-assigned identities to a map by id, from a list of `resource_id` or a map (in workspaces)."""
    if isinstance(value, list):
        value = {str(text(_object(entry).get("resource_id"))): entry for entry in value}
    return {
        identity: {
            there: entry[here]
            for here, there in (("client_id", "clientId"), ("principal_id", "principalId"))
            if isinstance(entry, dict) and entry.get(here)
        }
        for identity, entry in _object(value).items()
    }


IDENTITY = (
    FieldMapping("/identity/type", "/identity/type", convert_identity_type),
    FieldMapping("/identity/user_assigned_identities", "/identity/userAssignedIdentities", assigned),
)
IDENTITY_PRINTED = (
    FieldMapping("/identity/principal_id", "/identity/principalId"),
    FieldMapping("/identity/tenant_id", "/identity/tenantId"),
)


def _object(value: object) -> JsonObject:
    if isinstance(value, dict):
        return value
    raise UnfitError("an object")
