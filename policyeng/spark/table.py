"""The table that Spark gives back: its columns, and evaluations as its rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from policyeng.models import Denial, Evaluation, Finding, Problem, Unknown

if TYPE_CHECKING:
    from pyarrow import RecordBatch

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
        rows = [*map(_of_finding, evaluation.findings), *map(_of_problem, evaluation.problems)]
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
    """As the JSON report has them: by pydantic, which also writes the numbers that 64 bits do not hold."""
    return f"[{','.join(reason.model_dump_json(by_alias=True, fallback=str) for reason in reasons)}]"
