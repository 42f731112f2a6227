"""Output models: findings with their reasons, and evaluations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, overload

from policyeng.errors import UsageError, suggest_nearest
from policyeng.frozen import field, frozen, replace
from policyeng.models.base import AwareDatetime, Checked, Model
from policyeng.models.documents import Evidence
from policyeng.models.frameworks import FrameworkResult
from policyeng.named import NamedTuple
from policyeng.redaction import masked_message

if TYPE_CHECKING:
    from pandas import DataFrame


#: The formats by the suffix of the file that `Evaluation.save` writes.
_SUFFIXES = {
    ".json": "json",
    ".html": "html",
    ".md": "markdown",
    ".csv": "csv",
    ".sarif": "sarif",
    ".xml": "junit",
    ".txt": "text",
}
#: The largest number of rows that a notebook shows.
_MOST_ROWS = 50


class Outcome(StrEnum):
    """The result of one policy for one resource."""

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


@frozen
class Reason(Model):
    """A reason of a policy: constant text and a JSON Pointer."""

    msg: str
    path: str = ""

    def __post_init__(self) -> None:
        for name, text in (("msg", self.msg), ("path", self.path)):
            if type(text) is str and text.isascii():
                continue
            if not isinstance(text, str):
                raise TypeError(f"`{name}` of {type(self).__name__} is {type(text).__name__}; give a string")
            if any("\ud800" <= letter <= "\udfff" for letter in text):
                raise ValueError(f"`{name}` of {type(self).__name__} has a lone surrogate, which JSON cannot carry")


@frozen
class Denial(Reason):
    """One reason a policy gives for a failure: constant text, the JSON Pointer, what is there and what should be."""

    actual: Any = field(default=None, kw_only=True)
    expected: Any = field(default=None, kw_only=True)


@frozen
class Unknown(Reason):
    """One reason why a policy cannot decide, with the JSON Pointer that is missing or unresolved."""


@frozen(kw_only=True)
class ExemptionMark(Model):
    """What exempts a failed finding: an exemption, or an `exception` rule of a foreign policy.

    The latter has the category `exception`, the path of the rule as its id, and no owner, approver or end.
    """

    id: str
    category: Literal["waiver", "mitigated", "exception"]
    reason: str
    owner: str = ""
    approved_by: str = ""
    expires_at: AwareDatetime | None = None


@frozen(kw_only=True)
class Place(Model):
    """A file as the user named it, and a line and a column in it, from 1.

    Attributes:
        address: the name of the resource or the field in its format, such as `azurerm_machine_learning_workspace.ml` or
            `scale_settings[0].min_node_count` in Terraform; empty for formats without names of their own.
    """

    file: str = ""
    line: int = 1
    column: int = 1
    address: str = ""


@frozen(kw_only=True)
class Location(Place):
    """The position of a resource; the file is empty if there is none.

    Attributes:
        fields: by the path of a denial or an unknown, the position of that field, or of the nearest one above it.
    """

    fields: Mapping[str, Place] = field(default_factory=dict)


@frozen(kw_only=True)
class Finding(Model):
    """One policy's statement about one resource.

    Attributes:
        resource: the ARM id, or the id of the evaluated workload or approval.
        denials: the reasons of a `fail`, sorted; empty otherwise.
        unknowns: the reasons of an `unknown` or `error`, sorted; a fail can carry what else could not be decided.
        exemption: set on a `fail` that an exemption in force covers; the outcome stays `fail`.
        controls: the controls of the policy, as `FRAMEWORK:CONTROL`.
        why: the first sentence of the description of the policy.
        url: the first page about the policy; empty if it names none.
        owner: the value of the owner tag of the resource or of the nearest resource above it; empty without one.
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
    area: str = ""
    controls: tuple[str, ...] = ()
    why: str = ""
    url: str = ""
    owner: str = ""
    location: Location = field(default_factory=Location)


class SubjectRef(NamedTuple):
    """The fields of a finding about its resource, with the same names."""

    resource: str
    resource_type: str
    owner: str
    location: Location


#: The fields of a finding that depend on its policy, in the order of the JSON report: before and after the reasons.
POLICY_FIELDS = ("policy", "title", "severity"), ("remediation", "source", "area", "controls", "why", "url")


