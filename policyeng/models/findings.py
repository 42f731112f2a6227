"""Output models: findings with their reasons, evaluations, the results of frameworks, and admission decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_args, overload

from msgspec import field
from msgspec.structs import force_setattr, replace

from policyeng.errors import InputError, UsageError, suggest_nearest
from policyeng.models.base import UNCHECKED, AwareDatetime, Checked, JsonObject, Limited, Model
from policyeng.models.documents import Carried, Evidence, Origin
from policyeng.models.ledger import LedgerEntry, relevant_entries
from policyeng.redaction import masked_message

if TYPE_CHECKING:
    from pandas import DataFrame

Basis = Literal["published", "analogue", "derived", "own"]
ControlKind = Literal["technical", "process"]
_Text = Annotated[str, Limited(min_length=1)]


class ControlStatus(StrEnum):
    """What is known of a control; the first of these that holds, in this order."""

    FAILING = "failing"
    ERROR = "error"
    UNDECIDED = "undecided"
    ACCEPTED = "accepted"
    PASSING = "passing"
    DECLARED = "declared"
    NOT_APPLICABLE = "not applicable here"
    BY_HAND = "by hand"
    NOT_COVERED = "not covered"


class ControlMapping(Model, frozen=True, kw_only=True):
    """A policy that maps to a control.

    Attributes:
        id: of the policy.
        basis: whose word the mapping is: Microsoft's for this very setting, Microsoft's or prowler's for the same
            setting of another service, derived from Microsoft's tables, or the author's own.
        relevance: `direct` if the policy tests what the control requires; only direct mappings count.
        source: where the mapping is defined.
    """

    id: _Text
    basis: Basis
    relevance: Literal["direct", "related"]
    source: str = ""
    note: str = ""

    @property
    def is_direct(self) -> bool:
        """Whether the mapping counts in a status."""
        return self.relevance == "direct"


class FindingCounts(Model, frozen=True, kw_only=True):
    """The findings of the direct policies of a control; `exempt` counts the failures that an exemption covers."""

    pass_: int = 0
    fail: int = 0
    unknown: int = 0
    error: int = 0
    exempt: int = 0

    @property
    def total(self) -> int:
        """The number of findings."""
        return self.pass_ + self.fail + self.unknown + self.error


class ControlResult(Model, frozen=True, kw_only=True):
    """One control of a framework in a report.

    Attributes:
        words: the status in words, with counts.
        guidance: how a person would show the control, where no policy is direct.
        policies: the policies of the bundle that map to it.
        evidence: the entries in force for the control, or for its policies on evaluated resources.
    """

    id: str
    title: str
    domain: str = ""
    kind: ControlKind = "technical"
    status: ControlStatus
    words: str
    guidance: str = ""
    policies: tuple[ControlMapping, ...] = ()
    findings: FindingCounts = field(default_factory=FindingCounts)
    evidence: tuple[Evidence, ...] = ()


_Percentage = float | None


class ControlScore(Model, frozen=True, kw_only=True):
    """Percentages from 0 to 100 with two decimals; null where there is nothing to divide by.

    Attributes:
        controls: the number of controls.
        strict: technical controls that pass, of all technical controls.
        decided: controls that pass, of those that pass, fail, are accepted or could not be decided.
        coverage: technical controls with a finding, of all technical controls.
    """

    controls: int
    strict: _Percentage
    decided: _Percentage
    coverage: _Percentage


class FrameworkSummary(ControlScore, frozen=True, kw_only=True):
    """The scores of a framework, and the number of controls with each status.

    Attributes:
        technical: the number of technical controls.
        domains: the scores of each domain.
    """

    technical: int
    statuses: dict[str, int]
    domains: dict[str, ControlScore]


class FrameworkResult(Model, frozen=True, kw_only=True):
    """The results of an evaluation for the controls of a framework, in the order of its document.

    No score and no status means that a control is met.
    """

    id: str
    version: str
    title: str
    preview: bool = False
    disclaimer: str = ""
    summary: FrameworkSummary
    controls: tuple[ControlResult, ...]

    @property
    def by_domain(self) -> Iterator[tuple[str, list[ControlResult]]]:
        """Each domain with its controls, in their order."""
        found: dict[str, list[ControlResult]] = {}
        for control in self.controls:
            found.setdefault(control.domain, []).append(control)
        return iter(found.items())


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


class Reason(Model, frozen=True):
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


class Denial(Reason, frozen=True, kw_only=True):
    """One reason a policy gives for a failure: constant text, the JSON Pointer, what is there and what should be."""

    actual: Any = None
    expected: Any = None


class Unknown(Reason, frozen=True):
    """One reason why a policy cannot decide, with the JSON Pointer that is missing or unresolved."""


class ExemptionMark(Model, frozen=True, kw_only=True):
    """What exempts a failed finding: an exemption, or an `exception` rule of a foreign policy.

    The latter has the category `exception`, the path of the rule as its id, and no owner, approver or end.
    """

    id: str
    category: Literal["waiver", "mitigated", "exception"]
    reason: str
    owner: str = ""
    approved_by: str = ""
    expires_at: AwareDatetime | None = None


class Place(Model, frozen=True, kw_only=True):
    """A file as the user named it, and a line and a column in it, from 1.

    Attributes:
        address: the name of the resource or the field in its format, such as `azurerm_machine_learning_workspace.ml` or
            `scale_settings[0].min_node_count` in Terraform; empty for formats without names of their own.
    """

    file: str = ""
    line: int = 1
    column: int = 1
    address: str = ""


class Location(Place, frozen=True, kw_only=True):
    """The position of a resource; the file is empty if there is none.

    Attributes:
        fields: by the path of a denial or an unknown, the position of that field, or of the nearest one above it.
    """

    fields: Mapping[str, Place] = field(default_factory=dict)


class Finding(Model, frozen=True, kw_only=True):
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

    @property
    def is_failure(self) -> bool:
        """Whether the policy denies the resource, and no exemption covers it."""
        return self.outcome is Outcome.FAIL and self.exemption is None


class SubjectRef(NamedTuple):
    """The fields of a finding about its resource, with the same names."""

    resource: str
    resource_type: str
    owner: str
    location: Location


#: The fields of a finding that depend on its policy, in the order of the JSON report: before and after the reasons.
POLICY_FIELDS = ("policy", "title", "severity"), ("remediation", "source", "area", "controls", "why", "url")


class FindingColumn(NamedTuple):
    """The findings of a policy in their order; those that pass are positions until they are needed.

    Attributes:
        policy: the number of the policy in its bundle; -1 if the findings are not of one policy.
        template: the fields of the findings that the policy decides.
        order: the positions of the subjects, in the order of the findings.
        others: the findings that are made, by position; all others pass.
        subjects: the fields of findings about their resource, by position.
    """

    policy: int
    template: Mapping[str, Any]
    order: Sequence[int]
    others: Mapping[int, Finding]
    subjects: Mapping[int, SubjectRef]

    def finding(self, position: int) -> Finding:
        """Return the finding about the subject at a position."""
        known = self.others.get(position)
        if known is not None:
            return known
        return Finding(**self.template, **self.subjects[position]._asdict(), outcome=Outcome.PASS)

    def items(self) -> Iterator[tuple[int, Finding]]:
        """Yield each finding with the position of its subject, in their order."""
        return ((position, self.finding(position)) for position in self.order)


class Findings(Sequence[Finding]):
    """Findings in their order; those that pass are made when they are used.

    Attributes:
        columns: the findings of each policy that has any, in their order.
        builtin_errors: by policy and builtin, how often a builtin failed where that is undefined.
    """

    def __init__(
        self, columns: Sequence[FindingColumn], builtin_errors: Mapping[tuple[str, str], int] = MappingProxyType({})
    ) -> None:
        self.columns = columns
        self.builtin_errors = builtin_errors

    @classmethod
    def of(cls, findings: Sequence[Finding]) -> Findings:
        """Return any sequence of findings as one of this kind."""
        if isinstance(findings, Findings):
            return findings
        return cls([FindingColumn(-1, {}, range(len(findings)), dict(enumerate(findings)), {})] if findings else [])

    @property
    def others(self) -> list[Finding]:
        """Those that do not pass."""
        return [
            finding
            for column in self.columns
            for finding in column.others.values()
            if finding.outcome is not Outcome.PASS
        ]

    @property
    def references(self) -> Iterator[SubjectRef | Finding]:
        """The resource, type, owner and location of each, in their order."""
        for _, _, order, others, subjects in self.columns:
            yield from (others.get(position) or subjects[position] for position in order)

    @property
    def resources(self) -> set[str]:
        """The ids of what was evaluated."""
        return {reference.resource for reference in self.references}

    @property
    def policies(self) -> dict[str, Finding]:
        """The first finding of each policy, by its id."""
        first: dict[str, Finding] = {}
        for column in self.columns:
            for finding in column.others.values() if column.policy < 0 else [column.finding(column.order[0])]:
                first.setdefault(finding.policy, finding)
        return first

    def changed(self, change: Callable[[Finding], Finding]) -> Findings:
        """Return them with those changed that do not pass."""
        columns = [
            column._replace(others={position: change(finding) for position, finding in column.others.items()})
            for column in self.columns
        ]
        return Findings(columns, self.builtin_errors)

    def __len__(self) -> int:
        return sum(len(column.order) for column in self.columns)

    @overload
    def __getitem__(self, index: int) -> Finding: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Finding]: ...

    def __getitem__(self, index: int | slice) -> Finding | Sequence[Finding]:
        if isinstance(index, slice):
            return Findings.of([self[number] for number in range(len(self))[index]])
        remaining = range(len(self))[index]
        for column in self.columns:
            if remaining < len(column.order):
                return column.finding(column.order[remaining])
            remaining -= len(column.order)
        raise IndexError(index)

    def __iter__(self) -> Iterator[Finding]:
        return (column.finding(position) for column in self.columns for position in column.order)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Findings | tuple | list) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"<{len(self)} findings>"


def _known_kind(value: object) -> object:
    """Return the kind of a problem; in documents of version 0.1.0, `unread` is what the ledger has now."""
    return "other" if value == "unread" else value


#: The kinds of problems with a part of a document while it is read, whose place is a JSON Pointer. An `empty` part is
#: understood and contains nothing to check, so it is only a warning if the user did not name the file; one that is
#: `ambiguous` can be read in two ways, and is an error even then.
PartKind = Literal["part", "empty", "ambiguous"]
_PART_KINDS = frozenset(get_args(PartKind))


class Problem(Model, frozen=True, kw_only=True):
    """Something about the run itself that a reader must know, without secrets.

    Attributes:
        level: `error` means that something could not be decided (exit 2); `warning` changes no exit.
        place: a file, a file and line, an exemption id.
        kind: what it is about: an exemption, that no policy applied to anything, a module that is left out, or
            builtins that failed and are undefined; `other` for the rest.
    """

    unwritten = frozenset({"remedy"})

    level: Literal["error", "warning"]
    message: str
    place: str = ""
    kind: Annotated[
        Literal["exemption", "nothing_evaluated", "left_out", "builtin_errors", "other", "part", "empty", "ambiguous"],
        Limited(expected=["exemption", "nothing_evaluated", "left_out", "builtin_errors", "other"]),
        Checked(_known_kind, before=True),
    ] = "other"
    #: How to fix a part of a document; reports have it at the end of the message.
    remedy: str = ""

    def __post_init__(self) -> None:
        if self.kind not in _PART_KINDS:
            force_setattr(self, "message", masked_message(self.message))
            force_setattr(self, "place", masked_message(self.place))

    def located(self, place: str, *inner: str) -> Problem:
        """Return the problem of a part as reports have it: with its remedy, and where in `place` it is, in words."""
        message = str(InputError(self.message, place=inner, remedy=self.remedy))
        return Problem(level=self.level, message=message, place=place)


def as_warning(entry: LedgerEntry) -> Problem:
    """Return an entry of the ledger as a problem."""
    return Problem(level="warning", message=f"not read: {entry.reason}", place=entry.place)


class Summary(Model, frozen=True, kw_only=True):
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


class BundleRef(Model, frozen=True, kw_only=True):
    """The bundle that was evaluated."""

    name: str
    revision: str
    digest: str


class SnapshotRef(Model, frozen=True, kw_only=True):
    """The snapshot that was evaluated."""

    scope: str
    taken_at: AwareDatetime | None
    digest: str


class EngineRef(Model, frozen=True, kw_only=True):
    """The engine that evaluated the Rego policies."""

    name: str
    version: str


class SettingChange(Model, frozen=True, kw_only=True):
    """One setting that is not at its default.

    Attributes:
        setting: its name, as in a configuration file or, of what only the command line has, as the option.
        value: what it is; secrets are masked.
        origin: `FILE:LINE`, `environment NAME` or `flag --name`.
    """

    setting: str
    value: Any
    origin: str


class AppliedSettings(Model, frozen=True, kw_only=True):
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


class Evaluation(Model, frozen=True, kw_only=True):
    """All findings of a bundle over a snapshot, sorted by policy and resource; its JSON is the JSON report.

    Attributes:
        fail_on: the lowest severity whose failures set the exit code to 1.
        strict_unknown: whether unknown findings, and relevant entries of the ledger, count as failures.
        ledger: what of the inputs was not read.
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
    ledger: tuple[LedgerEntry, ...] = ()

    @property
    def others(self) -> list[Finding]:
        """The findings that do not pass."""
        return Findings.of(self.findings).others

    @property
    def remarks(self) -> tuple[Problem, ...]:
        """The problems, and the relevant entries of the ledger as warnings, for what lists only problems."""
        return (*self.problems, *(as_warning(entry) for entry in relevant_entries(self.ledger)))

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
        with target.open("w", encoding="utf-8") as file:
            file.writelines(self._write_parts(name))
        return target

    def render(self, format: str) -> str:  # noqa: A002  # as the option is called
        """Return a report in a format of `--format`.

        Raises:
            UsageError: no format has the name.
        """
        return "".join(self._write_parts(format))

    def _write_parts(self, name: str) -> Iterator[str]:
        # Reports are a layer above models, and load when one is rendered.
        report: Any = import_module("policyeng.report")
        if name not in report.FORMATS:
            message = f"no report format is called `{name}`{suggest_nearest(name, report.FORMATS)}"
            raise UsageError(message, remedy=f"the formats are {', '.join(report.FORMATS)}")
        parts: Iterator[str] = report.write_parts(name, self)
        return parts

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


