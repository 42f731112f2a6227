"""Property names as ARM spells them: it reads them without case, so templates write `VMSize` for `vmSize`.

Which names a member has, which objects have names of the user, and which texts are words of an enumeration is in
`policyeng.schema`. What the schema does not have, such as a member of a newer version, is spelled as policies spell it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import is_
from types import NoneType
from typing import Any, NamedTuple, cast

from policyeng._performance import IdentityKey
from policyeng.facts.words import SPACE, trim
from policyeng.models import JsonObject, lowered
from policyeng.parsing.json_pointer import escaped, keys_of
from policyeng.schema import ValueType, find_type, fold_name

#: By lower-case type of resources, names by themselves in lower case.
Spellings = Mapping[str, Mapping[str, str]]

#: Top-level keys of resources and of resource listings; a resource without `properties` has no others.
ENVELOPE = frozenset(
    {
        "apiVersion",
        "changedTime",
        "createdTime",
        "etag",
        "extendedLocation",
        "id",
        "identity",
        "kind",
        "location",
        "managedBy",
        "name",
        "placement",
        "plan",
        "properties",
        "provisioningState",
        "resourceGroup",
        "sku",
        "subscriptionId",
        "systemData",
        "tags",
        "tenantId",
        "type",
        "zones",
    }
)
#: By themselves in lower case; providers spell `etag` in two ways (budgets have `eTag`), and nothing reads it.
_TOP = {name.lower(): name for name in ENVELOPE if name != "etag"}

_NONE: Mapping[str, str] = {}
NO_SPELLINGS: Spellings = {}
REMOVE_ONE = "remove one of the two"
#: So many other names of members are remembered for each object, so that they are not folded again and again.
_MOST_NAMES = 1 << 12
_SPACES = frozenset(SPACE)
_SCALARS = frozenset((int, bool, float, NoneType))


def describe_duplicate(pointers: Sequence[str]) -> str:
    """Return the message about two members with one name, by their pointers."""
    one, other = pointers
    return f"the member is there twice, as `{one}` and `{other}`, and ARM reads names without case"


class ArmObject(NamedTuple):
    """A resource, or a part of one, with the names that ARM has.

    Attributes:
        fields: by pointer into it, the pointer in what was given of what is spelled otherwise there.
        twice: the pointers of two members with one name, which ARM does not take; empty where there are none.
    """

    part: JsonObject
    fields: Mapping[str, str] = _NONE
    twice: tuple[str, ...] = ()


def as_arm_reads(part: JsonObject, arm_type: str, spellings: Spellings = NO_SPELLINGS) -> ArmObject:
    """Return a resource, or a patch of one, as ARM reads it: member names without case, words trimmed.

    Words are members of enumerations; the service reads them so (`System.Enum.Parse` of .NET).

    Args:
        part: the resource or the patch.
        arm_type: the type of the resource.
        spellings: the names of what the schema does not have, as in `Bundle.spellings`.
    """
    kind = lowered(arm_type)
    names = _registry(kind, kind if kind in spellings else "", IdentityKey(spellings)).of_resource
    if names.is_plain(part):
        return ArmObject(part)
    reading = _Reading({})
    read = reading.read(part, names, "", "")
    if reading.twice or read is part:
        return ArmObject(part, twice=min(reading.twice, default=()))
    return ArmObject(cast("JsonObject", read), reading.fields)


def respell(value: object, arm_type: str, fields: dict[str, str], there: str, here: str) -> Any:
    """Return a part of a resource as `as_arm_reads` has it; two members with one name stay.

    Args:
        value: the part, in which some values can be unresolved.
        arm_type: the type of the resource.
        fields: by pointer into the resource, the pointer in the document; those of other names are added.
        there: the JSON Pointer of the part in the document.
        here: its JSON Pointer in the resource.
    """
    return _Reading(fields).read(value, _names_at(arm_type, here), there, here)


def respell_pointer(pointer: str, arm_type: str, here: str = "") -> str:
    """Return a JSON Pointer into a part of a resource as `respell` spells its parts.

    `here` is that of the part in the resource.
    """
    names, spelled = _names_at(arm_type, here), ""
    for key in keys_of(pointer):
        name = names.name_of(key)
        spelled, names = f"{spelled}/{escaped(name)}", names.inside(name)
    return spelled


def top_level_name(key: str) -> str:
    """Return a key of a resource as ARM spells it; one that ARM does not have stays as it is written."""
    return key if key in ENVELOPE else _TOP.get(fold_name(key), key)


class _MemberNames:
    """The names of the members of one object, and of what is below it; of all objects where its type is not known."""

    __slots__ = ("_entries", "_fine", "_inside", "_registry", "_type", "discriminator", "has_words")

    def __init__(self, kind: ValueType | None, registry: _Registry) -> None:
        self._type, self._registry = kind, registry
        self._inside: dict[str, _MemberNames] = {}
        self._entries: _MemberNames | None = None
        self._fine = set(kind.types if kind is not None else ())
        self.discriminator = kind.discriminator if kind is not None else ""
        self.has_words = kind is not None and bool(kind.words)

    def of(self, value: Mapping[str, object]) -> _MemberNames:
        """Return the names of an object by its kind; the same where it states none."""
        if not self.discriminator or self._type is None:
            return self
        by = self.discriminator
        if by not in value:
            by = next((key for key in value if fold_name(key) == fold_name(by)), by)
        kind = self._type.of_value({self.discriminator: value.get(by)})
        return self if kind is self._type else self._registry.names_of(kind)

    def name_of(self, key: str) -> str:
        """Return the name of a member as ARM spells it; what is the user's, or can be anything, stays as it is."""
        if self._type is not None:
            if key in self._type.types:
                return key
            if name := self._type.spellings.get(fold_name(key)):
                return name
            if self._type.values is not None or self._type.is_any:
                return key
        return self._registry.others.get(fold_name(key), key)

    def inside(self, name: str) -> _MemberNames:
        """Return the names in the value of a member."""
        names = self._inside.get(name)
        if names is None:
            kind = self._type.step(name) if self._type is not None else None
            is_users = kind is None and name == "tags"
            names = self._registry.of_users if is_users else self._registry.names_of(kind)
            if self._type is not None and name in self._type.types:
                self._inside[name] = names
        return names

    @property
    def entries(self) -> _MemberNames:
        """The names in the entries of a list."""
        if self._entries is None:
            self._entries = self._registry.names_of(self._type.entries if self._type is not None else None)
        return self._entries

    def is_plain(self, value: object) -> bool:
        """Return whether nothing in a value needs another spelling, which is so of most resources.

        The names of an object are compared in one step with those that are fine; new ones are added there.
        """
        # Two lists: a pair for each object would be one more for the collection of garbage.
        holders: list[Any] = [value]
        all_names: list[_MemberNames] = [self]
        for holder, names in zip(holders, all_names, strict=True):
            if type(holder) is dict:
                if names.discriminator:
                    names = names.of(holder)
                if not holder.keys() <= names._fine and not names._are_fine(holder):
                    return False
                inside = names._inside
                for key, inner in holder.items():
                    kind = type(inner)
                    if kind is str:
                        if inner and (inner[0] in _SPACES or inner[-1] in _SPACES) and names.inside(key).has_words:
                            return False
                    elif kind is dict or kind is list:
                        holders.append(inner)
                        all_names.append(inside.get(key) or names.inside(key))
                    elif kind not in _SCALARS:
                        return False
            else:
                entries = names.entries
                for inner in holder:
                    kind = type(inner)
                    if kind is dict or kind is list:
                        holders.append(inner)
                        all_names.append(entries)
                    elif kind is str:
                        if entries.has_words and inner != trim(inner):
                            return False
                    elif kind not in _SCALARS:
                        return False
        return True

    def _are_fine(self, holder: JsonObject) -> bool:
        for key in holder.keys() - self._fine:
            if self.name_of(key) != key:
                return False
            if len(self._fine) < _MOST_NAMES:
                self._fine.add(key)
        return True