class Passed(NamedTuple):
    """A passed finding in a compact form, because a snapshot has many: its policy and its resource.

    Attributes:
        policy: the fields of its findings that a policy decides; the same object in all of them.
        subject: the same object in all findings of a resource.
    """

    policy: Mapping[str, Any]
    subject: SubjectRef

    def finding(self) -> Finding:
        """Return the finding."""
        return Finding(**self.policy, **self.subject._asdict(), outcome=Outcome.PASS)


class Findings(Sequence[Finding]):
    """Findings in their order; those that pass are made when they are asked for."""

    def __init__(self, entries: Sequence[Finding | Passed]) -> None:
        self.entries = entries

    @classmethod
    def of(cls, findings: Sequence[Finding]) -> Findings:
        """Return any sequence of findings as one of this kind."""
        return findings if isinstance(findings, Findings) else cls(findings)

    @property
    def others(self) -> list[Finding]:
        """Those that do not pass."""
        return [entry for entry in self.entries if isinstance(entry, Finding) and entry.outcome is not Outcome.PASS]

    @property
    def resources(self) -> set[str]:
        """The ids of what was evaluated."""
        return {(entry.subject if isinstance(entry, Passed) else entry).resource for entry in self.entries}

    @property
    def policies(self) -> dict[str, Finding]:
        """The first finding of each policy, by its id."""
        first: dict[str, Finding | Passed] = {}
        for entry in self.entries:
            first.setdefault(entry.policy["policy"] if isinstance(entry, Passed) else entry.policy, entry)
        return {name: entry.finding() if isinstance(entry, Passed) else entry for name, entry in first.items()}

    def changed(self, change: Callable[[Finding], Finding]) -> Findings:
        """Return them with those changed that do not pass."""
        return Findings([entry if isinstance(entry, Passed) else change(entry) for entry in self.entries])

    def __len__(self) -> int:
        return len(self.entries)

    @overload
    def __getitem__(self, index: int) -> Finding: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Finding]: ...

    def __getitem__(self, index: int | slice) -> Finding | Sequence[Finding]:
        if isinstance(index, slice):
            return Findings(self.entries[index])
        found = self.entries[index]
        return found.finding() if isinstance(found, Passed) else found

    def __iter__(self) -> Iterator[Finding]:
        return (entry.finding() if isinstance(entry, Passed) else entry for entry in self.entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Findings | tuple | list) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"<{len(self)} findings>"


@frozen(kw_only=True)
class Problem(Model):
    """Something about the run itself that a reader must know, without secrets.

    Attributes:
        level: `error` means that something could not be decided (exit 2); `warning` changes no exit.
        place: a file, a file and line, an exemption id.
        kind: what it is about: a part of the inputs that was not read, an exemption, or that no policy applied to
            anything; `other` for the rest.
    """

    level: Literal["error", "warning"]
    message: str
    place: str = ""
    kind: Literal["unread", "exemption", "nothing_evaluated", "other"] = "other"

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", masked_message(self.message))
        object.__setattr__(self, "place", masked_message(self.place))


@frozen(kw_only=True)
class Summary(Model):
    """Counts by outcome; they add up to the number of findings. `exempt` counts the fails that carry a mark.

    Compliance is a percentage from 0 to 100 with two decimals. Strict: passes over all findings. Azure: passes, exempt
    and unknown over all findings, as Azure Policy counts
    (learn.microsoft.com, "Azure Policy compliance states", compliance percentage).
    """

    pass_: int = 0
    fail: int = 0
    unknown: int = 0
    error: int = 0
    exempt: int = 0
    strict_compliance: float = 0.0
    azure_compliance: float = 0.0


@frozen(kw_only=True)
class BundleRef(Model):
    """The bundle that was evaluated."""

    name: str
    revision: str
    digest: str


@frozen(kw_only=True)
class SnapshotRef(Model):
    """The snapshot that was evaluated."""

    scope: str
    taken_at: AwareDatetime | None
    digest: str


@frozen(kw_only=True)
class EngineRef(Model):
    """The engine that evaluated the Rego policies."""

    name: str
    version: str


@frozen(kw_only=True)
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


