"""The GitHub report: one workflow command (annotation) per finding that does not pass, each on its own line.

Source: docs.github.com, "Workflow commands for GitHub Actions"; escapes as in actions/toolkit, `command.ts`.
"""

from __future__ import annotations

from collections.abc import Iterator

from policyeng.models import Evaluation, Finding, Outcome, Problem
from policyeng.report.context import settings_text
from policyeng.report.escaping import visible
from policyeng.report.locations import find_location, problem_place, reasons
from policyeng.report.phrases import describe_exit_code, exemption_sentence, level, shorten_id, worst_first

_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def render(evaluation: Evaluation) -> str:
    """Return `::error`, `::warning` and `::notice` commands, the worst first, the active settings, and the result.

    A failure has the level of its severity (high and above: error; medium, low: warning; info: notice). An exempt one
    is a notice, an unknown finding is a warning, an error finding is an error, and a problem has its own level. There
    is one annotation per finding, because GitHub shows only ten of each level per step: those of the problems that are
    errors, then those of the most severe findings. It has the location of the
    first field in the finding and names the locations of the others in its message.
    """
    problems = sorted(evaluation.problems, key=lambda problem: problem.level != "error")
    errors = sum(problem.level == "error" for problem in problems)
    lines = [*map(_problem, problems[:errors]), *map(_annotation, worst_first(evaluation.others))]
    lines += map(_problem, problems[errors:])
    if configured := settings_text(evaluation.settings):
        lines.append(_command("notice", {"title": "policyeng settings"}, configured))
    return "".join(f"{line}\n" for line in (*lines, describe_exit_code(evaluation)))


def _annotation(finding: Finding) -> str:
    properties = {"title": f"{finding.policy} ({finding.severity}): {finding.title}"}
    at = find_location(finding)
    if at.file:
        properties = {"file": at.file, "line": str(at.line), "col": str(at.column)} | properties
    return _command(_name(finding), properties, "\n".join(_sentences(finding)))


def _name(finding: Finding) -> str:
    if finding.exemption is not None:
        return "notice"
    if finding.outcome is Outcome.FAIL:
        return _COMMANDS[level(finding.severity)]
    return "warning" if finding.outcome is Outcome.UNKNOWN else "error"


def _sentences(finding: Finding) -> Iterator[str]:
    yield visible(finding.location.address) or shorten_id(finding.resource)
    yield from reasons(finding, find_location(finding), "error" if finding.outcome is Outcome.ERROR else "unknown")
    if finding.outcome is Outcome.FAIL and finding.remediation:
        yield visible(f"fix: {finding.remediation}")
    if finding.exemption is not None:
        yield exemption_sentence(finding.exemption)
    yield visible(f"resource: {finding.resource}")


def _problem(problem: Problem) -> str:
    message = f"{problem.place}: {problem.message}" if problem.place else problem.message
    at = problem_place(problem)
    where = {"file": at.file, "line": str(at.line), "col": str(at.column)} if at.file else {}
    return _command(problem.level, {**where, "title": "policyeng"}, visible(message))


def _command(name: str, properties: dict[str, str], message: str) -> str:
    listed = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {listed}::{_escaped(message)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(visible(text)).replace(":", "%3A").replace(",", "%2C")