class _NamesOfResource(_MemberNames):
    """The names of the top-level keys of a resource."""

    __slots__ = ()

    def __init__(self, kind: ValueType | None, registry: _Registry) -> None:
        super().__init__(kind, registry)
        self._fine |= ENVELOPE

    def name_of(self, key: str) -> str:
        """Return a key as ARM spells it."""
        name = top_level_name(key)
        return name if name in ENVELOPE else super().name_of(key)


class _NamesOfUsers(_MemberNames):
    """The names that users give, and what is below them."""

    __slots__ = ()

    def name_of(self, key: str) -> str:
        """Return the key."""
        return key


class _Registry:
    """The names of objects by what they are, and `others` by themselves without case: of what the schema lacks."""

    def __init__(self, arm_type: str, others: Mapping[str, str]) -> None:
        known = find_type(arm_type)
        self.others = others
        self.of_users = _NamesOfUsers(None, self)
        self.of_resource = _NamesOfResource(known.body if known else None, self)
        self._names: dict[ValueType | None, _MemberNames] = {}

    def names_of(self, kind: ValueType | None) -> _MemberNames:
        """Return the names of an object."""
        names = self._names.get(kind)
        if names is None:
            names = self._names[kind] = _MemberNames(kind, self)
        return names


@lru_cache(maxsize=256)
def _registry(kind: str, own: str, spellings: IdentityKey[Spellings]) -> _Registry:
    """Return the names of a lower-case type; `own` is it where the spellings have names for it alone."""
    more = spellings.value
    return _Registry(kind, {**more.get("", {}), **more.get(own, {})})


