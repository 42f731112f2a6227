"""How single values of Azure CLI documents are brought into ARM shape.

The CLI writes enumerations in snake case where ARM has Pascal case, and lists of named things where ARM has maps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from policyeng.models import JsonObject, lowered
from policyeng.parsing.json_pointer import escaped, value_at
from policyeng.sources.field_mapping import Bring, FieldMapping, UnfitError, boolean, chosen, text, whole
from policyeng.sources.parsed import kind_of

#: How some versions of the SDK print an enumeration: `ProvisioningState.SUCCEEDED`.
_MEMBER = re.compile(r"[A-Z][A-Za-z]*\.([A-Z][A-Z0-9_]*)")


def word(*words: str, others: Mapping[str, str] | None = None) -> Bring:
    """One of the words of an enumeration, by any spelling of it that the CLI takes or prints.

    Args:
        words: as ARM spells them.
        others: those that the CLI calls something else.
    """
    bring = chosen(dict([*((known, known) for known in words), *(others or {}).items()]))

    def brought(value: object) -> object:
        member = _MEMBER.fullmatch(value) if isinstance(value, str) else None
        return bring(member[1] if member else value)

    return brought


def switch(on: str, off: str) -> Bring:
    """A boolean as one of two words."""
    return lambda value: on if boolean(value) else off


def name(value: object) -> object:
    """A name, which YAML may take for a number."""
    return str(value) if type(value) is int else text(value)


def prose(value: object) -> object:
    """Text or an object for people and programs, in which braces and `$` are no placeholders."""
    return value


def tags(value: object) -> object:
    """An object of texts; numbers and booleans are written out, and ARM drops a null."""
    if isinstance(value, dict) and not any(isinstance(entry, (list, dict)) for entry in value.values()):
        return {key: str(entry) for key, entry in value.items() if entry is not None}
    raise UnfitError("an object of text")


def unfit_tags(table: Iterable[FieldMapping], document: JsonObject) -> dict[str, str]:
    """By JSON Pointer into a document, why one of its tags is none; the others are not touched by it."""
    return {
        at: f"`{at[1:]}` is {kind_of(entry)}; it should be text"
        for row in table
        if row.bring is tags and isinstance(held := value_at(document, row.source), dict)
        for key, entry in held.items()
        if isinstance(entry, (list, dict)) and (at := f"{row.source}/{escaped(key)}")
    }


def region(value: object) -> object:
    """A region by its name; ARM turns `East US` into that."""
    return lowered(str(text(value)).replace(" ", ""))


def listed(value: object) -> object:
    """A list, as it is."""
    if isinstance(value, list):
        return value
    raise UnfitError("a list")


def mapping(value: object) -> object:
    """An object, as it is."""
    if isinstance(value, dict):
        return value
    raise UnfitError("an object")


def lasting(unit: str) -> Bring:
    """An ISO 8601 duration from a whole number, above 0, of `S` (seconds) or `M` (minutes).

    The CLI leaves 0 out, so that what the service takes instead holds.
    """

    def bring(value: object) -> object:
        # The SDK prints the seconds of a time span, which are a floating-point number.
        number = whole(int(value) if isinstance(value, float) and value.is_integer() else value)
        if isinstance(number, int) and number > 0:
            return f"PT{number}{unit}"
        raise UnfitError("a whole number above 0")

    return bring


def renamed(names: Mapping[str, str]) -> Bring:
    """An object with some of its keys renamed, the others as they are."""
    return lambda value: {names.get(key, key): inner for key, inner in _object(value).items()}


def identity_type(value: object) -> object:
    """Which identities a resource has; ARM writes both without a space."""
    both = {"system_assigned,user_assigned": "SystemAssigned,UserAssigned"}
    spaceless = value.replace(" ", "") if isinstance(value, str) else value
    return word("SystemAssigned", "UserAssigned", "None", others=both)(spaceless)


def assigned(value: object) -> object:
    """User-assigned identities by id: a list of `resource_id` in most files, a map in those of workspaces."""
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
    FieldMapping("/identity/type", "/identity/type", identity_type),
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
