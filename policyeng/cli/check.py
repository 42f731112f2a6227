"""`policyeng check`: evaluate snapshots and report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from policyeng import cache
from policyeng.cli.console import detect_terminal, print_line
from policyeng.cli.context import find_known, moment_of, require_text, settings_of, walk_of
from policyeng.cli.evaluation import CheckOutcome, CheckRequest, evaluate_inputs, print_errors
from policyeng.cli.files import output_of, write
from policyeng.cli.report_options import ReportOptions
from policyeng.configuration import Settings
from policyeng.engines import OpaOptions
from policyeng.errors import UsageError
from policyeng.report import FORMATS, GROUPS, PROSE
from policyeng.sources import FORMATS as SOURCES
from policyeng.sources import normalize_context

if TYPE_CHECKING:  # the options need typer, and a plain run does not
    from policyeng.cli import options


def check(
    inputs: options.Inputs,
    policy: options.Policies = None,
    data: options.GivenData = None,
    select: options.Select = None,
    ignore: options.Ignore = None,
    exemptions: options.Exemptions = None,
    no_exemptions: options.NoExemptions = False,
    config: options.Config = None,
    from_: options.From = None,
    scope: options.Scope = None,
    workspace: options.Workspace = None,
    parameters: options.TemplateParameters = None,
    show_skipped: options.ShowSkipped = False,
    exclude: options.Exclude = None,
    no_gitignore: options.NoGitignore = False,
    format_: options.Format = "text",
    output: options.Output = None,
    profile: options.Profile = None,
    group_by: options.GroupBy = None,
    owner_tag: options.OwnerTag = "owner",
    fail_on: options.FailOn = None,
    strict_unknown: options.StrictUnknown = False,
    as_of: options.AsOf = None,
    engine: options.Engine = "embedded",
    jobs: options.Jobs = 0,
    baseline: options.Baseline = None,
    minimise: options.Minimise = False,
    no_cache: options.NoCache = False,
    suggest: options.Suggest = False,
    *,
    trust: Mapping[str, object],
    opa: OpaOptions,
) -> int:
    """Check workspace snapshots and report violations with their location, reason and fix.

    Examples:
      policyeng check snapshot.json
      az rest --url "$WORKSPACE_URL" | policyeng check -
      policyeng check workspace.json computes.json roles.json --select network --fail-on high
      policyeng check . --exemptions exemptions.yaml --output sarif=findings.sarif
      policyeng check main.json --parameters main.parameters.json
      policyeng check snapshot.json --select AML-NET-001 --minimise > smallest.json
    """
    require_text(inputs, select, ignore, parameters, [text for text in (profile, scope, workspace) if text is not None])
    outputs = [output_of(entry, FORMATS) for entry in output or ()]
    format_ = find_known(format_, FORMATS, "report format")
    _refuse_reports(minimise, suggest, format_, bool(group_by), bool(outputs or baseline))
    group_by = _grouping(group_by, [format_, *(name for name, _ in outputs)]) if group_by else None
    flags: dict[str, object] = {"select": select, "ignore": ignore, "exemptions": exemptions, "fail_on": fail_on}
    flags |= {"profile": profile, "strict_unknown": strict_unknown, "exclude": exclude}
    settings = settings_of({**flags, **trust}, config)
    from_ = find_known(from_, SOURCES, "input format") if from_ else None
    at, said = moment_of(as_of), normalize_context(scope or "", workspace or "", _parameters(parameters or ()))
    files, facts = policy or (), data or ()
    others = [*files, *facts, *(parameters or ()), config, baseline, *(path for _, path in outputs)]
    walk = walk_of(settings, others, gitignore=not no_gitignore)
    request = CheckRequest(
        inputs, files, facts, from_, said, walk, show_skipped, no_exemptions, at, engine, opa, jobs, baseline
    )
    with cache.switched_off(no_cache):
        judged = evaluate_inputs(request, settings)
        shown = ReportOptions(judged, group_by, settings.profile, owner_tag)
        _write(outputs, shown)
        if minimise or suggest:
            return _minimize(judged, request, settings, config) if minimise else _suggested(judged, format_)
    return _print_report(shown, format_)


def _parameters(texts: Sequence[str]) -> Mapping[str, object]:
    if not texts:
        return {}
    from policyeng.sources import read_parameters  # most runs have none

    return read_parameters(texts)


def _write(outputs: Sequence[tuple[str, Path]], shown: ReportOptions) -> None:
    for name, path in outputs:
        write(path, FORMATS[name](shown.judged.evaluation, **shown.options(name)), "report")


def _refuse_reports(minimise: bool, suggest: bool, format_: str, is_grouped: bool, has_others: bool) -> None:
    """Refuse report options together with an option that prints something other than a report.

    Raises:
        UsageError: naming that option.
    """
    remedy = "remove --group-by, --baseline, --output and --format, or run a separate `policyeng check`"
    if minimise and (suggest or is_grouped or has_others or format_ != "text"):
        raise UsageError("--minimise prints a snapshot instead of a report", remedy=remedy)
    if suggest and (is_grouped or format_ not in ("text", "json")):
        raise UsageError("--suggest prints edits instead of a report, as text or json only", remedy=remedy)


def _suggested(judged: CheckOutcome, format_: str) -> int:
    from policyeng.cli.suggest import print_suggestions

    print_suggestions(judged, format_)
    return judged.evaluation.exit_code


def _minimize(judged: CheckOutcome, request: CheckRequest, settings: Settings, config: Path | None) -> int:
    from policyeng.cli.minimize import print_minimised

    return print_minimised(judged, request, settings, config)


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
        print_errors(evaluation)
        return evaluation.exit_code
    from policyeng.report import text

    color, width = detect_terminal()
    rendered = text.render(evaluation, color=color, width=width, group_by=shown.group_by, profile=shown.profile)
    print_line(rendered.rstrip("\n"))
    return evaluation.exit_code
