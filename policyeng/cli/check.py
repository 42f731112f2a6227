"""`policyeng check`: evaluate snapshots and report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from policyeng import cache
from policyeng.bundle.framework_mappings import is_framework_file
from policyeng.cli.console import detect_terminal, print_line
from policyeng.cli.context import find_known, moment_of, require_text
from policyeng.cli.evaluation import CheckOutcome, CheckRequest, evaluate_inputs, print_errors
from policyeng.cli.files import output_of, write
from policyeng.cli.input_options import InputOptions
from policyeng.cli.opa_options import RegoEngineOptions
from policyeng.cli.policy_options import CriteriaOptions
from policyeng.cli.report_options import ReportOptions
from policyeng.configuration import Settings
from policyeng.errors import UsageError
from policyeng.frozen import frozen
from policyeng.report import FORMATS, GROUPS, PROSE

if TYPE_CHECKING:  # the options need typer, and a plain run does not
    from policyeng.cli import options

#: Formats that print problems themselves, as annotations of a pipeline.
ANNOTATED = ("github", "azure-devops")


@frozen(kw_only=True)
class CheckOptions(InputOptions, CriteriaOptions, RegoEngineOptions):
    """The options of `policyeng check`."""

    inputs: options.Inputs = None
    framework: options.Framework = None
    format_: options.Format = "text"
    output: options.Output = None
    group_by: options.GroupBy = None
    owner_tag: options.OwnerTag = "owner"
    as_of: options.AsOf = None
    jobs: options.Jobs = 0
    baseline: options.Baseline = None
    minimise: options.Minimise = False
    no_cache: options.NoCache = False
    suggest: options.Suggest = False


def check(asked: CheckOptions) -> int:
    """Check workspace snapshots and report violations with their location, reason and fix.

    Examples:
      policyeng check snapshot.json
      az rest --url "$WORKSPACE_URL" | policyeng check -
      policyeng check workspace.json computes.json roles.json --select network --fail-on high
      policyeng check . --exemptions exemptions.yaml --output sarif=findings.sarif
      policyeng check main.json --parameters main.parameters.json
      policyeng check snapshot.json --framework mcsb-v1 --format html > controls.html
      policyeng check snapshot.json --select AML-NET-001 --minimise > smallest.json
    """
    single = [text for text in (asked.profile, asked.scope, asked.workspace) if text is not None]
    require_text(asked.inputs, asked.select, asked.ignore, asked.framework, asked.parameters, single)
    outputs = [output_of(entry, FORMATS) for entry in asked.output or ()]
    format_ = find_known(asked.format_, FORMATS, "report format")
    _refuse_reports(asked, format_)
    group_by = _grouping(asked.group_by, [format_, *(name for name, _ in outputs)]) if asked.group_by else None
    settings = asked.settings(exclude=asked.exclude, frameworks=asked.framework)
    read = [Path(name) for name in settings.frameworks if is_framework_file(name)]
    others = [*read, *asked.policies, *asked.given_data, asked.config, asked.baseline, *(path for _, path in outputs)]
    request = CheckRequest(
        asked,
        asked.from_format(),
        asked.context(),
        asked.walk(settings, others),
        moment_of(asked.as_of),
        *asked.rego_engine(),
    )
    with cache.switched_off(asked.no_cache):
        judged = evaluate_inputs(request, settings)
        shown = ReportOptions(judged, group_by, settings.profile, asked.owner_tag)
        _write(outputs, shown)
        if asked.minimise or asked.suggest:
            return _minimize(judged, request, settings) if asked.minimise else _suggested(judged, format_)
    return _print_report(shown, format_)


def _write(outputs: Sequence[tuple[str, Path]], shown: ReportOptions) -> None:
    for name, path in outputs:
        write(path, FORMATS[name](shown.judged.evaluation, **shown.options(name)), "report")


def _refuse_reports(asked: CheckOptions, format_: str) -> None:
    """Refuse report options together with an option that prints something other than a report.

    Raises:
        UsageError: naming that option.
    """
    remedy = "remove --group-by, --baseline, --output and --format, or run a separate `policyeng check`"
    others = asked.group_by or asked.output or asked.baseline
    if asked.minimise and (asked.suggest or others or format_ != "text"):
        raise UsageError("--minimise prints a snapshot instead of a report", remedy=remedy)
    if asked.suggest and (asked.group_by or format_ not in ("text", "json")):
        raise UsageError("--suggest prints edits instead of a report, as text or json only", remedy=remedy)


def _suggested(judged: CheckOutcome, format_: str) -> int:
    from policyeng.cli.suggest import print_suggestions

    print_suggestions(judged, format_)
    return judged.evaluation.exit_code


def _minimize(judged: CheckOutcome, request: CheckRequest, settings: Settings) -> int:
    from policyeng.cli.minimize import print_minimised

    return print_minimised(judged, request, settings)


def _grouping(given: str, names: Sequence[str]) -> str:
    group_by = find_known(given, GROUPS, "grouping")
    if not any(name in PROSE for name in names):
        message = f"--group-by does not apply to {', '.join(dict.fromkeys(names))}"
        raise UsageError(message, remedy=f"use it with {' or '.join(PROSE)}")
    return group_by


def _print_report(shown: ReportOptions, name: str) -> int:
    """Print the report and return the exit code."""
    evaluation = shown.judged.evaluation
    if name != "text":
        print_line(FORMATS[name](evaluation, **shown.options(name)).rstrip("\n"))
        if name not in ANNOTATED:
            print_errors(evaluation)
        return evaluation.exit_code
    from policyeng.report import text

    color, width = detect_terminal()
    rendered = text.render(evaluation, color=color, width=width, group_by=shown.group_by, profile=shown.profile)
    print_line(rendered.rstrip("\n"))
    return evaluation.exit_code