class Operation(StrEnum):
    """What a change does to one resource; `create` and `replace` are both ARM's PUT, whatever was there before."""

    CREATE = "create"
    REPLACE = "replace"
    PATCH = "patch"
    DELETE = "delete"


class Mode(StrEnum):
    """How a failure that a change is to blame for is enforced, strictest first."""

    DENY = "deny"
    WARN = "warn"
    SHADOW = "shadow"


class Blame(StrEnum):
    """What of a changed resource a change is to blame for.

    With `touched` every failure that sits on it, old ones also; with `introduced` only what the change brings about or
    makes worse. Of other resources a change is to blame for what it introduces, always.
    """

    TOUCHED = "touched"
    INTRODUCED = "introduced"


class Change(Model, frozen=True, kw_only=True):
    """One resource as it is about to become.

    Attributes:
        id: the ARM id of what is changed.
        resource: for `create` and `replace`, the whole resource in ARM shape, of this id.
        patch: for `patch`, a JSON Merge Patch (RFC 7396) over the resource.
        unreadable, carried: of the new resource, as in a snapshot; empty if all of it is known.
        origin: where the new resource was read; None for one that was not.
    """

    operation: Operation
    id: Annotated[str, Limited(min_length=1)]
    resource: Annotated[JsonObject | None, UNCHECKED] = None
    patch: Annotated[Any, UNCHECKED] = None
    unreadable: Mapping[str, str] = field(default_factory=dict)
    carried: Carried | None = None
    origin: Origin | None = None


