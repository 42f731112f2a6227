"""`policyeng check`: evaluate snapshots and report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from policyeng import cache
from policyeng.bundle.framework_mappings import is_framework_file
from policyeng.cli.context import moment_of, require_text
from policyeng.cli.evaluation import CheckOutcome, CheckRequest, evaluate_inputs
from policyeng.cli.input_options import InputOptions
from policyeng.cli.opa_options import RegoEngineOptions
from policyeng.cli.policy_options import CriteriaOptions
from policyeng.cli.report_options import ReportOptions
from policyeng.configuration import Settings
from policyeng.errors import UsageError
from policyeng.frozen import frozen

if TYPE_CHECKING:  # the options need typer, and a plain run does not
    from policyeng.cli import options


@frozen(kw_only=True)
class CheckOptions(InputOptions, CriteriaOptions, RegoEngineOptions, ReportOptions):
    """The options of `policyeng check`."""

    inputs: options.Inputs = None
    framework: options.Framework = None
    owner_tag: options.OwnerTag = "owner"
    as_of: options.AsOf = None
    jobs: options.Jobs = 0
    baseline: options.Baseline = None
    minimise: options.Minimise = False
    no_cache: options.NoCache = False
    suggest: options.Suggest = False
    exit_zero: options.ExitZero = False


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
    printer = asked.printer(owner_tag=asked.owner_tag, exit_zero=asked.exit_zero)
    _refuse_reports(asked, printer.name)
    settings = asked.settings(exclude=asked.exclude, frameworks=asked.framework)
    read = [Path(name) for name in settings.frameworks if is_framework_file(name)]
    others = [
        *read,
        *asked.policies,
        *asked.given_data,
        asked.config,
        asked.baseline,
        *(path for _, path in printer.outputs),
    ]
    request = CheckRequest(
        asked,
        asked.from_format(),
        asked.context(),
        asked.walk(settings, others),
        moment_of(asked.as_of),
        *asked.rego_engine(),
    )
    with cache.switched_off(asked.no_cache):
        checked = evaluate_inputs(request, settings)
        evaluation = checked.evaluation
        printer.write_files(evaluation, settings.profile)
        if asked.minimise:
            return _minimize(checked, request, settings)
        if asked.suggest:
            _suggest(checked, printer.name if asked.format_ else "text")
        else:
            printer.print(evaluation, settings.profile)
    return 0 if asked.exit_zero and evaluation.exit_code == 1 else evaluation.exit_code


def _refuse_reports(asked: CheckOptions, format_: str) -> None:
    """Refuse report options together with an option that prints something other than a report.

    Raises:
        UsageError: naming that option.
    """
    remedy = "remove --group-by, --baseline, --output and --format, or run a separate `policyeng check`"
    forms = (asked.group_by, asked.verbose, asked.summary, asked.quiet, asked.all_)
    if asked.minimise and (
        asked.suggest or asked.output or asked.baseline or any(forms) or asked.format_ not in (None, "text")
    ):
        raise UsageError("--minimise prints a snapshot instead of a report", remedy=remedy)
    if asked.suggest and (asked.group_by or (asked.format_ and format_ not in ("text", "json"))):
        raise UsageError("--suggest prints edits instead of a report, as text or json only", remedy=remedy)


def _suggest(checked: CheckOutcome, format_: str) -> None:
    from policyeng.cli.suggest import print_suggestions

    print_suggestions(checked, format_)


def _minimize(checked: CheckOutcome, request: CheckRequest, settings: Settings) -> int:
    from policyeng.cli.minimize import print_minimised

    return print_minimised(checked, request, settings)
