"""The nouns that go out: findings with their reasons, and the evaluation that holds them all."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime, Field

from policyeng.masking import masked_message
from policyeng.models.base import Model


class Outcome(StrEnum):
    """What one policy says about one resource."""

    PASS = "pass"  # noqa: S105  # an outcome, no password
    FAIL = "fail"
    UNKNOWN = "unknown"
    ERROR = "error"


class Severity(StrEnum):
    """How much a failure matters, least first."""

    INFO = "info"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """Position from 0 (info) to 4 (critical); failures at or above a rank fail a run."""
        return list(Severity).index(self)


class _Reason(Model):
    """What a policy says: constant text and a JSON Pointer."""

    msg: str
    path: str = ""

    if not TYPE_CHECKING:  # the type checker knows the signature from the fields

        def __init__(self, **fields: object) -> None:
            """Take what fits as it is: building a validator would cost a short run more than all it says."""
            if fields.keys() <= type(self).model_fields.keys() and "msg" in fields and _are_text(fields):
                given = type(self).model_construct(**fields)
                object.__setattr__(self, "__dict__", given.__dict__)
                for name in ("__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__"):
                    object.__setattr__(self, name, getattr(given, name))
            else:
                super().__init__(**fields)


def _are_text(fields: Mapping[str, object]) -> bool:
    """Whether message and path are strings that JSON can carry."""
    texts = (fields["msg"], fields.get("path", ""))
    return all(type(text) is str and text.isascii() for text in texts)


class Denial(_Reason):
    """One reason a policy gives for a failure: constant text, the JSON Pointer, what is there and what should be."""

    actual: Any = None
    expected: Any = None


class Unknown(_Reason):
    """One reason why a policy cannot decide, with the JSON Pointer that is missing or unresolved."""


class ExemptionMark(Model):
    """What covers a failed finding: an exemption, or an `exception` rule that stands beside a policy of others.

    The latter has the category `exception`, the path of the rule as its id, and neither owner, approver nor end.
    """

    id: str
    category: Literal["waiver", "mitigated", "exception"]
    reason: str
    owner: str = ""
    approved_by: str = ""
    expires_at: AwareDatetime | None = None


class Place(Model):
    """A file as the user named it, and a line and a column in it, from 1."""

    file: str = ""
    line: int = 1
    column: int = 1


class Location(Place):
    """Where a resource stands; the file is empty when it came from none.

    Attributes:
        fields: by the path of a denial or an unknown, where that field stands, or what is nearest above it.
    """

    fields: Mapping[str, Place] = {}


class Finding(Model):
    """One policy's statement about one resource.

    Attributes:
        resource: the ARM id, or the id of the declared workload or approval that was judged.
        denials: the reasons of a `fail`, sorted; empty otherwise.
        unknowns: the reasons of an `unknown` or `error`, sorted; a fail can carry what else could not be decided.
        exemption: set on a `fail` that an exemption in force covers; the outcome stays `fail`.
    """

    policy: str
    title: str
    severity: Severity
    resource: str
    resource_type: str
    outcome: Outcome
    denials: tuple[Denial, ...] = ()
    unknowns: tuple[Unknown, ...] = ()
    exemption: ExemptionMark | None = None
    remediation: str = ""
    source: str = ""
    location: Location = Location.model_construct()


class Problem(Model):
    """Something about the run itself that a reader must know, without secrets.

    Attributes:
        level: `error` means that something could not be decided (exit 2); `warning` changes no exit.
        place: a file, a file and line, an exemption id.
    """

    level: Literal["error", "warning"]
    message: Annotated[str, AfterValidator(masked_message)]
    place: Annotated[str, AfterValidator(masked_message)] = ""


class Summary(Model):
    """Counts by outcome; they add up to the number of findings. `exempt` counts the fails that carry a mark.

    Compliance is a percentage from 0 to 100 with two decimals. Strict: passes over all findings. Azure: passes, exempt
    and unknown over all findings, as Azure Policy counts
    (learn.microsoft.com, "Azure Policy compliance states", compliance percentage).
    """

    pass_: int = Field(default=0, alias="pass")
    fail: int = 0
    unknown: int = 0
    error: int = 0
    exempt: int = 0
    strict_compliance: float = 0.0
    azure_compliance: float = 0.0


class BundleRef(Model):
    """Which policies judged."""

    name: str
    revision: str
    digest: str


class SnapshotRef(Model):
    """What was judged."""

    scope: str
    taken_at: AwareDatetime | None
    digest: str


class EngineRef(Model):
    """Which engine judged the Rego policies."""

    name: str
    version: str


class SettingChange(Model):
    """One setting that is not at its default.

    Attributes:
        setting: its name, as in a configuration file or, of what only the command line has, as the option.
        value: what it is; secrets are masked.
        origin: `FILE:LINE`, `environment NAME` or `flag --name`.
    """

    setting: str
    value: Any
    origin: str


class AppliedSettings(Model):
    """What was configured, and where.

    Attributes:
        file: the configuration file; empty without one.
        environment: the `POLICYENG_` variables that were in force, sorted.
        changes: the settings that were not at their defaults, sorted by name; those that have no effect on findings,
            decisions and exit codes are left out.
    """

    file: str = ""
    environment: tuple[str, ...] = ()
    changes: tuple[SettingChange, ...] = ()


class Evaluation(Model):
    """All findings of a bundle over a snapshot, sorted by policy and resource; its JSON is the JSON report."""

    report_version: Literal[1] = 1
    bundle: BundleRef
    snapshot: SnapshotRef
    as_of: AwareDatetime
    engine: EngineRef
    exit_code: int
    summary: Summary
    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...] = ()
    settings: AppliedSettings = AppliedSettings.model_construct()
