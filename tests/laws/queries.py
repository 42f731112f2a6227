"""An example as the query of each path of evaluation, and the result of a path."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from policyeng.evaluation import EvaluationOptions, evaluate
from policyeng.models import Exemption, JsonObject
from policyeng.report.json import render
from policyeng.sources import Inputs, read_inputs
from policyeng.verify.laws.law import Trial


@dataclass(frozen=True)
class PathResult:
    """The result of a path.

    Attributes:
        findings: as the JSON report has them, by policy, type and id.
        problems: as the JSON report has them; None where the path has no part in the reading.
        exit_code: of the process, where there is one.
    """

    findings: Mapping[tuple[str, str, str], JsonObject]
    problems: Sequence[JsonObject] | None
    exit_code: int


@dataclass(frozen=True)
class Query:
    """An example as the query of each path.

    Attributes:
        folder: an empty directory with the snapshot, the parameters and the exemptions as files.
        naming: the options that name the same bundle to a process; None where it cannot be given to one.
    """

    trial: Trial
    folder: Path
    parameters: Mapping[str, JsonObject]
    exemptions: Sequence[Exemption]
    naming: Sequence[str] | None

    @property
    def file(self) -> Path:
        """The snapshot."""
        return self.folder / "snapshot.json"

    @cached_property
    def inputs(self) -> Inputs:
        """What the reader makes of the file."""
        return read_inputs([self.file], **self.trial.bundle.wanted)

    @property
    def refused(self) -> bool:
        """Whether the reader refuses a part of the file."""
        return any(problem.level == "error" for problem in self.inputs.problems)

    @cached_property
    def expected(self) -> PathResult:
        """What every path has to return: the file read and evaluated here, part by part."""
        inputs = self.inputs
        evaluation = evaluate(
            self.trial.bundle,
            inputs.snapshot,
            EvaluationOptions(problems=inputs.problems, **self.options),  # type: ignore[arg-type]  # the options below
        )
        return self.result(render(evaluation), evaluation.exit_code)

    @property
    def options(self) -> dict[str, object]:
        """The options of the evaluation."""
        return {
            "as_of": self.trial.example.as_of,
            "parameters": self.parameters,
            "exemptions": self.exemptions,
        }

    def placed(self, result: PathResult) -> PathResult:
        """A result of a path that does not know the places of all fields, with the expected ones."""
        places = {pair: row.get("location") for pair, row in self.expected.findings.items()}
        rows = {pair: {**row, "location": places.get(pair)} for pair, row in result.findings.items()}
        return replace(result, findings=rows)

    def result(self, report: str, exit_code: int) -> PathResult:
        """A JSON report as a result, with one name for the input however it came."""
        for name in (json.dumps(str(self.file))[1:-1], "<stdin>"):
            report = report.replace(name, "<input>")
        content = json.loads(report)
        rows = {
            (row["policy"], row["resourceType"].lower(), row["resource"].lower()): row for row in content["findings"]
        }
        return PathResult(rows, content["problems"], exit_code)
