"""`policyeng check`: evaluate snapshots and report."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from policyeng import cache
from policyeng.bundle import Bundle
from policyeng.bundle.policy_selection import is_framework_file
from policyeng.cli.console import print_line, show_progress
from policyeng.cli.context import moment_of, require_text
from policyeng.cli.evaluation_options import (
    CriteriaOptions,
    InputOptions,
    RegoEngineOptions,
    reading_lines,
    refuse_urls,
)
from policyeng.cli.report_options import ReportOptions
from policyeng.configuration import Settings
from policyeng.engines import OpaOptions
from policyeng.errors import UsageError
from policyeng.evaluation import EvaluationOptions, evaluate
from policyeng.facts.coverage import ledger_of
from policyeng.models import Evaluation, Snapshot
from policyeng.ownership import OWNER_TAG
from policyeng.sources import DocumentContext, FileWalk, read_inputs

if TYPE_CHECKING:
    from policyeng.cli import options
    from policyeng.frameworks import Framework


class CheckRequest(Struct, frozen=True):
    """The options of one run, and what was computed from them."""

    args: CheckOptions
    from_format: str | None
    context: DocumentContext
    walk: FileWalk
    as_of: datetime
    engine: str
    opa: OpaOptions

    @property
    def inputs(self) -> Sequence[str]:
        """The inputs; the current directory if none is given."""
        return self.args.inputs or ["."]


class CheckOutcome(Struct, frozen=True):
    """An evaluation and its inputs; `options` are for repeating it in this process, without the problems of reading."""

    bundle: Bundle
    snapshot: Snapshot
    options: EvaluationOptions
    evaluation: Evaluation


def evaluate_inputs(request: CheckRequest, settings: Settings) -> CheckOutcome:
    """Read the inputs and evaluate them; shows progress on standard error if that is a terminal.

    Raises:
        PolicyengError: the policies, the settings or the inputs cannot be used.
    """
    args = request.args
    setup = args.setup(settings)
    frameworks: Sequence[Framework] = ()
    if settings.frameworks:
        from policyeng.cli.controls import narrow  # most runs name no framework

        setup, frameworks = narrow(setup, settings)
    earlier = None
    if args.baseline:
        from policyeng.sources import read_report  # most runs have none

        earlier = read_report(args.baseline)
    refuse_urls(request.inputs)
    with show_progress("reading", "files"):
        stdin = sys.stdin.buffer.read() if "-" in request.inputs and sys.stdin is not None else None
        read = read_inputs(
            request.inputs,
            from_format=request.from_format,
            stdin=stdin,
            context=request.context,
            walk=request.walk,
            **setup.bundle.wanted,
        )
    snapshot = read.snapshot
    for line in reading_lines(read.read, ledger_of(snapshot), show_skipped=args.show_skipped):
        print_line(line, error=True)
    with show_progress("evaluating", "pairs"):
        options = setup.options(request.as_of, request.engine, request.opa)
        problems = (*read.problems, *setup.problems)
        evaluation = evaluate(setup.bundle, snapshot, replace(options, jobs=args.jobs, problems=problems))
        evaluation = evaluation.model_copy(update={"settings": setup.applied})
        if frameworks:
            from policyeng.cli.controls import with_frameworks

            evaluation = with_frameworks(evaluation, frameworks, setup, snapshot)
    if args.owner_tag.lower() != OWNER_TAG:
        from policyeng.report.context import assign_owners, owners_of

        evaluation = assign_owners(evaluation, owners_of(snapshot, args.owner_tag))
    if earlier is not None:
        from policyeng.evaluation.summary import apply_baseline

        evaluation = apply_baseline(evaluation, earlier)
    return CheckOutcome(setup.bundle, snapshot, options, evaluation)


@dataclass(kw_only=True, repr=False, eq=False)
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


def check(args: CheckOptions) -> int:
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
    single = [text for text in (args.profile, args.scope, args.workspace) if text is not None]
    require_text(args.inputs, args.select, args.ignore, args.framework, args.parameters, single)
    printer = args.printer(owner_tag=args.owner_tag, exit_zero=args.exit_zero)
    _refuse_reports(args, printer.name)
    settings = args.settings(exclude=args.exclude, frameworks=args.framework)
    read = [Path(name) for name in settings.frameworks if is_framework_file(name)]
    others = [
        *read,
        *args.policies,
        *args.given_data,
        args.config,
        args.baseline,
        *(path for _, path in printer.outputs),
    ]
    request = CheckRequest(
        args,
        args.from_format(),
        args.context(),
        args.walk(settings, others),
        moment_of(args.as_of),
        *args.rego_engine(),
    )
    with cache.switched_off(args.no_cache):
        checked = evaluate_inputs(request, settings)
        evaluation = checked.evaluation
        printer.write_files(evaluation, settings.profile)
        if args.minimise:
            return _minimize(checked, request, settings)
        if args.suggest:
            _suggest(checked, printer.name if args.format_ else "text")
        else:
            printer.print(evaluation, settings.profile)
    return 0 if args.exit_zero and evaluation.exit_code == 1 else evaluation.exit_code


def _refuse_reports(args: CheckOptions, format_: str) -> None:
    """Refuse report options together with an option that prints something other than a report.

    Raises:
        UsageError: naming that option.
    """
    remedy = "remove --group-by, --baseline, --output and --format, or run a separate `policyeng check`"
    forms = (args.group_by, args.verbose, args.summary, args.quiet, args.all_)
    if args.minimise and (
        args.suggest or args.output or args.baseline or any(forms) or args.format_ not in (None, "text")
    ):
        raise UsageError("--minimise prints a snapshot instead of a report", remedy=remedy)
    if args.suggest and (args.group_by or (args.format_ and format_ not in ("text", "json"))):
        raise UsageError("--suggest prints edits instead of a report, as text or json only", remedy=remedy)


def _suggest(checked: CheckOutcome, format_: str) -> None:
    from policyeng.cli.suggest import print_suggestions

    print_suggestions(checked, format_)


def _minimize(checked: CheckOutcome, request: CheckRequest, settings: Settings) -> int:
    from policyeng.cli.suggest import print_minimised

    return print_minimised(checked, request, settings)
