"""Classes of workloads: an estate with the work that a class is about, and the finite choices that are left open.

A class is a YAML document, `classes/<id>.yaml`; `docs/satisfiability.md` says how to write one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from policyeng.bundle import Bundle
from policyeng.bundle.cases import built_in_baselines
from policyeng.bundle.document_parsing import bundle_yaml
from policyeng.bundle.header import TargetType
from policyeng.errors import BundleError, UsageError, nearest
from policyeng.models import JsonObject, lowered


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class TableRows(_Strict):
    """The names of the rows of one table of facts.

    Attributes:
        facts: a table below `data.facts`, such as `vm_sizes`.
        where: by column what the rows have there: a value or one of several, compared without case, `{above: number}`,
            or `{in: table}`, which is a name that another table has.
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
    """What an estate is made of; the parts that a class and the options of its choices bring are joined.

    Attributes:
        estate: the stems of the baselines that belong to it.
        with_: JSON Merge Patches (RFC 7386) on them, by stem.
    """

    estate: tuple[str, ...] = ()
    with_: dict[str, JsonObject] = Field(default={}, alias="with")
    approvals: list[JsonObject] = []
    workloads: list[JsonObject] = []
    quotas: list[JsonObject] = []
    metrics: list[JsonObject] = []
    principals: list[JsonObject] = []


class Choice(_Strict):
    """What is left open: one of `options`, or one of `values`, which then stands at every place of `at`.

    Attributes:
        at: by the stem of a baseline, or by kind and number of what is stated such as `quotas/0`, the JSON Pointers of
            the value; of a row of facts, a pointer may be mapped to the column that stands there, else to its name.
            Places that the estate lacks are left out.
        values: JSON values, or rows of a table of facts.
        options: by name, what each adds to the estate.
        when: by another choice, its options with which this one is left open; with every one unless it says so.
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
            raise ValueError("`values` stand at places, which `at` names")
        if self.options and self.when:
            raise ValueError("`when` is for choices with `values`")
        columns = any(isinstance(pointers, dict) for pointers in self.at.values())
        if columns and not isinstance(self.values, TableRows):
            raise ValueError("`at` names columns only where the values are rows of facts")
        return self

    def places(self) -> Iterator[tuple[str, str, str]]:
        """Every place: the stem or statement, the JSON Pointer, and the column that stands there."""
        for holder, pointers in self.at.items():
            if isinstance(pointers, dict):
                yield from ((holder, pointer, column) for pointer, column in pointers.items())
            else:
                every = (pointers,) if isinstance(pointers, str) else pointers
                yield from ((holder, pointer, "name") for pointer in every)


class Expected(_Strict):
    """An answer that is known and accepted: impossible, and why that is so.

    Attributes:
        impossible: the day from which on it is impossible, or `always`.
    """

    impossible: date | Literal["always"]
    because: str = Field(min_length=1)


class WorkloadClass(EstatePart):
    """A class of workloads.

    Attributes:
        source: the sentence of a document that it is taken from.
        about: what there must be in every estate of the class, in the form of a header's `judges`; one of them at
            least must be judged, or nothing is said of the class.
        as_of: the clock, unless the command gives one.
        choices: what is left open, by name; every combination is an estate of the class.
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
                        raise ValueError(f"`when` of `{name}` names `{option}`, which is no option of `{other}`")
        return self


def classes_of(bundle: Bundle, paths: Iterable[Path] = (), chosen: Sequence[str] = ()) -> list[WorkloadClass]:
    """The classes of the documents, joined by those in the folders `classes` of a bundle and those at `paths`.

    Args:
        bundle: the policies in force.
        paths: files, and directories of files.
        chosen: ids; all unless given.

    Raises:
        BundleError: a file is not well formed, or two state one class.
        UsageError: no class has a chosen id.
    """
    folders = [built_in_baselines().parent / "classes", *(root / "classes" for root in bundle.roots if root.is_dir())]
    files = [file for folder in folders for file in sorted(folder.glob("*.yaml"))]
    known: dict[str, WorkloadClass] = {}
    stated: dict[str, Path] = {}
    for file in (*files, *_given(paths)):
        entry = read_class(file)
        if entry.id in stated and file.parent != folders[0]:
            message = f"the class `{entry.id}` stands in `{stated[entry.id]}`, too"
            raise BundleError(message, place=(str(file),), remedy="give one of them another id")
        if file.parent != folders[0]:  # which may replace a class of the documents, and no other
            stated[entry.id] = file
        known[entry.id] = entry
    wanted = {lowered(name) for name in chosen}
    for name in sorted(wanted - known.keys()):
        raise UsageError(
            f"no class is called `{name}`{nearest(name, known)}", remedy=f"the classes are {', '.join(sorted(known))}"
        )
    return [entry for name, entry in sorted(known.items()) if name in wanted or not wanted]


def _given(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        found = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
        if not found:
            raise BundleError("no class is here", place=(str(path),), remedy="a class is a file that ends in .yaml")
        yield from found


def read_class(path: Path) -> WorkloadClass:
    """The class in a file.

    Raises:
        BundleError: it cannot be read or is not well formed, naming the key.
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
        raise _malformed(error, path) from error


def _malformed(error: ValidationError, path: Path) -> BundleError:
    """The first fault in words; of what may have several forms, the one that says most."""
    faults = error.errors()
    first = next((fault for fault in faults if fault["type"] == "extra_forbidden"), faults[0])
    place = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        models = (WorkloadClass, Choice, EstatePart, TableRows, Expected)
        known = [field.alias or name for model in models for name, field in model.model_fields.items()]
        return BundleError(f"unknown key{nearest(str(first['loc'][-1]), known)}", place=(str(path), place))
    reason = first["msg"].removeprefix("Value error, ")
    return BundleError(f"{reason[:1].lower()}{reason[1:]}", place=(str(path), place))
