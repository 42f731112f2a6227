"""The catalogue of facts as values: VM sizes and series, isolated sizes, retirements, roles, and what each row cites.

It is the same document that Rego sees as `data.facts` (files `policies/facts/<name>/data.json`). Nothing is copied or
modelled when it is loaded; a row becomes a value when it is first used. Names compare without case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from policyeng.errors import BundleError
from policyeng.facts.ids import guid_of
from policyeng.facts.words import trim
from policyeng.frozen import field, frozen
from policyeng.models import JsonObject, lowered, read_only
from policyeng.models.documents import Accelerator

_Value = TypeVar("_Value")
_TABLES = (
    "sources",
    "vm_sizes",
    "vm_series",
    "offered_series",
    "isolated_sizes",
    "retired_sizes",
    "roles",
    "roles_elsewhere",
)


@frozen
class VmSize:
    """One VM size; memory in GiB, GPUs also as the share of one that a size gets (0.25)."""

    name: str
    series: str
    family: str
    vcpus: int
    memory_gib: float
    gpus: float
    fpgas: int
    source: str

    @property
    def accelerator(self) -> Accelerator:
        """Return the kind of its accelerators; a size with GPUs and FPGAs counts as one with GPUs."""
        return "gpu" if self.gpus > 0 else "fpga" if self.fpgas > 0 else "none"


@frozen
class VmSeries:
    """A series that Azure Machine Learning supports: `restriction` is `none` or `approval`."""

    name: str
    category: str
    restriction: str
    supported_by: tuple[str, ...]
    source: str


@frozen
class Retirement:
    """The day from which a size is no longer offered; it begins at midnight UTC.

    `move_to` is the series that the vendor recommends instead, None where it recommends none.
    """

    date: date
    source: str
    move_to: str | None = None

    @property
    def _begins(self) -> datetime:
        return datetime(self.date.year, self.date.month, self.date.day, tzinfo=UTC)

    def has_come(self, as_of: datetime) -> bool:
        """Return whether the size is retired at an aware moment."""
        return as_of >= self._begins

    def comes_within(self, days: float, as_of: datetime) -> bool:
        """Return whether the size is retired at an aware moment or retires within so many days, inclusive."""
        return (self._begins - as_of) / timedelta(days=1) <= days


@frozen
class Role:
    """A built-in role; `permissions` are the blocks that `policyeng.facts.granted` reads.

    A role that reaches no action of Machine Learning is kept by name alone and has no permissions.
    """

    name: str
    guid: str
    type: str
    permissions: tuple[JsonObject, ...]
    source: str


@frozen
class Facts:
    """The catalogue over one `data.facts` document, which is not copied and not to be changed."""

    __eq__ = object.__eq__  # two are never compared by what they have
    __hash__ = object.__hash__

    document: Mapping[str, Any] = field(repr=False)

    @classmethod
    def from_document(cls, document: JsonObject) -> Facts:
        """Wrap a `data.facts` document; what it lacks is empty.

        Raises:
            BundleError: one of its tables is not an object.
        """
        for name in _TABLES:
            if not isinstance(document.get(name, {}), dict):
                raise BundleError("not a JSON object", place=(f"facts/{name}",), remedy="give one row for each name")
        return cls(document)

    def size(self, name: str) -> VmSize | None:
        """Return a VM size by name, such as `STANDARD_D1_V2`."""
        key = lowered(name)
        known = self._sizes.get(key)
        if known is None and (row := self._table("vm_sizes").get(key)) is not None:
            known = self._sizes[key] = _value(VmSize, row, f"vm_sizes/{key}")
        return known

    @cached_property
    def _sizes(self) -> dict[str, VmSize]:
        """The VM sizes that were looked up, by lower-case name."""
        return {}

    def sizes_of(self, series: str) -> tuple[VmSize, ...]:
        """Return the sizes of a series, be it of the documents' table or not, in the order of the catalogue."""
        sizes = (self.size(name) for name in self._names_of.get(lowered(series), ()))
        return tuple(size for size in sizes if size)

    def series(self, name: str) -> VmSeries | None:
        """Return a series of the documents' table; other series that sizes belong to are not in it."""
        return self._series_of("vm_series", name)

    def offered_series(self, name: str) -> VmSeries | None:
        """Return a series that the service offers today and that is not in the documents' table, or None."""
        return self._series_of("offered_series", name)

    def is_isolated(self, name: str) -> bool:
        """Return whether a size is isolated on its host, according to the documents or the vendor."""
        return lowered(name) in self._table("isolated_sizes")

    @property
    def harmless_classifications(self) -> frozenset[str]:
        """The classifications, in lower case, of data that is not regulated."""
        return frozenset(self._table("harmless_classifications"))

    def retirement(self, name: str) -> Retirement | None:
        """Return the earliest retirement of a size that a source gives, past or to come."""
        key = lowered(name)
        known = self._retirements.get(key)
        if known is None and (row := self._table("retired_sizes").get(key)) is not None:
            try:
                known = Retirement(date.fromisoformat(row["date"]), row["source"], row.get("move_to"))
            except (KeyError, TypeError, ValueError) as error:
                raise _malformed(f"retired_sizes/{key}", error) from error
            self._retirements[key] = known
        return known

    @cached_property
    def _retirements(self) -> dict[str, Retirement]:
        """The retirements that were looked up, by the lower-case name of the size."""
        return {}

    def role(self, guid_or_name: str) -> Role | None:
        """Return a built-in role by GUID, by the id of its definition with or without a subscription, or by name."""
        guid = self._role_names.get(lowered(trim(guid_or_name))) or guid_of(guid_or_name)
        for table in ("roles", "roles_elsewhere"):
            if row := self._table(table).get(guid):
                made = {
                    "guid": guid,
                    "type": "BuiltInRole",
                    **row,
                    "permissions": tuple(map(read_only, row.get("permissions", ()))),
                }
                return _value(Role, made, f"{table}/{guid}")
        return None

    def _table(self, name: str) -> JsonObject:
        table: JsonObject = self.document.get(name, {})
        return table

    @cached_property
    def _names_of(self) -> Mapping[str, Sequence[str]]:
        """The names of the sizes of each series, in lower case."""
        names: dict[str, list[str]] = {}
        for name, row in self._table("vm_sizes").items():
            names.setdefault(lowered(str(row.get("series"))), []).append(name)
        return names

    def _series_of(self, table: str, name: str) -> VmSeries | None:
        key = lowered(name)
        known = self._series.get((table, key))
        if known is None and (spelled := self._series_names[table].get(key)) is not None:
            row = self._table(table)[spelled]
            made = {"name": spelled, **row, "supported_by": tuple(row.get("supported_by", ()))}
            known = self._series[table, key] = _value(VmSeries, made, f"{table}/{spelled}")
        return known

    @cached_property
    def _series(self) -> dict[tuple[str, str], VmSeries]:
        """The series that were looked up, by their table and their lower-case name."""
        return {}

    @cached_property
    def _series_names(self) -> Mapping[str, Mapping[str, str]]:
        """By table, the names of its series as it spells them, by themselves in lower case."""
        tables = ("vm_series", "offered_series")
        return {table: {lowered(name): name for name in self._table(table)} for table in tables}

    @cached_property
    def _role_names(self) -> Mapping[str, str]:
        tables = (self._table("roles_elsewhere"), self._table("roles"))
        return {lowered(row["name"]): guid for table in tables for guid, row in table.items()}


def _value(kind: type[_Value], row: JsonObject, place: str) -> _Value:
    """Return a row as a value; its keys are the fields of `kind`."""
    try:
        return kind(**row)
    except TypeError as error:
        raise _malformed(place, error) from error


def _malformed(place: str, error: Exception) -> BundleError:
    return BundleError(f"a row is not well formed: {error}", place=(f"facts/{place}",), remedy="rebuild the facts")


def built_in_root() -> Path:
    """Return the directory of the built-in policies: inside an installed package, or next to it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "policies"
    return installed if installed.is_dir() else package.parent / "policies"