def _names_at(arm_type: str, pointer: str) -> _MemberNames:
    names: _MemberNames = _registry(lowered(arm_type), "", IdentityKey(NO_SPELLINGS)).of_resource
    for key in keys_of(pointer):
        names = names.inside(key)
    return names


class _Reading:
    """One reading of a part of a resource, with the places of what is spelled otherwise and of what is there twice."""

    def __init__(self, fields: dict[str, str]) -> None:
        self.fields = fields
        self.twice: list[tuple[str, str]] = []

    def read(self, value: object, names: _MemberNames, there: str, here: str) -> object:
        """Return a value with the names of ARM; the same where it has them."""
        if isinstance(value, list):
            entries = names.entries
            listed = [
                self.read(entry, entries, f"{there}/{index}", f"{here}/{index}") for index, entry in enumerate(value)
            ]
            return value if all(map(is_, listed, value)) else listed
        if isinstance(value, dict):
            return self._read_object(value, names.of(value), there, here)
        return trim(value) if names.has_words and isinstance(value, str) else value

    def _read_object(self, value: JsonObject, names: _MemberNames, there: str, here: str) -> JsonObject:
        alike: dict[str, list[str]] = {}
        for key in value:
            alike.setdefault(names.name_of(key), []).append(key)
        part: JsonObject = {}
        for key, inner in value.items():
            name = names.name_of(key)
            others = {*alike[name]} - {key}
            if others and name != key:  # which of them is reported does not depend on the order of members
                other = name if name in others else min(others)
                self.twice.append((f"{there}/{escaped(other)}", f"{there}/{escaped(key)}"))
                name = key
            pointer, place = f"{here}/{escaped(name)}", f"{there}/{escaped(key)}"
            if name != key:
                self.fields.setdefault(pointer, place)
            part[name] = self.read(inner, names.inside(name), self.fields.get(pointer, place), pointer)
        is_same = part.keys() == value.keys() and all(map(is_, part.values(), value.values()))
        return value if is_same else part
