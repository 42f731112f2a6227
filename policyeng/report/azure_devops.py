"""The Azure Pipelines report: one logging command per finding that does not pass, each on its own line.

Source: learn.microsoft.com, "Logging commands"; escapes as in microsoft/azure-pipelines-task-lib, `taskcommand.ts`.
"""

from __future__ import annotations

from collections.abc import Iterator

from policyeng.models import Evaluation, Finding, Outcome, Place, Problem
from policyeng.report.context import settings_text
from policyeng.report.escaping import visible
from policyeng.report.locations import find_location, problem_place, reasons
from policyeng.report.phrases import describe_exit_code, exemption_sentence, level, worst_first


def render(evaluation: Evaluation, *, exit_zero: bool = False) -> str:
    """Return `task.logissue` commands, the worst first, then `task.complete` unless the exit code is 0.

    The result of the task is `Failed`, or with `exit_zero` `SucceededWithIssues` for an exit code of 1.

    Failures of severity high or above and error findings are errors; other failures and unknown findings are warnings.
    The agent has no third type, so an exempt failure is a plain log line. Each command has the location of the first
    field in its finding and names the locations of the others in its message.
    """
    problems = sorted(evaluation.problems, key=lambda problem: problem.level != "error")
    errors = sum(problem.level == "error" for problem in problems)
    lines = [*map(_problem, problems[:errors]), *map(_line, worst_first(evaluation.others))]
    lines += map(_problem, problems[errors:])
    if configured := settings_text(evaluation.settings):
        lines.append(f"settings: {configured}")  # the agent has no notices
    words = describe_exit_code(evaluation)
    result = "SucceededWithIssues" if exit_zero and evaluation.exit_code == 1 else "Failed"
    lines.append(_command("task.complete", {"result": result}, words) if evaluation.exit_code else words)
    return "".join(f"{line}\n" for line in lines)


def _line(finding: Finding) -> str:
    message = "; ".join(_sentences(finding))
    if finding.exemption is not None:
        return visible(f"{finding.policy} {message}")
    properties = {"type": _type(finding)}
    at = find_location(finding)
    if at.file:
        properties |= {"sourcepath": at.file, "linenumber": str(at.line), "columnnumber": str(at.column)}
    return _command("task.logissue", properties | {"code": finding.policy}, message)


def _type(finding: Finding) -> str:
    if finding.outcome is Outcome.FAIL:
        return "error" if level(finding.severity) == "error" else "warning"
    return "warning" if finding.outcome is Outcome.UNKNOWN else "error"


def _sentences(finding: Finding) -> Iterator[str]:
    outcome = f" {finding.outcome}" if finding.outcome is not Outcome.FAIL else ""
    yield visible(f"({finding.severity}{outcome}) {finding.title}: {finding.resource}")
    yield from reasons(finding, Place() if finding.exemption is not None else find_location(finding))
    if finding.outcome is Outcome.FAIL and finding.remediation:
        yield visible(f"fix: {finding.remediation}")
    if finding.exemption is not None:
        yield exemption_sentence(finding.exemption)


def _problem(problem: Problem) -> str:
    message = f"{problem.place}: {problem.message}" if problem.place else problem.message
    at = problem_place(problem)
    where = {"sourcepath": at.file, "linenumber": str(at.line), "columnnumber": str(at.column)} if at.file else {}
    return _command("task.logissue", {"type": problem.level, **where}, visible(message))


def _command(name: str, properties: dict[str, str], message: str) -> str:
    listed = "".join(f"{key}={_property(value)};" for key, value in properties.items())
    return f"##vso[{name} {listed}]{_escaped(message)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%AZP25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(visible(text)).replace("]", "%5D").replace(";", "%3B")
