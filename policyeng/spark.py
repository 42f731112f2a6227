"""Evaluation of tables of snapshots in Spark. Importing other packages does not load Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from msgspec.structs import replace

from policyeng import __version__
from policyeng.api import parameters_of
from policyeng.bundle import Bundle
from policyeng.bundle.assembling import pack_bundle, unpack_bundle
from policyeng.engines.embedded import compile_rego
from policyeng.errors import UsageError, suggest_nearest
from policyeng.evaluation import EvaluationOptions, evaluate, prepare
from policyeng.models import Denial, Evaluation, Exemption, Finding, JsonObject, Problem, Severity, Snapshot, Unknown
from policyeng.sources import DEFAULT_MAX_BYTES
from policyeng.sources.discovery import Named
from policyeng.sources.reader import read_inputs

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import DataFrame

#: By name, the type of each column in the words of Spark SQL. What is JSON has the members of the JSON report.
COLUMNS: Mapping[str, str] = {
    "name": "string",  # of the snapshot, as it was given
    "outcome": "string",  # pass, fail, unknown or error; error or warning for a problem
    "policy": "string",  # null for a problem, as all is that follows until `message`
    "title": "string",
    "severity": "string",
    "resource": "string",
    "resource_type": "string",
    "denials": "string",  # JSON: a list of msg, path, actual and expected
    "unknowns": "string",  # JSON: a list of msg and path
    "exemption": "string",  # the id of the one that covers the failure
    "remediation": "string",
    "source": "string",
    "file": "string",  # the file of the resource; the name of the snapshot
    "line": "int",
    "column": "int",
    "message": "string",  # of a problem, and null for a finding
    "place": "string",
    "exit_code": "int",  # of the whole snapshot
    "scope": "string",
    "taken_at": "timestamp",
    "snapshot_digest": "string",
    "bundle_digest": "string",
    "engine_version": "string",
    "as_of": "timestamp",
}


class PendingRows:
    """Rows that wait to be handed over together, column by column."""

    def __init__(self) -> None:
        self._columns: dict[str, list[object]] = {name: [] for name in COLUMNS}

    def __len__(self) -> int:
        return len(self._columns["name"])

    def add(self, name: str | None, evaluation: Evaluation) -> None:
        """Add the findings and the problems of one snapshot; the name is as it was given."""
        snapshot = evaluation.snapshot
        same = {
            "name": name,
            "exit_code": evaluation.exit_code,
            "scope": snapshot.scope,
            "taken_at": snapshot.taken_at,
            "snapshot_digest": snapshot.digest,
            "bundle_digest": evaluation.bundle.digest,
            "engine_version": evaluation.engine.version,
            "as_of": evaluation.as_of,
        }
        rows = [*map(_of_finding, evaluation.findings), *map(_of_problem, evaluation.remarks)]
        for column, values in self._columns.items():
            if column in same:
                values += [same[column]] * len(rows)
            else:
                values += [row.get(column) for row in rows]

    def taken(self) -> RecordBatch:
        """Return the rows in Arrow format, and clear the buffer."""
        import pyarrow as pa

        kinds = {"string": pa.string(), "int": pa.int32(), "timestamp": pa.timestamp("us", tz="UTC")}
        arrays = [pa.array(values, kinds[COLUMNS[column]]) for column, values in self._columns.items()]
        for values in self._columns.values():
            values.clear()
        return pa.RecordBatch.from_arrays(arrays, names=list(COLUMNS))


def _of_finding(finding: Finding) -> dict[str, object]:
    location = finding.location
    return {
        "outcome": finding.outcome.value,
        "policy": finding.policy,
        "title": finding.title,
        "severity": finding.severity.value,
        "resource": finding.resource,
        "resource_type": finding.resource_type,
        "denials": _json(finding.denials),
        "unknowns": _json(finding.unknowns),
        "exemption": finding.exemption.id if finding.exemption else None,
        "remediation": finding.remediation,
        "source": finding.source,
        "file": location.file,
        "line": location.line,
        "column": location.column,
    }


def _of_problem(problem: Problem) -> dict[str, object]:
    return {"outcome": problem.level, "message": problem.message, "place": problem.place}


def _json(reasons: Iterable[Denial | Unknown]) -> str:
    """As the JSON report has them: by pydantic, which also writes the numbers that do not fit into 64 bits."""
    return f"[{','.join(reason.model_dump_json(by_alias=True, fallback=str) for reason in reasons)}]"


#: So many rows go to Spark together; one snapshot is never split.
_MOST_ROWS = 4096
_NAMELESS = "a snapshot without a name"
#: Python processes of Spark live on from task to task.
_opened = lru_cache(maxsize=2)(unpack_bundle)


@dataclass(frozen=True, slots=True)
class Worker:
    """The arguments of a task; Spark pickles them.

    Attributes:
        bundle: the result of `pack_bundle`.
        build: the policyeng version of the driver.
        options: with the parameters of the profile.
    """

    bundle: bytes = field(repr=False)
    build: str
    options: EvaluationOptions
    max_bytes: int

    def __call__(self, batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        """Evaluate batches with a column of names and one of snapshots.

        Raises:
            UsageError: this process has another version than the driver.
            BundleError: the bundle differs from that of the driver.
        """
        if self.build != __version__:
            what = f"the driver has policyeng {self.build}, and this worker has {__version__}"
            raise UsageError(what, remedy="install the same policyeng on the driver and on every worker")
        rows = PendingRows()
        for batch in batches:
            for name, snapshot in zip(*batch.columns, strict=True):
                called: str | None = name.as_py()
                rows.add(called, self._judged(_NAMELESS if called is None else called, snapshot.as_py()))
                if len(rows) >= _MOST_ROWS:
                    yield rows.taken()
        if len(rows):
            yield rows.taken()

    def _judged(self, name: str, snapshot: str | bytes | None) -> Evaluation:
        bundle = _opened(self.bundle)
        if snapshot is None:
            missing = Problem(level="error", message="the row holds no snapshot", place=name)
            return evaluate(bundle, Snapshot(), replace(self.options, problems=[missing]))
        content = snapshot.encode() if isinstance(snapshot, str) else snapshot
        read = read_inputs([Named(name, None)], stdin=content, max_bytes=self.max_bytes, **bundle.wanted)
        return evaluate(bundle, read.snapshot, replace(self.options, problems=read.problems))


def evaluate_table(
    frame: DataFrame,
    bundle: Bundle,
    *,
    as_of: datetime,
    snapshot_column: str = "snapshot",
    name_column: str = "name",
    exemptions: Sequence[Exemption] = (),
    parameters: Mapping[str, JsonObject] | None = None,
    profile: str | None = None,
    fail_on: Severity = Severity.LOW,
    strict_unknown: bool = False,
    max_bytes: int = DEFAULT_MAX_BYTES,
) -> DataFrame:
    """Evaluate every row of a table as `policyeng check` evaluates a file of its name and content.

    Args:
        frame: one snapshot per row, in any JSON format; it is read lazily, with the findings.
        bundle: the active policies; they are sent to the workers, which need policyeng but none of the files.
        as_of: the evaluation time of all rows, so that a repeated evaluation of a row gives the same findings.
        snapshot_column: the column of the snapshots, as text or as bytes in UTF-8.
        name_column: the column of the names of snapshots in findings and problems; they need not be unique.
        exemptions: exemptions that mark failures while they are active.
        parameters: values that replace the defaults, by policy id; below `*` for every policy with such a parameter.
        profile: a set of parameters of the bundle; `parameters` override it.
        fail_on: failures at or above this severity make the exit code of their snapshot 1.
        strict_unknown: what cannot be decided counts as a failure does.
        max_bytes: the largest snapshot that is read.

    Returns:
        The columns of `COLUMNS`; one row per finding, passes too, and one per problem, which has no policy: an `error`
        for a snapshot that cannot be read, a `warning` for what changes no exit.

    Raises:
        UsageError: there is no such column, or it has neither text nor bytes; a parameter names no policy or does not
            fit, or the profile does not exist.
        BundleError: the profile is not well formed, or the bundle was not read from files.
        EngineError: the bundle does not compile.
    """
    _require_arrow()
    _require_columns(frame, name_column, snapshot_column)
    given = parameters_of(bundle, profile, parameters)
    prepare(bundle, Snapshot(), given)  # errors are reported here, not once per worker
    compile_rego(bundle)
    options = EvaluationOptions(
        as_of, tuple(exemptions), given, fail_on=Severity(fail_on), strict_unknown=strict_unknown
    )
    worker = Worker(pack_bundle(bundle), __version__, replace(options, as_of=options.moment), max_bytes)
    name, snapshot = frame[_quoted(name_column)], frame[_quoted(snapshot_column)]
    pairs = frame.select(name.cast("string").alias("name"), snapshot.alias("snapshot"))
    return pairs.mapInArrow(worker, ", ".join(f"`{name}` {kind}" for name, kind in COLUMNS.items()))


def _quoted(column: str) -> str:
    """Quote the name of a column for Spark, where a dot would select a nested field."""
    return f"`{column.replace('`', '``')}`"


def _require_arrow() -> None:
    if find_spec("pyarrow") is None:
        raise UsageError("Spark hands tables over in the form of Arrow", remedy="install `policyeng[spark]`")


def _require_columns(frame: DataFrame, name: str, snapshot: str) -> None:
    kinds = dict(frame.dtypes)
    for column in (name, snapshot):
        if column not in kinds:
            remedy = f"the columns are {', '.join(kinds)}; set `name_column` and `snapshot_column`"
            raise UsageError(f"the table has no column `{column}`{suggest_nearest(column, kinds)}", remedy=remedy)
    if kinds[snapshot] not in ("string", "binary"):
        remedy = "give the whole document as text or bytes, such as `to_json` writes"
        raise UsageError(f"the column `{snapshot}` is of {kinds[snapshot]}", remedy=remedy)


#: The name of `evaluate_table` in version 0.1.
judge = evaluate_table

__all__ = ["COLUMNS", "evaluate_table", "judge"]
