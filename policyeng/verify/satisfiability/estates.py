"""The snapshots of a class of workloads: one for each combination of its choices, created when needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import NamedTuple

import orjson

from policyeng.bundle import Bundle
from policyeng.bundle.cases import STATED, Baselines, Case, baselines_of, estate, no_baseline
from policyeng.errors import BundleError, suggest_nearest
from policyeng.models import JsonObject, Snapshot, lowered
from policyeng.parsing.json_pointer import keys_of, list_index, member, merged
from policyeng.verify.generators.estates import copied_object
from policyeng.verify.generators.json_mutations import Json, put_value, remove
from policyeng.verify.satisfiability.classes import Choice, EstatePart, TableRows, WorkloadClass


class EstateEdit(NamedTuple):
    """A value at a place of a resource (by stem) or of a statement (by kind and number); REMOVED deletes it."""

    holder: str
    pointer: str
    value: object


#: The value of an edit that deletes its place.
REMOVED = object()


@dataclass(frozen=True)
class Assignment:
    """One combination of choices: a snapshot of the class.

    Attributes:
        chosen: the description of the chosen value, by choice.
        parts: the parts of the class and of the chosen options.
        edits: the chosen values at their places, in order.
    """

    chosen: Mapping[str, str]
    parts: tuple[EstatePart, ...]
    edits: tuple[EstateEdit, ...] = ()

    def edited(self, name: str, value: str, edit: EstateEdit) -> Assignment:
        """Return the assignment with one more choice."""
        return replace(self, chosen={**self.chosen, name: value}, edits=(*self.edits, edit))

    @property
    def stems(self) -> tuple[str, ...]:
        """The baselines of the snapshot, each once."""
        return tuple(dict.fromkeys(stem for part in self.parts for stem in part.estate))


class _Value(NamedTuple):
    """One of the values of a choice: its description, and its value by column."""

    words: str
    columns: Mapping[str, object]


@dataclass(frozen=True)
class ClassEstates:
    """A generator of the snapshots of one class for a bundle."""

    bundle: Bundle
    subject: WorkloadClass
    baselines: Baselines = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "baselines", baselines_of(self.bundle))

    @property
    def place(self) -> str:
        """The name of the class in errors."""
        return f"class `{self.subject.id}`"

    def assignments(self) -> Iterator[Assignment]:
        """Yield every distinct combination; a choice without a place in a snapshot is not made there.

        Raises:
            BundleError: a stem, a table or a column does not exist, or a pointer is invalid.
        """
        options = {name: choice for name, choice in self.subject.choices.items() if choice.options}
        values = {
            name: (choice, self._values(name, choice))
            for name, choice in self.subject.choices.items()
            if not choice.options
        }
        for picked in product(*(choice.options for choice in options.values())):
            chosen = dict(zip(options, picked, strict=True))
            parts = (self.subject, *(options[name].options[option] for name, option in chosen.items()))
            begun = Assignment(chosen, parts)
            yield from self._assign_values(begun, self._find_places(begun, values))

    def snapshot(self, assignment: Assignment) -> Snapshot:
        """Return the snapshot of an assignment.

        Raises:
            BundleError: a statement is not well formed.
        """
        resources, stated = self._find_holders(assignment)
        edited = {edit.holder for edit in assignment.edits}
        holders = {
            name: copied_object(resource) if name in edited else resource for name, resource in resources.items()
        }
        named = {f"{kind}/{number}": entry for kind in STATED for number, entry in enumerate(stated[kind])}
        for edit in assignment.edits:
            _write((holders | named)[edit.holder], edit)
        return estate(Baselines(holders, stated), Case(), f"{self.place}: {described(assignment)}")

    def documents(self) -> list[JsonObject]:
        """Return the material of the snapshots: the class itself, and the baselines that it names."""
        return [self.subject.model_dump(mode="json", exclude={"title", "source", "expected"}), *self._named_baselines()]

    def types(self) -> frozenset[str]:
        """Return the types in snapshots of the class, in lower case as in `judges`."""
        patched = [patch for part in self._parts() for patch in part.with_.values()]
        stated = (str(resource["type"]) for resource in (*self._named_baselines(), *patched) if "type" in resource)
        return frozenset({*map(lowered, stated), "workload", "approval"})

    def _parts(self) -> list[EstatePart]:
        return [self.subject, *(part for choice in self.subject.choices.values() for part in choice.options.values())]

    def _named_baselines(self) -> list[JsonObject]:
        stems = dict.fromkeys(stem for part in self._parts() for stem in part.estate)
        return [self.baselines.resources[stem] for stem in stems if stem in self.baselines.resources]

    def stem_of(self, assignment: Assignment, identity: str) -> str | None:
        """Return the stem of the resource with an ARM id."""
        resources, _ = self._find_holders(assignment)
        found = (stem for stem, resource in resources.items() if lowered(str(resource.get("id"))) == lowered(identity))
        return next(found, None)

    def standing(self, assignment: Assignment, stem: str) -> JsonObject:
        """Return the resource of a stem before the edits."""
        return self._find_holders(assignment)[0][stem]

    def _find_holders(self, assignment: Assignment) -> tuple[dict[str, JsonObject], dict[str, list[JsonObject]]]:
        patches: dict[str, JsonObject] = {}
        for part in assignment.parts:
            for stem, patch in part.with_.items():
                patches[stem] = merged(patches.get(stem, {}), patch, keep_null=True)
        for stem in (*assignment.stems, *patches):
            if stem not in self.baselines.resources:
                raise no_baseline(stem, self.baselines, self.place)
        resources = {stem: merged(self.baselines.resources[stem], patches.get(stem, {})) for stem in assignment.stems}
        stated = {kind: [dict(entry) for part in assignment.parts for entry in getattr(part, kind)] for kind in STATED}
        return resources, stated

    def _find_places(
        self, begun: Assignment, values: Mapping[str, tuple[Choice, Sequence[_Value]]]
    ) -> list[tuple[str, list[tuple[str, str, str]], Sequence[_Value]]]:
        """Return the places and values of each choice that has places in a snapshot."""
        resources, stated = self._find_holders(begun)
        named = {f"{kind}/{number}": entry for kind in STATED for number, entry in enumerate(stated[kind])}
        found = []
        for name, (choice, offered) in values.items():
            if any(begun.chosen.get(other) not in wanted for other, wanted in choice.when.items()):
                continue
            places = [place for place in choice.places() if self._has_place(name, place, resources | named)]
            if places:
                found.append((name, places, offered))
        return found

    def _has_place(self, name: str, place: tuple[str, str, str], holders: Mapping[str, JsonObject]) -> bool:
        holder, pointer, _ = place
        if holder not in holders:
            kind = holder.partition("/")[0]
            if kind not in STATED and holder not in self.baselines.resources:
                raise no_baseline(holder, self.baselines, f"{self.place}: choices.{name}.at")
            return False
        above: object = holders[holder]
        for key in keys_of(pointer)[:-1]:
            above = member(above, key)
        if not pointer.startswith("/") or not isinstance(above, dict | list):
            message = f"`{pointer}` does not exist in `{holder}`"
            raise BundleError(message, place=(f"{self.place}: choices.{name}.at",), remedy="write it as a JSON Pointer")
        return True

    @staticmethod
    def _assign_values(
        begun: Assignment, placed: Sequence[tuple[str, list[tuple[str, str, str]], Sequence[_Value]]]
    ) -> Iterator[Assignment]:
        for values in product(*(offered for *_, offered in placed)):
            chosen, edits = dict(begun.chosen), []
            for (name, places, _), value in zip(placed, values, strict=True):
                chosen[name] = value.words
                edits += [EstateEdit(holder, pointer, value.columns[column]) for holder, pointer, column in places]
            yield replace(begun, chosen=chosen, edits=tuple(edits))

    def _values(self, name: str, choice: Choice) -> list[_Value]:
        if not isinstance(choice.values, TableRows):
            return [_Value(orjson.dumps(value).decode(), {"name": value}) for value in choice.values]
        place = f"{self.place}: choices.{name}"
        rows = self._rows(choice.values, place)
        for _, _, column in choice.places():
            if any(column not in row for row in rows):
                raise BundleError(f"rows of `{choice.values.facts}` have no column `{column}`", place=(f"{place}.at",))
        return [_Value(str(row["name"]), row) for row in rows]

    def _rows(self, wanted: TableRows, place: str) -> list[JsonObject]:
        """Return the matching rows: first those without an end date in any table of facts, then those that end last.

        The order does not affect the answer, but a lasting witness is found early.
        """
        tables = self.bundle.data.get("facts", {})
        for table in (
            wanted.facts,
            *(entry["in"] for entry in wanted.where.values() if isinstance(entry, dict) and "in" in entry),
        ):
            if not isinstance(tables.get(table), dict):
                known = [name for name, rows in tables.items() if isinstance(rows, dict)]
                message = f"no table of facts is called `{table}`{suggest_nearest(table, known)}"
                raise BundleError(message, place=(place,), remedy=f"the tables are {', '.join(sorted(known))}")
        every = ({"name": key, **row} for key, row in tables[wanted.facts].items() if isinstance(row, dict))
        rows = [
            row for row in every if all(_fits(row.get(column), value, tables) for column, value in wanted.where.items())
        ]
        if not rows:
            raise BundleError(f"no row of `{wanted.facts}` fits `where`", place=(place,), remedy="remove a condition")
        dated = [table for table in tables.values() if isinstance(table, dict)]
        return sorted(rows, key=lambda row: _end_date(lowered(str(row["name"])), dated), reverse=True)


def _end_date(name: str, tables: Iterable[JsonObject]) -> str:
    dates = [str(row["date"]) for table in tables if isinstance(row := table.get(name), dict) and row.get("date")]
    return min(dates, default="9999")


def _fits(value: object, wanted: object, tables: Mapping[str, JsonObject]) -> bool:
    if isinstance(wanted, dict) and "above" in wanted:
        return isinstance(value, int | float) and value > wanted["above"]
    if isinstance(wanted, dict):
        return _fold(value) in map(_fold, tables[str(wanted["in"])])
    return _fold(value) in map(_fold, wanted if isinstance(wanted, list) else [wanted])


def _fold(value: object) -> object:
    return lowered(value) if isinstance(value, str) else value


def _write(document: Json, edit: EstateEdit) -> None:
    place: list[str | int] = []
    inner: object = document
    for key in keys_of(edit.pointer):
        index = list_index(key) if isinstance(inner, list) else None
        place.append(key if index is None else index)
        inner = member(inner, key)
    if edit.value is REMOVED:
        remove(document, tuple(place))
    else:
        put_value(document, tuple(place), edit.value)  # type: ignore[arg-type]  # values of choices are JSON


def described(assignment: Assignment) -> str:
    """Return the choices in one line."""
    return ", ".join(f"{name} {value}" for name, value in assignment.chosen.items()) or "no choice"
