"""Classes of workloads: a snapshot with the work of the class, and a finite number of open choices.

A class is a YAML document, `classes/<id>.yaml`; `docs/satisfiability.md` describes its format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from policyeng.bundle import Bundle
from policyeng.bundle.cases import built_in_baselines
from policyeng.bundle.header import TargetType
from policyeng.bundle.manifest import bundle_yaml
from policyeng.errors import BundleError, UsageError, suggest_nearest
from policyeng.models import JsonObject, lowered


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
            the value; of a row of facts, a pointer may be mapped to the column that stands there, else to its name.
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
