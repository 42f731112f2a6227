"""The nouns that come in: a snapshot, what the organisation states beside its resources, and exemptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Protocol

from pydantic import AwareDatetime, BeforeValidator, Field, SkipValidation

from policyeng.models.base import JsonObject, Model, lowered


def _lowered(value: object) -> object:
    return lowered(value) if isinstance(value, str) else value


#: For enum values, which compare without case as those of ARM do.
_AnyCase = BeforeValidator(_lowered)


class Approval(Model):
    """A decision of the organisation, such as the use of a restricted VM series within a scope."""

    id: str = Field(min_length=1)
    kind: str = "vmSeries"
    series: str = ""
    scope: str
    region: str | None = None
    status: Annotated[Literal["requested", "granted", "denied", "revoked"], _AnyCase]
    requested_by: str | None = None
    approved_by: str | None = None
    granted_at: AwareDatetime | None = None
    expires_at: AwareDatetime | None = None


class ModelFacts(Model):
    """What is known of the model that a workload serves; sizes in GiB."""

    size_gib: float | None = Field(default=None, alias="sizeGiB", ge=0)
    memory_gib: float | None = Field(default=None, alias="memoryGiB", ge=0)


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


class DeclaredWorkload(Model):
    """Work that ARM does not know, or more facts about work that it does (`source_id`)."""

    id: str = Field(min_length=1)
    workspace_id: str | None = None
    source_id: str | None = None
    purpose: Annotated[Purpose | None, _AnyCase] = None
    target: Annotated[Target | None, _AnyCase] = None
    features: tuple[Annotated[Feature, _AnyCase], ...] = ()
    accelerator: Annotated[Accelerator | None, _AnyCase] = None
    cadence: Annotated[Cadence | None, _AnyCase] = None
    model: ModelFacts | None = None
    tags: dict[str, str] = Field(default={})


class Quota(Model):
    """The vCPUs that a scope may use of one VM family in one region."""

    scope: str
    region: str
    family: str
    limit_vcpus: Annotated[int, Field(alias="limitVCpus", ge=0)]


class Metric(Model):
    """One metric of one resource over a period; percentages run from 0 to 100."""

    resource_id: str
    name: str
    unit: str
    from_: AwareDatetime | None = Field(default=None, alias="from")
    to: AwareDatetime | None = None
    average: float | None = None
    p95: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    total: float | None = None


class Principal(Model):
    """A user, group or service principal as the directory knows it."""

    id: str = Field(min_length=1)
    type: str | None = None
    user_type: str | None = None
    deleted: bool = False


class Origin(Model):
    """Where a resource was read.

    Attributes:
        file: as the user named it.
        pointer: the JSON Pointer of the resource in there; the documents of a YAML stream are those of a list.
        line, column: its first line and column, from 1.
        fields: by JSON Pointer into the resource, the pointer in the file of what stands elsewhere or is called
            otherwise there; what lies below moves with it.
    """

    file: str
    pointer: str = ""
    line: int = 1
    column: int = 1
    fields: SkipValidation[Mapping[str, str]] = Field(default={})

    def pointer_to(self, path: str) -> str:
        """The JSON Pointer in the file of a field: as `fields` gives it for the field or the nearest one above it."""
        parts = path.split("/")
        for length in range(len(parts), 0, -1):
            above = "/".join(parts[:length])
            if above in self.fields:
                return self.fields[above] + path[len(above) :]
        return self.pointer + path


class Carried(Model):
    """What a format can say about a resource, and why everything else is unreadable.

    Attributes:
        pointers: JSON Pointers into the resource; `*` stands for any one segment. What lies above and below one counts.
        reason: why the format says nothing else.
    """

    pointers: tuple[str, ...]
    reason: str


class Places(Protocol):
    """A file that was read, asked for lines and columns when a report needs them."""

    def places(self, pointers: Sequence[str]) -> list[tuple[int, int]]:
        """Line and column (from 1) of each JSON Pointer, or of what stands nearest above one that is not there."""


class Document(Model):
    """A JSON or YAML document as it was written, for policies that judge documents.

    Attributes:
        file: as the user named it.
        index: from 0, which document of the file it is.
        content: any JSON value; not copied, and not to be changed.
        line: its first line in the file, from 1.
    """

    file: str
    index: int = 0
    content: SkipValidation[Any] = None
    line: int = 1

    @property
    def name(self) -> str:
        """The file, with `#1` and so on for its further documents."""
        return f"{self.file}#{self.index}" if self.index else self.file


class Snapshot(Model):
    """The resources of a scope at one moment, with the organisation's own facts.

    Attributes:
        resources: ARM resources, each with `id` and `type`; not copied, and not to be changed.
        unreadable: by lower-case resource id, the JSON Pointers that the format cannot carry or left unresolved,
            each with the reason. A policy that inspects one is unknown.
        carried: by lower-case resource id, what its format can say at all, where that is not everything.
        origins: by lower-case resource id, where it was read.
        texts: the files by name, for the places of fields; no part of what the snapshot says.
        incomplete: what the collector could not read, one line each.
        covers: `TYPE at ID` for what was read whole, beside what `incomplete` names; None where that is all that
            policies look up.
        documents: the inputs as they were written; empty unless a policy judges documents.
    """

    scope: str = ""
    taken_at: AwareDatetime | None = None
    resources: SkipValidation[tuple[JsonObject, ...]] = ()
    approvals: tuple[Approval, ...] = ()
    workloads: tuple[DeclaredWorkload, ...] = ()
    quotas: tuple[Quota, ...] = ()
    metrics: tuple[Metric, ...] = ()
    principals: tuple[Principal, ...] = ()
    incomplete: tuple[str, ...] = ()
    covers: tuple[str, ...] | None = None
    unreadable: Mapping[str, Mapping[str, str]] = {}
    carried: Mapping[str, Carried] = {}
    origins: Mapping[str, Origin] = {}
    texts: SkipValidation[Mapping[str, Any]] = Field(default={}, exclude=True, repr=False)
    documents: tuple[Document, ...] = ()


class Exemption(Model):
    """An approved, expiring acceptance of the failures of one policy at and under one scope.

    `expires_at` must be after `created_at` and `owner` must differ from `approved_by`; the reader of exemption files
    says so with the place. Source: Azure Policy exemptions (categories waiver and mitigated).
    """

    id: str = Field(min_length=1)
    policy: str = Field(min_length=1)
    scope: str = Field(min_length=1)
    category: Literal["waiver", "mitigated"]
    reason: str = Field(min_length=1)
    owner: str = Field(min_length=1)
    approved_by: str = Field(min_length=1)
    created_at: AwareDatetime
    expires_at: AwareDatetime
