"""Classes of workloads: a snapshot with the work of the class, and a finite number of open choices.

A class is a YAML document, `classes/<id>.yaml`; `docs/satisfiability.md` describes its format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import orjson
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from policyeng.bundle import Bundle
from policyeng.bundle.cases import STATED, Baselines, Case, baselines_of, built_in_baselines, estate, no_baseline
from policyeng.bundle.header import TargetType
from policyeng.bundle.manifest import bundle_yaml
from policyeng.errors import BundleError, UsageError, suggest_nearest
from policyeng.models import JsonObject, Snapshot, lowered
from policyeng.parsing.json_pointer import keys_of, list_index, member, merged
from policyeng.verify.generators.estates import copied_object
from policyeng.verify.generators.json_mutations import Json, put_value, remove


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class TableRows(_Strict):
    """The names of the rows of one table of facts.

    Attributes:
        facts: a table below `data.facts`, such as `vm_sizes`.
        where: the condition for each column: a value or one of several, ignoring case, `{above: number}`,
            or `{in: table}`, which is a name in another table.
    """

    facts: str
    where: dict[str, JsonObject | list[Any] | str | int | float | bool] = {}

    @field_validator("where")
    @classmethod
    def _are_conditions(cls, value: dict[str, object]) -> dict[str, object]:
        for column, wanted in value.items():
            if isinstance(wanted, dict) and not (
                (wanted.keys() == {"above"} and isinstance(wanted["above"], int | float))
                or (wanted.keys() == {"in"} and isinstance(wanted["in"], str))
            ):
                raise ValueError(f"`{column}` takes a value, a list of them, `{{above: number}}` or `{{in: table}}`")
        return value


class EstatePart(_Strict):
    """A part of a snapshot; the parts of a class and of the options of its choices are merged.

    Attributes:
        estate: the stems of its baselines.
        with_: JSON Merge Patches (RFC 7386) on them, by stem.
    """

    estate: tuple[str, ...] = ()
    with_: dict[str, JsonObject] = Field(default={}, alias="with")
    approvals: list[JsonObject] = []
    workloads: list[JsonObject] = []
    quotas: list[JsonObject] = []
    metrics: list[JsonObject] = []
    principals: list[JsonObject] = []
    evidence: list[JsonObject] = []


class Choice(_Strict):
    """A choice: one of `options`, or one of `values`, which is then written at every place of `at`.

    Attributes:
        at: the JSON Pointers of the value, by the stem of a baseline, or by kind and number of a statement such as
            the value; of a row of facts, a pointer may be mapped to the column with the value, else to its name.
            Places that the estate lacks are left out.
        values: JSON values, or rows of a table of facts.
        options: the parts that each option adds, by name.
        when: the options of other choices with which this choice is open; by default, all.
    """

    at: dict[str, str | tuple[str, ...] | dict[str, str]] = {}
    values: TableRows | list[Any] = []
    options: dict[str, EstatePart] = {}
    when: dict[str, tuple[str, ...]] = {}

    @model_validator(mode="after")
    def _is_one_of_two(self) -> Self:
        if bool(self.options) == bool(self.values):
            raise ValueError("a choice has either `options` or `values`, and at least one of them")
        if bool(self.values) != bool(self.at):
            raise ValueError("`values` needs `at`, the places of the value")
        if self.options and self.when:
            raise ValueError("`when` is for choices with `values`")
        columns = any(isinstance(pointers, dict) for pointers in self.at.values())
        if columns and not isinstance(self.values, TableRows):
            raise ValueError("`at` can have columns only if the values are rows of facts")
        return self

    def places(self) -> Iterator[tuple[str, str, str]]:
        """Yield every place: the stem or statement, the JSON Pointer, and the column with the value."""
        for holder, pointers in self.at.items():
            if isinstance(pointers, dict):
                yield from ((holder, pointer, column) for pointer, column in pointers.items())
            else:
                every = (pointers,) if isinstance(pointers, str) else pointers
                yield from ((holder, pointer, "name") for pointer in every)


class Expected(_Strict):
    """A known and accepted answer: impossible, and the reason.

    Attributes:
        impossible: the day from which it is impossible, or `always`.
    """

    impossible: date | Literal["always"]
    because: str = Field(min_length=1)


class WorkloadClass(EstatePart):
    """A class of workloads.

    Attributes:
        source: the sentence of a document that the class is from.
        about: the resources that every snapshot of the class must have, in the form of a header's `judges`; one or more
            must be evaluated, otherwise there is no answer.
        as_of: the clock, unless the command sets one.
        choices: the choices, by name; every combination is a snapshot of the class.
    """

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    title: str = Field(min_length=1)
    source: str = ""
    about: tuple[TargetType, ...] = Field(min_length=1)
    as_of: AwareDatetime | None = None
    choices: dict[str, Choice] = {}
    expected: Expected | None = None

    @model_validator(mode="after")
    def _conditions_name_options(self) -> Self:
        for name, choice in self.choices.items():
            for other, wanted in choice.when.items():
                known = self.choices[other].options if other in self.choices else {}
                for option in wanted:
                    if option not in known:
                        raise ValueError(f"`when` of `{name}` has `{option}`, which is not an option of `{other}`")
        return self


def classes_of(bundle: Bundle, paths: Iterable[Path] = (), chosen: Sequence[str] = ()) -> list[WorkloadClass]:
    """Return the built-in classes, those in the folders `classes` of a bundle, and those at `paths`.

    Args:
        bundle: the active policies.
        paths: files and directories.
        chosen: ids; by default, all.

    Raises:
        BundleError: a file is not well formed, or two have the same id.
        UsageError: no class has a chosen id.
    """
    folders = [built_in_baselines().parent / "classes", *(root / "classes" for root in bundle.roots if root.is_dir())]
    files = [file for folder in folders for file in sorted(folder.glob("*.yaml"))]
    known: dict[str, WorkloadClass] = {}
    stated: dict[str, Path] = {}
    for file in (*files, *_find_files(paths)):
        entry = read_class(file)
        if entry.id in stated and file.parent != folders[0]:
            message = f"the class `{entry.id}` is also in `{stated[entry.id]}`"
            raise BundleError(message, place=(str(file),), remedy="give one of them another id")
        if file.parent != folders[0]:  # they can replace a built-in class, but no other one
            stated[entry.id] = file
        known[entry.id] = entry
    wanted = {lowered(name) for name in chosen}
    for name in sorted(wanted - known.keys()):
        raise UsageError(
            f"no class is called `{name}`{suggest_nearest(name, known)}",
            remedy=f"the classes are {', '.join(sorted(known))}",
        )
    return [entry for name, entry in sorted(known.items()) if name in wanted or not wanted]


def _find_files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        found = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
        if not found:
            raise BundleError("there is no class", place=(str(path),), remedy="a class is a file that ends in .yaml")
        yield from found


def read_class(path: Path) -> WorkloadClass:
    """Read the class in a file.

    Raises:
        BundleError: the file cannot be read or is not well formed; the error has the key.
    """
    try:
        document = bundle_yaml(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        raise BundleError(f"the class cannot be read: {reason.lower()}", place=(str(path),)) from error
    if not isinstance(document, dict):
        raise BundleError("a class is a mapping", place=(str(path),), remedy="begin with `id:` and `title:`")
    try:
        return WorkloadClass.model_validate(document)
    except ValidationError as error:
        raise _to_bundle_error(error, path) from error


def _to_bundle_error(error: ValidationError, path: Path) -> BundleError:
    """Return the first error; for several possible forms, the most specific one."""
    faults = error.errors()
    first = next((fault for fault in faults if fault["type"] == "extra_forbidden"), faults[0])
    place = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        models = (WorkloadClass, Choice, EstatePart, TableRows, Expected)
        known = [field.alias or name for model in models for name, field in model.model_fields.items()]
        return BundleError(f"unknown key{suggest_nearest(str(first['loc'][-1]), known)}", place=(str(path), place))
    reason = first["msg"].removeprefix("Value error, ")
    return BundleError(f"{reason[:1].lower()}{reason[1:]}", place=(str(path), place))


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