class Enforcement(Model, frozen=True, kw_only=True):
    """How failures of some policies are enforced at and under a scope.

    Attributes:
        policy: a policy id, an area as `--select` takes it, or `*` for all.
        scope: an ARM id; empty for everywhere.
    """

    policy: Annotated[str, Limited(min_length=1)] = "*"
    scope: str = ""
    mode: Mode


class Changed(Model, frozen=True, kw_only=True):
    """A resource that a decision is about."""

    operation: Operation
    id: str


class Decision(Model, frozen=True, kw_only=True):
    """Allow or deny, with the findings that determined it and those that did not.

    Attributes:
        exit_code: 0 allowed, 1 denied for failures, 2 denied because something could not be decided.
        snapshot: the state before the change.
        denied: failures and errors that the change is to blame for, in mode `deny` and at or above the gate.
        warned: others that it is to blame for: in mode `warn`, or below the gate.
        shadowed: others that it is to blame for, in mode `shadow`.
        undecided: findings that the change leaves unknown, where it introduces them or they sit on what it changes.
        exempted: failures that an exemption accepts, where the change introduces them or they sit on what it changes.
        standing: failures and errors after the change that were there before and are not blamed on it: those on what it
            changes, and all others if they are requested.
        cleared: failures and errors before the change that it ends; as they were.
        problems: what a reader must know of the run; an `error` that the change brings denies.
        ledger: what was not read of the changes, and of the files of the state. What a snapshot says of itself in
            `incomplete` makes findings unknown where a policy needs it, and is not repeated.

    The lists of findings are sorted by policy and resource.
    """

    decision_version: Literal[1] = 1
    allowed: bool
    exit_code: int
    bundle: BundleRef
    snapshot: SnapshotRef
    as_of: AwareDatetime
    engine: EngineRef
    changes: tuple[Changed, ...]
    denied: tuple[Finding, ...] = ()
    warned: tuple[Finding, ...] = ()
    shadowed: tuple[Finding, ...] = ()
    undecided: tuple[Finding, ...] = ()
    exempted: tuple[Finding, ...] = ()
    standing: tuple[Finding, ...] = ()
    cleared: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    ledger: tuple[LedgerEntry, ...] = ()
    settings: AppliedSettings = field(default_factory=AppliedSettings)