@frozen(kw_only=True)
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


@frozen(kw_only=True)
class Evaluation(Model):
    """All findings of a bundle over a snapshot, sorted by policy and resource; its JSON is the JSON report.

    Attributes:
        fail_on: the lowest severity whose failures set the exit code to 1.
        strict_unknown: whether unknown findings count as failures.
    """

    report_version: Literal[1] = 1
    bundle: BundleRef
    snapshot: SnapshotRef
    as_of: AwareDatetime
    engine: EngineRef
    exit_code: int
    summary: Summary
    findings: Annotated[Sequence[Finding], Checked(tuple)]
    problems: tuple[Problem, ...] = ()
    settings: AppliedSettings = field(default_factory=AppliedSettings)
    frameworks: tuple[FrameworkResult, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    fail_on: Severity = Severity.LOW
    strict_unknown: bool = False

    @property
    def others(self) -> list[Finding]:
        """The findings that do not pass."""
        return Findings.of(self.findings).others

    def to_json(self) -> str:
        """Return the JSON report."""
        return self.render("json")

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON report as parsed JSON."""
        import json

        found: dict[str, Any] = json.loads(self.to_json())
        return found

    def to_html(self) -> str:
        """Return the HTML report, a whole page without references to other files."""
        return self.render("html")

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame with one row for each finding, and the columns of the CSV report.

        Raises:
            UsageError: pandas is not installed.
        """
        from io import StringIO

        try:
            import pandas as pd
        except ImportError:
            raise UsageError("pandas is not installed", remedy="install it: `pip install pandas`") from None
        return pd.read_csv(StringIO(self.render("csv")), keep_default_na=False)

    def save(self, path: str | Path, *, format: str | None = None) -> Path:  # noqa: A002  # as the option is called
        """Write a report to a file and return its path.

        Args:
            path: the file.
            format: a name of `--format`; when None, the suffix of the file decides: `.json`, `.html`, `.md`, `.csv`,
                `.sarif`, `.xml` (JUnit) or `.txt`.

        Raises:
            UsageError: no format has the name or the suffix.
        """
        target = Path(path)
        name = format or _SUFFIXES.get(target.suffix.lower())
        if name is None:
            known = ", ".join(f"`{suffix}`" for suffix in _SUFFIXES)
            raise UsageError(f"no format has the suffix `{target.suffix}`", remedy=f"use {known}, or give `format`")
        target.write_text(self.render(name), encoding="utf-8")
        return target

    def render(self, format: str) -> str:  # noqa: A002  # as the option is called
        """Return a report in a format of `--format`.

        Raises:
            UsageError: no format has the name.
        """
        # Reports are a layer above models, and load when one is rendered.
        formats: Mapping[str, Callable[[Evaluation], str]] = import_module("policyeng.report").FORMATS
        if format not in formats:
            remedy = f"the formats are {', '.join(formats)}"
            raise UsageError(f"no report format is called `{format}`{suggest_nearest(format, formats)}", remedy=remedy)
        return formats[format](self)

    def __repr__(self) -> str:
        counts = {name.rstrip("_"): getattr(self.summary, name) for name in ("fail", "unknown", "error", "pass_")}
        shown = ", ".join(f"{count} {name}" for name, count in counts.items())
        return f"<Evaluation {shown}; exit code {self.exit_code}>"

    def _repr_html_(self) -> str:
        """Return the summary and the failures as an HTML table, for notebooks."""
        from html import escape

        rows = [
            (one.severity.value, one.policy, one.resource.rpartition("/")[2], one.outcome.value, one.title)
            for one in sorted(self.others, key=lambda one: (-one.severity.rank, one.outcome.value, one.policy))
        ]
        shown = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows[:_MOST_ROWS])
        left = f"<p>and {len(rows) - _MOST_ROWS} more</p>" if len(rows) > _MOST_ROWS else ""
        head = "".join(f"<th>{name}</th>" for name in ("severity", "policy", "resource", "outcome", "title"))
        return f"<p>{escape(repr(self)[1:-1])}</p><table><tr>{head}</tr>{shown}</table>{left}"

    def _whole(self) -> Evaluation:
        return replace(self, findings=tuple(self.findings))
