"""The reports for build agents: one command per finding that does not pass and per problem, each on its own line.

Sources: docs.github.com, "Workflow commands for GitHub Actions", escapes as in actions/toolkit, `command.ts`;
learn.microsoft.com, "Logging commands", escapes as in microsoft/azure-pipelines-task-lib, `taskcommand.ts`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from policyeng.models import Evaluation, Finding, Outcome, Place, Problem
from policyeng.report.escaping import visible
from policyeng.report.locations import find_location, problem_place, reasons
from policyeng.report.phrases import (
    describe_exit_code,
    exemption_sentence,
    level,
    problem_sentence,
    settings_text,
    shorten_id,
    worst_first,
)

_AZURE_PLACE = ("sourcepath", "linenumber", "columnnumber")
#: The escapes of messages, and of the values of properties.
_GITHUB = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_GITHUB_VALUE = {**_GITHUB, **str.maketrans({":": "%3A", ",": "%2C"})}
_AZURE = str.maketrans({"%": "%AZP25", "\r": "%0D", "\n": "%0A"})
_AZURE_VALUE = {**_AZURE, **str.maketrans({"]": "%5D", ";": "%3B"})}


def render_github(evaluation: Evaluation) -> str:
    """Return `::error`, `::warning` and `::notice` commands, the worst first, the active settings, and the result.

    A failure has the level of its severity (high and above: error; medium, low: warning; info: notice). An exempt one
    is a notice, an unknown finding is a warning, an error finding is an error, and a problem has its own level. There
    is one annotation per finding, because GitHub shows only ten of each level per step: those of the problems that are
    errors, then those of the most severe findings. It has the location of the first field in the finding and names the
    locations of the others in its message.
    """
    lines = _lines(evaluation, _github_problem, _annotation)
    if configured := settings_text(evaluation.settings):
        lines.append(_workflow_command("notice", {"title": "policyeng settings"}, configured))
    return "".join(f"{line}\n" for line in (*lines, describe_exit_code(evaluation)))


def render_azure_devops(evaluation: Evaluation, *, exit_zero: bool = False) -> str:
    """Return `task.logissue` commands, the worst first, then `task.complete` unless the exit code is 0.

    The result of the task is `Failed`, or with `exit_zero` `SucceededWithIssues` for an exit code of 1.

    Failures of severity high or above and error findings are errors; other failures and unknown findings are warnings.
    The agent has no third type, so an exempt failure is a plain log line. Each command has the location of the first
    field in its finding and names the locations of the others in its message.
    """
    lines = _lines(evaluation, _azure_problem, _log_line)
    if configured := settings_text(evaluation.settings):
        lines.append(f"settings: {configured}")  # the agent has no notices
    words = describe_exit_code(evaluation)
    result = "SucceededWithIssues" if exit_zero and evaluation.exit_code == 1 else "Failed"
    lines.append(_logging_command("task.complete", {"result": result}, words) if evaluation.exit_code else words)
    return "".join(f"{line}\n" for line in lines)


def _lines(
    evaluation: Evaluation, problem_line: Callable[[Problem], str], finding_line: Callable[[Finding], str]
) -> list[str]:
    """Return the lines of the problems that are errors, the findings and the other problems."""
    problems = sorted(evaluation.remarks, key=lambda problem: problem.level != "error")
    errors = sum(problem.level == "error" for problem in problems)
    lines = [*map(problem_line, problems[:errors]), *map(finding_line, worst_first(evaluation.others))]
    return [*lines, *map(problem_line, problems[errors:])]


def _level(finding: Finding) -> str:
    if finding.outcome is Outcome.FAIL:
        return level(finding.severity)
    return "warning" if finding.outcome is Outcome.UNKNOWN else "error"


def _place(at: Place, file: str, line: str, column: str) -> dict[str, str]:
    """Return the properties of a place by their names; none without a file."""
    return {file: at.file, line: str(at.line), column: str(at.column)} if at.file else {}


def _advice(finding: Finding) -> Iterator[str]:
    if finding.outcome is Outcome.FAIL and finding.remediation:
        yield visible(f"fix: {finding.remediation}")
    if finding.exemption is not None:
        yield exemption_sentence(finding.exemption)


def _annotation(finding: Finding) -> str:
    at, title = find_location(finding), f"{finding.policy} ({finding.severity}): {finding.title}"
    sentences = (
        visible(finding.location.address) or shorten_id(finding.resource),
        *reasons(finding, at, "error" if finding.outcome is Outcome.ERROR else "unknown"),
        *_advice(finding),
        visible(f"resource: {finding.resource}"),
    )
    name = "note" if finding.exemption is not None else _level(finding)
    properties = {**_place(at, "file", "line", "col"), "title": title}
    return _workflow_command(name.replace("note", "notice"), properties, "\n".join(sentences))


def _github_problem(problem: Problem) -> str:
    properties = {**_place(problem_place(problem), "file", "line", "col"), "title": "policyeng"}
    return _workflow_command(problem.level, properties, problem_sentence(problem))


def _workflow_command(name: str, properties: dict[str, str], message: str) -> str:
    listed = ",".join(f"{key}={visible(value).translate(_GITHUB_VALUE)}" for key, value in properties.items())
    return f"::{name} {listed}::{message.translate(_GITHUB)}"


def _log_line(finding: Finding) -> str:
    at, outcome = find_location(finding), f" {finding.outcome}" if finding.outcome is not Outcome.FAIL else ""
    sentences = (
        visible(f"({finding.severity}{outcome}) {finding.title}: {finding.resource}"),
        *reasons(finding, Place() if finding.exemption is not None else at),
        *_advice(finding),
    )
    message = "; ".join(sentences)
    if finding.exemption is not None:
        return visible(f"{finding.policy} {message}")
    properties = {"type": _level(finding).replace("note", "warning"), **_place(at, *_AZURE_PLACE)}
    return _logging_command("task.logissue", {**properties, "code": finding.policy}, message)


def _azure_problem(problem: Problem) -> str:
    properties = {"type": problem.level, **_place(problem_place(problem), *_AZURE_PLACE)}
    return _logging_command("task.logissue", properties, problem_sentence(problem))


def _logging_command(name: str, properties: dict[str, str], message: str) -> str:
    listed = "".join(f"{key}={visible(value).translate(_AZURE_VALUE)};" for key, value in properties.items())
    return f"##vso[{name} {listed}]{message.translate(_AZURE)}"
