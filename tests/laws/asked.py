"""An example as each path of judging is asked about it, and what a path says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from policyeng.evaluation import evaluate
from policyeng.models import Exemption, JsonObject
from policyeng.report.json import render
from policyeng.sources import Inputs, read_inputs
from policyeng.verify.laws.law import Trial


@dataclass(frozen=True)
class Answer:
    """What a path says.

    Attributes:
        findings: as the JSON report has them, by policy, type and id.
        problems: as the JSON report has them; None where the path has no part in the reading.
        exit_code: of the process, where there is one.
    """

    findings: Mapping[tuple[str, str, str], JsonObject]
    problems: Sequence[JsonObject] | None
    exit_code: int


@dataclass(frozen=True)
class Asked:
    """An example as each path is asked about it.

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
    def expected(self) -> Answer:
        """What every path has to say: the file read and judged here, part by part."""
        inputs = self.inputs
        judged = evaluate(self.trial.bundle, inputs.snapshot, problems=inputs.problems, **self.options)  # type: ignore[arg-type]  # the options below
        return self.answer(render(judged), judged.exit_code)

    @property
    def options(self) -> dict[str, object]:
        """How it is judged."""
        return {
            "as_of": self.trial.example.as_of,
            "parameters": self.parameters,
            "exemptions": self.exemptions,
        }

    def placed(self, answer: Answer) -> Answer:
        """An answer of a path that does not know where all fields stand, with the places that are expected."""
        places = {pair: row.get("location") for pair, row in self.expected.findings.items()}
        rows = {pair: {**row, "location": places.get(pair)} for pair, row in answer.findings.items()}
        return replace(answer, findings=rows)

    def answer(self, report: str, exit_code: int) -> Answer:
        """A JSON report as an answer, with one name for the input however it came."""
        for name in (json.dumps(str(self.file))[1:-1], "<stdin>"):
            report = report.replace(name, "<input>")
        said = json.loads(report)
        rows = {(row["policy"], row["resourceType"].lower(), row["resource"].lower()): row for row in said["findings"]}
        return Answer(rows, said["problems"], exit_code)
