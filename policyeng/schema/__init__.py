"""The services' own schema: which members, kinds and words the resources of a type have.

`tools/schema` writes the data from the SDK packages of the vendor and a table of what they do not say; the members of
older and preview versions are in it. A file holds a namespace and is read when the first of its types is looked up;
an object is made of it when it is first reached. Names, types and members are known, and no defaults.

    >>> cluster = find_type("Microsoft.MachineLearningServices/workspaces/computes")
    >>> priority = cluster.body.at("/properties/properties/vmPriority")
    >>> sorted(priority.words.values())
    ['Dedicated', 'LowPriority']

A place can be of several types: `properties` of a compute whose kind is not known are those of any kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import NamedTuple, cast

import orjson

from policyeng.later import lazy_pattern
from policyeng.models import lowered
from policyeng.parsing.json_pointer import keys_of

__all__ = ["ObjectMember", "ResourceType", "ValueType", "find_type", "fold_name", "list_types", "list_word_names"]

_DATA = Path(__file__).parent
#: The name of a namespace, which is that of a file.
_NAMESPACE = lazy_pattern(r"[a-z]+(?:\.[a-z]+)+")


class ResourceType(NamedTuple):
    """A type of resources.

    Attributes:
        name: as the vendor spells it.
        version: the API version that describes it.
        body: what its resources are.
    """

    name: str
    version: str
    body: ValueType


class ObjectMember(NamedTuple):
    """A member of an object.

    Attributes:
        type: what its value is.
        required: a resource must have it, in at least one kind.
        read_only: the service sets it.
        create_only: it cannot be changed later.
        write_only: the service never returns it.
        versions: the API versions that have it, where the one that describes the object lacks it.
    """

    type: ValueType
    required: bool
    read_only: bool
    create_only: bool
    write_only: bool
    versions: tuple[str, ...]


class ValueType:
    """What the value at a place is: one of some types, such as the bodies of all kinds of a compute."""

    def __init__(self, namespace: _Namespace, expressions: frozenset[str]) -> None:
        self._namespace, self.expressions = namespace, expressions

    @cached_property
    def objects(self) -> tuple[str, ...]:
        """The names of the objects that it can be, each with its kinds."""
        found: dict[str, None] = {}
        waiting = sorted((kind[1:] for kind in self.expressions if kind[0] == "#"), reverse=True)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found[name] = None
                waiting += reversed(self._namespace.kinds(name)[1].values())
        return tuple(found)

    @cached_property
    def scalars(self) -> frozenset[str]:
        """Which of `string`, `boolean`, `integer`, `number` and `any` it can be."""
        return frozenset(kind for kind in self.expressions if kind[0] not in "#=[{")

    @cached_property
    def is_any(self) -> bool:
        """Whether nothing is known of the value."""
        return "any" in self.scalars

    @cached_property
    def words(self) -> Mapping[str, str]:
        """The members of its enumeration by themselves in lower case; empty for other values.

        Most enumerations are open: a word that is not in it can be newer than the schema.
        """
        names = sorted(kind[1:] for kind in self.expressions if kind[0] == "=")
        return {lowered(word): word for name in names for word in self._namespace.words(name)}

    @cached_property
    def entries(self) -> ValueType | None:
        """What the entries are if it can be a list; anything where nothing is known of it."""
        entries = self._inner("[]")
        return self._namespace.value_type(frozenset({"any"})) if entries is None and self.is_any else entries

    @cached_property
    def values(self) -> ValueType | None:
        """What the values are if it can be a map, whose keys are names of the user."""
        return self._inner("{}")

    @cached_property
    def members(self) -> Mapping[str, ObjectMember]:
        """The members that its objects have, by name."""
        stated: dict[str, list[str]] = {}
        for name in self.objects:
            for key, text in self._namespace.members(name).items():
                stated.setdefault(key, []).append(text)
        return {key: self._namespace.member_of(tuple(dict.fromkeys(texts))) for key, texts in stated.items()}

    @cached_property
    def types(self) -> Mapping[str, ValueType]:
        """What the values of its members are, by name."""
        return {key: member.type for key, member in self.members.items()}

    @cached_property
    def spellings(self) -> Mapping[str, str]:
        """The names of its members by themselves without case."""
        return {fold_name(key): key for key in sorted(self.members, reverse=True)}

    @cached_property
    def discriminator(self) -> str:
        """The member that says of which kind an object is; empty where nothing does."""
        names = dict.fromkeys(self._namespace.kinds(kind[1:])[0] for kind in sorted(self.expressions) if kind[0] == "#")
        stated = [*filter(None, names)]
        return stated[0] if len(stated) == 1 else ""

    @cached_property
    def kinds(self) -> Mapping[str, ValueType]:
        """By the value of `discriminator` in lower case, what an object of that kind is."""
        others, kinds = set[str](), dict[str, set[str]]()
        for kind in self.expressions if self.discriminator else ():
            of_kind = self._namespace.kinds(kind[1:])[1] if kind[0] == "#" else {}
            for word, name in of_kind.items():
                kinds.setdefault(lowered(word), set()).add(f"#{name}")
            if not of_kind:
                others.add(kind)
        return {word: self._namespace.value_type(frozenset(names | others)) for word, names in kinds.items()}

    def of_value(self, value: Mapping[str, object]) -> ValueType:
        """Return what an object is by the kind that it states; itself where it states none that is known."""
        stated = value.get(self.discriminator) if self.discriminator else None
        return self.kinds.get(lowered(stated.strip()), self) if isinstance(stated, str) else self

    def step(self, key: str) -> ValueType | None:
        """Return what the value at a key is: a member, a list's entry (any key), a map's value; None if there is none.

        Below a value of which nothing is known anything can be.
        """
        inner = [self.types[key]] if key in self.types else [one for one in (self.entries, self.values) if one]
        expressions = frozenset(kind for one in inner for kind in one.expressions)
        return self._namespace.value_type(expressions) if expressions else None

    def at(self, pointer: str) -> ValueType | None:
        """Return what the value at a JSON Pointer is, with any key for an entry of a list; None if there is none."""
        here: ValueType | None = self
        for key in keys_of(pointer):
            here = here.step(key) if here is not None else None
        return here

    def _inner(self, holder: str) -> ValueType | None:
        inner = frozenset(kind[2:] for kind in self.expressions if kind.startswith(holder))
        return self._namespace.value_type(inner) if inner else None


class _Namespace:
    """The data of a namespace, and what was made of it."""

    def __init__(self, document: dict[str, object]) -> None:
        self.versions = cast("list[str]", document["versions"])
        self.types = cast("dict[str, list[str]]", document["types"])
        self.spelled = {lowered(name): name for name in self.types}
        self._objects = cast("dict[str, dict[str, str]]", document["objects"])
        self._enumerations = cast("dict[str, list[str]]", document["enumerations"])
        self._value_types: dict[frozenset[str], ValueType] = {}
        self._members: dict[tuple[str, ...], ObjectMember] = {}

    def value_type(self, expressions: frozenset[str]) -> ValueType:
        known = self._value_types.get(expressions)
        if known is None:
            known = self._value_types[expressions] = ValueType(self, expressions)
        return known

    def members(self, name: str) -> dict[str, str]:
        return {key: text for key, text in self._objects[name].items() if key[-1:] != ":"}

    def kinds(self, name: str) -> tuple[str, dict[str, str]]:
        """Return the discriminator of an object and the names of its kinds; empty where it has none."""
        *_, (last, kinds) = self._objects[name].items()
        return (last[:-1], cast("dict[str, str]", kinds)) if last[-1:] == ":" else ("", {})

    def words(self, name: str) -> Iterable[str]:
        return (word.partition(" @")[0] for word in self._enumerations[name])

    def word_names(self) -> Iterator[str]:
        for members in self._objects.values():
            yield from (key for key, text in members.items() if "=" in text)

    def member_of(self, texts: tuple[str, ...]) -> ObjectMember:
        """Return a member by what the objects that have it say of it."""
        known = self._members.get(texts)
        if known is None:
            parts = [text.split(" ") for text in texts]
            flags = [next((part for part in rest if part[0] != "@"), "") for _, *rest in parts]
            masks = [next((int(part[1:], 16) for part in rest if part[0] == "@"), 0) for _, *rest in parts]
            mask = (
                0 if 0 in masks else sum({1 << at for one in masks for at in range(one.bit_length()) if one >> at & 1})
            )
            known = self._members[texts] = ObjectMember(
                self.value_type(frozenset(kind for kind, *_ in parts)),
                required=any("q" in one for one in flags),
                read_only=all("r" in one for one in flags),
                create_only=all("c" in one for one in flags),
                write_only=any("s" in one for one in flags),
                versions=tuple(version for at, version in enumerate(self.versions) if mask >> at & 1),
            )
        return known


def fold_name(name: str) -> str:
    """Return the name of a member without case; ARM takes no letter beyond ASCII, such as U+0130, for one in it."""
    return name.lower() if name.isascii() else name


@lru_cache(maxsize=1024)
def find_type(arm_type: str) -> ResourceType | None:
    """Return what is known of a type, in any letters; None for one that the schema does not have."""
    namespace = _load(lowered(arm_type).partition("/")[0])
    name = namespace.spelled.get(lowered(arm_type)) if namespace else None
    if namespace is None or name is None:
        return None
    model, version = namespace.types[name]
    return ResourceType(name, version, namespace.value_type(frozenset({f"#{model}"})))


def list_types() -> tuple[str, ...]:
    """Return the names of all types, as the vendor spells them."""
    loaded = (_load(path.stem) for path in sorted(_DATA.glob("*.json")))
    return tuple(name for namespace in loaded if namespace for name in namespace.types)


@lru_cache(maxsize=1)
def list_word_names() -> frozenset[str]:
    """Return the names of members that are enumerations in any type, without case."""
    loaded = (_load(path.stem) for path in sorted(_DATA.glob("*.json")))
    return frozenset(fold_name(name) for namespace in loaded if namespace for name in namespace.word_names())


@lru_cache(maxsize=64)
def _load(namespace: str) -> _Namespace | None:
    path = _DATA / f"{namespace}.json"
    if not _NAMESPACE.fullmatch(namespace) or not path.is_file():
        return None
    return _Namespace(orjson.loads(path.read_bytes()))
