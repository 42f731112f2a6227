"""Input models: snapshots, the organization's own facts, and exemptions."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, Protocol

from msgspec import Meta, field

from policyeng.models.base import UNCHECKED, UNSTORED, AwareDatetime, Checked, JsonObject, Limited, Model, lowered
from policyeng.models.ledger import LedgerEntry


def _lowered(value: object) -> object:
    return lowered(value) if isinstance(value, str) else value


#: For enum values, which compare without case as those of ARM do.
ANY_CASE = Checked(_lowered, before=True)
_Text = Annotated[str, Meta(min_length=1), Limited(min_length=1)]


class Approval(Model, frozen=True, kw_only=True):
    """A decision of the organisation, such as the use of a restricted VM series within a scope.

    Attributes:
        kind: `vmSeries`, `model`, or a kind that only policies of others read.
        series: what an approval of the kind `vmSeries` is for.
        model: what an approval of the kind `model` is for: the id of a version of a model.
    """

    id: _Text
    kind: str = "vmSeries"
    series: str = ""
    model: str | None = None
    scope: str
    region: str | None = None
    status: Annotated[Literal["requested", "granted", "denied", "revoked"], ANY_CASE]
    requested_by: str | None = None
    approved_by: str | None = None
    granted_at: AwareDatetime | None = None
    expires_at: AwareDatetime | None = None


_Size = Annotated[float, Meta(ge=0), Limited(ge=0)]


class ModelFacts(Model, frozen=True, kw_only=True):
    """What is known of the model that a workload serves; sizes in GiB."""

    size_gib: _Size | None = None
    memory_gib: _Size | None = None


Purpose = Literal["experimentation", "training", "batch-inference", "realtime-inference"]
Target = Literal[
    "local",
    "compute-instance",
    "compute-cluster",
    "serverless",
    "kubernetes",
    "aks",
    "aci",
    "managed-online",
    "attached-vm",
    "databricks",
    "data-lake-analytics",
    "hdinsight",
    "batch",
    "synapse-spark",
    "functions",
    "iot-edge",
]
Feature = Literal["automl", "pipeline", "designer", "sweep", "distributed"]
Accelerator = Literal["none", "gpu", "fpga"]
Cadence = Literal["continuous", "scheduled", "sporadic"]


class DeclaredWorkload(Model, frozen=True, kw_only=True):
    """Work that ARM does not know, or more facts about work that it does (`source_id`)."""

    id: _Text
    workspace_id: str | None = None
    source_id: str | None = None
    purpose: Annotated[Purpose | None, ANY_CASE] = None
    target: Annotated[Target | None, ANY_CASE] = None
    features: tuple[Annotated[Feature, ANY_CASE], ...] = ()
    accelerator: Annotated[Accelerator | None, ANY_CASE] = None
    cadence: Annotated[Cadence | None, ANY_CASE] = None
    model: ModelFacts | None = None
    tags: dict[str, str] = field(default_factory=dict)


class Quota(Model, frozen=True, kw_only=True):
    """The vCPUs that a scope may use of one VM family in one region."""

    scope: str
    region: str
    family: str
    limit_vcpus: Annotated[int, Meta(ge=0), Limited(ge=0)]


class Metric(Model, frozen=True, kw_only=True):
    """One metric of one resource over a period; percentages run from 0 to 100."""

    resource_id: str
    name: str
    unit: str
    from_: AwareDatetime | None = None
    to: AwareDatetime | None = None
    average: float | None = None
    p95: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    total: float | None = None


class Principal(Model, frozen=True, kw_only=True):
    """A user, group or service principal as the directory knows it."""

    id: _Text
    type: str | None = None
    user_type: str | None = None
    deleted: bool = False


class Evidence(Model, frozen=True, kw_only=True):
    """What somebody of the organization states about something that no API returns.

    Attributes:
        for_: the id of a policy, or `FRAMEWORK:CONTROL`.
        scope: an ARM id, or `-` for the whole snapshot.
        statement: what is so.
        reference: where it is shown, such as the id of a run or a link.
    """

    id: _Text
    for_: _Text
    scope: _Text
    statement: _Text
    reference: str | None = None
    given_by: _Text
    given_at: AwareDatetime
    expires_at: AwareDatetime


class SourceNames(Model, frozen=True, kw_only=True):
    """The names that a format has for a resource and its fields.

    Attributes:
        address: of the resource, such as `azurerm_machine_learning_workspace.ml`; empty if it has none.
        base: the JSON Pointer in the file below which the names of fields begin.
        fields: by JSON Pointer into the resource, the pointer below `base` that the format has for a field. It also has
            fields that the file does not state. What lies below a field moves with it.
        units: JSON Pointers into the resource of fields that the format has as a unit, with other names inside.
    """

    address: str = ""
    base: str = ""
    fields: Annotated[Mapping[str, str], UNSTORED] = field(default_factory=dict)
    units: Annotated[Collection[str], UNSTORED] = ()


NO_NAMES = SourceNames()


class Origin(Model, frozen=True, kw_only=True):
    """Where a resource was read.

    Attributes:
        file: as the user named it.
        pointer: the JSON Pointer of the resource in there; the documents of a YAML stream are those of a list.
        line, column: its first line and column, from 1.
        fields: by JSON Pointer into the resource, the pointer in the file of fields with another position or name
            there; everything below moves with it.
        names: the names of the resource and its fields in the format.
    """

    file: str
    pointer: str = ""
    line: int = 1
    column: int = 1
    fields: Annotated[Mapping[str, str], UNCHECKED] = field(default_factory=dict)
    names: SourceNames = NO_NAMES

    def pointer_to(self, path: str) -> str:
        """Return the JSON Pointer in the file of a field, or of the nearest known field above it."""
        parts = path.split("/")
        for length in range(len(parts), 0, -1):
            above = "/".join(parts[:length])
            if above in self.fields:
                return self.fields[above] + path[len(above) :]
        return self.pointer + path

    def name_of(self, path: str) -> str:
        """Return what the format calls a field, such as `scale_settings[0].min_node_count`; empty if it is unknown."""
        base, parts = f"{self.names.base}/", path.split("/")
        for length in range(len(parts), 0, -1):
            above = "/".join(parts[:length])
            stated, rest = self.fields.get(above, ""), path[len(above) :]
            if above not in self.names.fields and not (self.names.fields and stated.startswith(base)):
                continue
            pointer = stated[len(base) - 1 :] if stated.startswith(base) else self.names.fields[above]
            return dotted(pointer + ("" if above in self.names.units else rest))
        return ""


def dotted(pointer: str) -> str:
    """Return a JSON Pointer as people write paths: `a.b[0]["c.d"]`."""
    shown = ""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if key.isascii() and key.isdigit():
            shown += f"[{key}]"
        elif key.replace("-", "").replace("_", "").isalnum():
            shown += f".{key}" if shown else key
        else:
            shown += f"[{json.dumps(key, ensure_ascii=False)}]"
    return shown


class Carried(Model, frozen=True, kw_only=True):
    """The fields of a resource that a format has, and why all others are unreadable.

    Attributes:
        pointers: JSON Pointers into the resource; `*` matches any one segment. Fields above and below one count.
        reason: why the format has no other fields.
    """

    pointers: tuple[str, ...]
    reason: str


class FilePlaces(Protocol):
    """A file that was read, which gives lines and columns when a report needs them."""

    def places(self, pointers: Sequence[str]) -> list[tuple[int, int]]:
        """Return line and column (from 1) of each JSON Pointer, or of the nearest field above it that exists."""


class Document(Model, frozen=True, kw_only=True):
    """A JSON or YAML document as it was written, for policies that evaluate documents.

    Attributes:
        file: as the user named it.
        index: from 0, which document of the file it is.
        content: any JSON value; not copied, and not to be changed.
        line: its first line in the file, from 1.
    """

    file: str
    index: int = 0
    content: Annotated[Any, UNCHECKED] = None
    line: int = 1

    @property
    def name(self) -> str:
        """The file, with `#1` and so on for its further documents."""
        return f"{self.file}#{self.index}" if self.index else self.file


class Snapshot(Model, frozen=True, kw_only=True):
    """The resources of a scope at one moment, with the organisation's own facts.

    Attributes:
        resources: ARM resources, each with `id` and `type`; not copied, and not to be changed.
        unreadable: by lower-case resource id, the JSON Pointers that the format does not have or left unresolved,
            each with the reason. A policy that inspects one is unknown.
        carried: by lower-case resource id, the fields that its format has, if not all.
        origins: by lower-case resource id, where it was read.
        texts: the files by name, for the positions of fields; not part of the content of the snapshot.
        incomplete: what the collector could not read, one line each.
        covers: `TYPE at ID` for what was read completely, except for `incomplete`; None for everything.
        documents: the inputs as they were written; empty unless a policy evaluates documents.
        ledger: what of the inputs was not read; not part of the content of the snapshot.
    """

    unwritten = frozenset({"texts"})

    scope: str = ""
    taken_at: AwareDatetime | None = None
    resources: Annotated[tuple[JsonObject, ...], UNCHECKED] = ()
    approvals: tuple[Approval, ...] = ()
    workloads: tuple[DeclaredWorkload, ...] = ()
    quotas: tuple[Quota, ...] = ()
    metrics: tuple[Metric, ...] = ()
    principals: tuple[Principal, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    incomplete: tuple[str, ...] = ()
    covers: tuple[str, ...] | None = None
    unreadable: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    carried: Mapping[str, Carried] = field(default_factory=dict)
    origins: Mapping[str, Origin] = field(default_factory=dict)
    texts: Annotated[Mapping[str, Any], UNCHECKED] = field(default_factory=dict)
    documents: tuple[Document, ...] = ()
    ledger: tuple[LedgerEntry, ...] = ()

    def __repr__(self) -> str:
        of = f" of {self.scope}" if self.scope else ""
        return f"<Snapshot{of}: {len(self.resources)} resources, {len(self.documents)} documents>"


class Exemption(Model, frozen=True, kw_only=True):
    """An approved, expiring acceptance of the failures of one policy at and under one scope.

    `expires_at` must be after `created_at` and `owner` must differ from `approved_by`; the reader of exemption files
    reports it with the position. Source: Azure Policy exemptions (categories waiver and mitigated).
    """

    id: _Text
    policy: _Text
    scope: _Text
    category: Literal["waiver", "mitigated"]
    reason: _Text
    owner: _Text
    approved_by: _Text
    created_at: AwareDatetime
    expires_at: AwareDatetime

    def __post_init__(self) -> None:
        for name, value in (("created_at", self.created_at), ("expires_at", self.expires_at)):
            if not isinstance(value, datetime) or value.tzinfo is None:
                raise TypeError(f"`{name}` of Exemption is `{value}`; give a datetime with a zone")
