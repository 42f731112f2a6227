"""Read fields of resources that can be absent or unknown, and look up resources by reference."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from functools import lru_cache
from typing import Generic, Never, TypeVar

from policyeng.facts import Facts
from policyeng.facts.computes import COMPUTE_TYPE
from policyeng.facts.ids import fold_id, workspace_of
from policyeng.frozen import frozen
from policyeng.models import Carried, JsonObject, Snapshot, lowered
from policyeng.named import NamedTuple
from policyeng.parsing.json_pointer import keys_of

T_co = TypeVar("T_co", covariant=True)


class ResolvedValue(NamedTuple, Generic[T_co]):
    """A value; or an absence (neither value nor reason); or no value and the reason why it cannot be decided.

    A presumed value is not stated anywhere: a declared value replaces it. `among` are the only possible values of an
    undecided answer; empty if any is possible.
    """

    value: T_co | None = None
    reason: str = ""
    presumed: bool = False
    among: frozenset[T_co] = frozenset()

    @property
    def absent(self) -> bool:
        """Return whether no value is stated, which is different from undecided."""
        return self.value is None and not self.reason

    def or_reason(self, reason: str) -> ResolvedValue[T_co]:
        """Return the answer itself, or undecided for `reason` where it is absent."""
        return ResolvedValue(reason=reason) if self.absent else self


#: No value is stated.
ABSENT: ResolvedValue[Never] = ResolvedValue()


def undecided(reason: str, among: Iterable[T_co] = ()) -> ResolvedValue[T_co]:
    """No value, for this reason; where it is known, which values it may turn out to have."""
    return ResolvedValue(reason=reason, among=frozenset(among))


def get_first(*values: ResolvedValue[T_co]) -> ResolvedValue[T_co]:
    """Return the first answer that is not absent; an absence if all are."""
    for answer in values:
        if not answer.absent:
            return answer
    return ABSENT


def get_agreed(values: Iterable[ResolvedValue[T_co]], subject: str) -> ResolvedValue[T_co]:
    """Return the one value that all have; undecided if one is undecided or two differ.

    `subject` begins the reason, as in "the steps run on `a` and `b`". No values at all is an absence.
    """
    values = list(values)
    if len(values) == 1:
        return values[0]
    reasons = sorted({answer.reason for answer in values if answer.reason})
    among = [answer.among if answer.reason else frozenset(filter(None, [answer.value])) for answer in values]
    possible = frozenset().union(*among) if all(among) else frozenset()
    if reasons:
        return undecided(reasons[0], possible)
    distinct = {_text(answer.value): answer for answer in values}
    if len(distinct) > 1:
        return undecided(f"{subject} {quoted(distinct)}", possible)
    return next(iter(distinct.values()), ABSENT)


def joined(actual: ResolvedValue[T_co], declared: Iterable[T_co | None], field: str) -> ResolvedValue[T_co]:
    """Return the value from ARM, or else the declared value.

    Undecided if the two, or two declarations, contradict each other.
    """
    stated = {_text(value): value for value in declared if value is not None}
    if not stated:
        return actual
    texts = quoted(stated)
    if actual.value is None or actual.presumed:
        if len(stated) > 1:
            return ResolvedValue(reason=f"{field}: the declared workloads contradict each other: {texts}")
        return ResolvedValue(next(iter(stated.values())))
    if stated.keys() - {_text(actual.value)}:
        reason = f"{field}: ARM states `{_text(actual.value)}` but the declared workload states {texts}"
        return ResolvedValue(reason=reason)
    return actual


def quoted(texts: Iterable[str]) -> str:
    """Return the texts in order, as a reader sees them in a reason: "`a` and `b`"."""
    return " and ".join(f"`{text}`" for text in sorted(texts))


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


Segments = tuple[str, ...]


@frozen
class Unreadable:
    """A part of a resource that its format could not carry: where, as written, and why."""

    parts: Segments
    reason: str


@frozen
class CarriedFields:
    """The fields of a resource that a format has, by folded segments, and why it has no others."""

    pointers: tuple[Segments, ...]
    reason: str

    def covers(self, path: Segments) -> bool:
        """Return whether the format has the field at a path, or one above or below it."""
        return any(
            all(left == right or "*" in (left, right) for left, right in zip(path, known, strict=False))
            for known in self.pointers
        )


_NO_GAPS: Mapping[Segments, Unreadable] = {}


class Reader(NamedTuple):
    """One object inside a resource, with what its format could not carry.

    Keys compare without case and underscores: templates write `ContainerResourceRequirements`, pipeline steps
    `default_compute`, and ARM takes both. An exact key goes first.

    Attributes:
        body: the resource, or an object inside it.
        unreadable: by the folded segments of the pointer from the resource's root.
        base: the path of `body` in the resource.
        carried: the fields that its format has; None for all.
    """

    body: JsonObject
    unreadable: Mapping[Segments, Unreadable]
    base: Segments = ()
    carried: CarriedFields | None = None

    @property
    def id(self) -> str:
        """The ARM id of the resource as written, or the empty string."""
        arm_id = self.body.get("id")
        return arm_id if isinstance(arm_id, str) else ""

    def at(self, *path: str) -> ResolvedValue[object]:
        """Return the JSON value at `path`; null counts as absent."""
        here: object = self.body
        gaps = self.unreadable
        if not gaps and self.carried is None:
            for depth, key in enumerate(path):
                if here is None:
                    return ABSENT
                if not isinstance(here, dict):
                    return undecided(f"{self._pointer(path[:depth])} is not an object")
                here = here[key] if key in here else _get_any_spelling(here, key)
            return ABSENT if here is None else ResolvedValue(here)
        if gaps and (gap := gaps.get(_fold_keys(self.base))):
            return undecided(f"{self._pointer(())}: {gap.reason}")
        for depth, key in enumerate(path):
            if gaps and (gap := gaps.get(_fold_keys((*self.base, *path[: depth + 1])))):
                return undecided(f"{self._pointer(path[: depth + 1])}: {gap.reason}")
            if here is not None:
                if not isinstance(here, dict):
                    return undecided(f"{self._pointer(path[:depth])} is not an object")
                here = here[key] if key in here else _get_any_spelling(here, key)
        if here is None and self.carried is not None and not self.carried.covers(_fold_keys((*self.base, *path))):
            return undecided(f"{self._pointer(path)}: {self.carried.reason}")
        return ResolvedValue(here)

    def text(self, *path: str) -> ResolvedValue[str]:
        """Return the string at `path`, trimmed; a blank one counts as absent, any other type is undecided."""
        answer = self.at(*path)
        if isinstance(answer.value, str):
            return ResolvedValue(answer.value.strip() or None)
        return self._refused(answer, path, "a string")

    def number(self, *path: str) -> ResolvedValue[float]:
        """Return the finite number at `path`, also if written as a string, as in examples of ARM."""
        answer = self.at(*path)
        value = answer.value
        if isinstance(value, str):
            value = _parsed(value.strip().strip('"'))
        if isinstance(value, int) and not isinstance(value, bool):
            return ResolvedValue(value)
        if isinstance(value, float) and math.isfinite(value):
            return ResolvedValue(value)
        return self._refused(answer, path, "a number")

    def inside(self, *path: str) -> ResolvedValue[Reader]:
        """Return the object at `path`, to be read further."""
        answer = self.at(*path)
        if isinstance(answer.value, dict):
            return ResolvedValue(Reader(answer.value, self.unreadable, (*self.base, *path), self.carried))
        return self._refused(answer, path, "an object")

    def each(self, *path: str) -> ResolvedValue[tuple[Reader, ...]]:
        """Return every object inside the object at `path`, in the order of its keys; none where it is absent."""
        parent = self.inside(*path)
        if self.unreadable:
            written = {_fold(key) for key in parent.value.body} if parent.value else set()
            for pointer, gap in self._below(*path):
                if pointer not in written:  # an object that is left out as a whole
                    return undecided(f"`{pointer_to(*gap.parts)}`: {gap.reason}")
        if parent.value is None:
            return undecided(parent.reason) if parent.reason else ResolvedValue(())
        children = [parent.value.inside(key) for key in sorted(parent.value.body)]
        reason = next((child.reason for child in children if child.reason), "")
        return undecided(reason) if reason else ResolvedValue(tuple(child.value for child in children if child.value))

    def gaps_under(self, *path: str) -> Mapping[str, str]:
        """Reason by pointer, relative to `path`, of what is unreadable strictly below it, such as `/environment`."""
        if not self.unreadable:
            return {}
        depth = len(self.base) + len(path)
        return {pointer_to(*gap.parts[depth:]): gap.reason for _, gap in self._below(*path)}

    def lost_keys(self, *path: str) -> set[str]:
        """Return the keys of the object at `path` at or below which something is unreadable, as they are written."""
        if not self.unreadable:
            return set()
        depth = len(self.base) + len(path)
        return {gap.parts[depth] for _, gap in self._below(*path)}

    def _below(self, *path: str) -> Iterator[tuple[str, Unreadable]]:
        """Yield what is unreadable strictly below `path`, with the folded key below it that leads there."""
        top = _fold_keys((*self.base, *path))
        for pointer, gap in self.unreadable.items():
            if len(pointer) > len(top) and pointer[: len(top)] == top:
                yield pointer[len(top)], gap

    def _refused(self, answer: ResolvedValue[object], path: Segments, wanted: str) -> ResolvedValue[Never]:
        if answer.value is None:
            return undecided(answer.reason) if answer.reason else ABSENT
        return undecided(f"{self._pointer(path)} is not {wanted}")

    def _pointer(self, path: Segments) -> str:
        return f"`{pointer_to(*self.base, *path)}`"


def reader(body: JsonObject, unreadable: Mapping[str, str], carried: Carried | None = None) -> Reader:
    """Return a reader of a whole resource; `unreadable` and `carried` are those of a snapshot."""
    gaps = [Unreadable(_parts(pointer), reason) for pointer, reason in sorted(unreadable.items())]
    fields = None
    if carried is not None:
        fields = CarriedFields(
            (("id",), ("type",), *(_fold_keys(_parts(pointer)) for pointer in carried.pointers)), carried.reason
        )
    return Reader(body, {_fold_keys(gap.parts): gap for gap in gaps} if gaps else _NO_GAPS, carried=fields)


def _parts(pointer: str) -> Segments:
    return tuple(keys_of(pointer))


def pointer_to(*parts: str) -> str:
    """Return the JSON Pointer of these keys (RFC 6901)."""
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in parts)


def _fold_keys(parts: Segments) -> Segments:
    return tuple(_fold(part) for part in parts)


@lru_cache(maxsize=4096)  # documents use few keys, many times over
def _fold(key: str) -> str:
    return lowered(key).replace("_", "")


def _get_any_spelling(parent: JsonObject, key: str) -> object:
    """Return the value of the first key that is another spelling of one."""
    other = _find_spellings(tuple(parent)).get(_fold(key))
    return None if other is None else parent[other]


@lru_cache(maxsize=1024)  # many objects have the same keys
def _find_spellings(keys: tuple[str, ...]) -> dict[str, str]:
    """Return the first of the keys in each spelling, by what they have in common."""
    return {_fold(key): key for key in sorted(keys, reverse=True)}


def _parsed(text: str) -> float | None:
    """Return the number that a text writes in plain digits; a whole one that does not fit into 64 bits is a float."""
    if not text.isascii() or "_" in text:  # which Python reads all the same
        return None
    for read in (int, float):
        try:
            number = read(text)
        except ValueError:
            continue
        if isinstance(number, float) or number.bit_length() < 64:
            return number
    return None


#: Names of targets that can be used instead of a compute.
RESERVED = ("serverless", "local")

#: The target of a compute, by its `computeType` in lower case.
TARGETS = {
    "amlcompute": "compute-cluster",
    "computeinstance": "compute-instance",
    "kubernetes": "kubernetes",
    "aks": "aks",
    "virtualmachine": "attached-vm",
    "databricks": "databricks",
    "datalakeanalytics": "data-lake-analytics",
    "hdinsight": "hdinsight",
    "synapsespark": "synapse-spark",
    "batch": "batch",
}
#: Wherever a reference to a compute can lead.
_PLACES = (*RESERVED, *TARGETS.values())


def find_workspace(arm_id: str) -> str | None:
    """Return the id of the workspace of an id, in its spelling; None outside of a workspace."""
    folded = workspace_of(arm_id)
    return arm_id[: len(folded)] if folded else None


class Placement(NamedTuple):
    """Where work runs: the target and, where that is a compute of the snapshot, the compute."""

    target: ResolvedValue[str]
    compute: Reader | None = None


class ResourceLookup(NamedTuple):
    """The resources of a snapshot by id, None for deleted ones, with the facts about sizes.

    Attributes:
        queried: receives the ids that are looked up, whether they exist or not, unless it is None.
    """

    resources: MutableMapping[str, Reader | None]
    facts: Facts
    queried: set[str] | None = None

    def find(self, arm_id: str) -> Reader | None:
        """Return the resource with this id, compared without case."""
        key = fold_id(arm_id)
        if self.queried is not None:
            self.queried.add(key)
        return self.resources.get(key)

    def of_types(self, arm_types: Iterable[str]) -> dict[str, list[Reader]]:
        """Return the resources of some types, given in lower case.

        In one walk, because few resources are of any of them.
        """
        found: dict[str, list[Reader]] = {arm_type: [] for arm_type in arm_types}
        for resource in self.resources.values():
            named = resource.body.get("type") if resource is not None else None
            if resource is not None and isinstance(named, str) and (kind := lowered(named)) in found:
                found[kind].append(resource)
        return found

    def place(self, reference: ResolvedValue[str], workspace_id: str | None) -> Placement:
        """Return where a reference to a compute leads: an ARM id, `azureml:name`, or a name in the workspace.

        No reference and `serverless` are serverless compute, `local` is the submitter's machine. A pipeline expression
        and a name that the snapshot lacks are undecided.
        """
        if reference.value is None:
            return Placement(undecided(reference.reason) if reference.reason else ResolvedValue("serverless"))
        written = reference.value
        if "${{" in written:
            return Placement(undecided(f"the compute `{written}` is an expression", _PLACES))
        name = written[len("azureml:") :] if lowered(written).startswith("azureml:") else written
        arm_id = name if "/" in name else f"{workspace_id or ''}/computes/{name}"
        compute = self.find(arm_id)
        if compute and lowered(str(compute.body.get("type"))) == COMPUTE_TYPE:
            return Placement(_target(compute), compute)
        last = fold_id(arm_id).rpartition("/")[2]
        if last in RESERVED:
            return Placement(ResolvedValue(last))
        return Placement(undecided(f"the compute `{written}` is not in the snapshot", TARGETS.values()))


def build_estate(snapshot: Snapshot, facts: Facts) -> ResourceLookup:
    """Return the estate of a snapshot; of two resources with one id (which loading refuses) the last counts."""
    found: dict[str, Reader | None] = {}
    gaps = {fold_id(arm_id): pointers for arm_id, pointers in snapshot.unreadable.items()}
    carried_by_id = {fold_id(arm_id): carried for arm_id, carried in snapshot.carried.items()}
    for body in snapshot.resources:
        arm_id = body.get("id")
        if isinstance(arm_id, str) and (key := fold_id(arm_id)):
            is_whole = key not in gaps and key not in carried_by_id
            found[key] = Reader(body, _NO_GAPS) if is_whole else reader(body, gaps.get(key, {}), carried_by_id.get(key))
    return ResourceLookup(found, facts)


def _target(compute: Reader) -> ResolvedValue[str]:
    kind = compute.text("properties", "computeType").or_reason("its computeType is absent")
    target = TARGETS.get(lowered(kind.value or ""))
    if target:
        return ResolvedValue(target)
    why = kind.reason or f"the computeType `{kind.value}` is not a compute target"
    return undecided(f"compute `{compute.id}`: {why}")
