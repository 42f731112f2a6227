"""`policyeng admit`: decide whether a change is allowed, for hooks and pipelines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from policyeng import cache
from policyeng.admission import admit as decide
from policyeng.admission.decision import with_problems
from policyeng.cli import options
from policyeng.cli.console import detect_terminal, print_line, show_progress
from policyeng.cli.context import find_known, moment_of, plain_format, require_text, settings_of, walk_of
from policyeng.cli.files import output_of, write
from policyeng.cli.input_summary import reading_lines
from policyeng.cli.opa_options import with_opa
from policyeng.cli.signature_options import with_trust
from policyeng.configuration import Settings
from policyeng.context import load_resources
from policyeng.engines import OpaOptions
from policyeng.errors import BundleError, UsageError
from policyeng.models import Blame, Change, Decision, Operation, Snapshot, lowered
from policyeng.report import decision as text
from policyeng.report import decision_json
from policyeng.sources import (
    CHANGE_FORMATS,
    FORMATS,
    ChangesRead,
    DocumentContext,
    FileWalk,
    is_resource_id,
    normalize_context,
    read_changes,
    read_inputs,
    read_parameters,
    read_whole,
)

_FORMATS: Mapping[str, Callable[[Decision], str]] = {"text": text.render, "json": decision_json.render}

ChangeInputs = Annotated[
    list[str] | None,
    typer.Argument(metavar="CHANGE...", help="Files or directories with changes; - reads standard input."),
]
Snapshots = Annotated[
    list[str] | None,
    typer.Option(
        "--snapshot",
        metavar="FILE",
        envvar="POLICYENG_SNAPSHOT",
        help="State before the change: a file or directory in any format that `check` reads; repeatable.",
    ),
]
Deletes = Annotated[
    list[str] | None, typer.Option("--delete", metavar="ID", help="ARM id of a resource to delete; repeatable.")
]
Whole = Annotated[
    bool,
    typer.Option(
        "--whole",
        help="Treat the changes as the complete desired state; all other resources are deleted.",
    ),
]
ChangeFormat = Annotated[
    str | None,
    typer.Option("--from", metavar="FORMAT", help=f"Format of the changes: {', '.join(CHANGE_FORMATS)}."),
]
BlameOption = Annotated[
    str | None,
    typer.Option(
        "--blame",
        metavar="WHAT",
        help=f"Failures that deny a change: {', '.join(Blame)}. `touched` includes old ones on changed resources.",
    ),
]
Standing = Annotated[
    bool,
    typer.Option("--standing", help="Also list pre-existing failures that do not deny the change."),
]


@dataclass(frozen=True, slots=True)
class _Request:
    """The options of one run that are not settings."""

    inputs: Sequence[str]
    snapshots: Sequence[str]
    deletes: Sequence[str]
    whole: bool
    policies: Sequence[Path]
    given_data: Sequence[str]
    from_format: str | None
    said: DocumentContext
    walk: FileWalk
    show_skipped: bool
    no_exemptions: bool
    as_of: datetime
    engine: str
    opa: OpaOptions
    standing: bool


@with_opa
@with_trust
def admit(
    inputs: ChangeInputs = None,
    snapshot: Snapshots = None,
    delete: Deletes = None,
    whole: Whole = False,
    policy: options.Policies = None,
    data: options.GivenData = None,
    select: options.Select = None,
    ignore: options.Ignore = None,
    exemptions: options.Exemptions = None,
    no_exemptions: options.NoExemptions = False,
    config: options.Config = None,
    from_: ChangeFormat = None,
    scope: options.Scope = None,
    workspace: options.Workspace = None,
    parameters: options.TemplateParameters = None,
    show_skipped: options.ShowSkipped = False,
    exclude: options.Exclude = None,
    no_gitignore: options.NoGitignore = False,
    format_: options.PlainFormat = "text",
    output: options.Output = None,
    profile: options.Profile = None,
    fail_on: options.FailOn = None,
    strict_unknown: options.StrictUnknown = False,
    blame: BlameOption = None,
    standing: Standing = False,
    as_of: options.AsOf = None,
    engine: options.Engine = "embedded",
    no_cache: options.NoCache = False,
    *,
    trust: Mapping[str, object],
    opa: OpaOptions,
) -> int:
    """Decide whether a change to a snapshot is allowed. Exit codes: 0 allowed, 1 denied, 2 undecided.

    Examples:
      policyeng admit plan.json --snapshot estate.json
      az deployment group what-if ... --no-pretty-print | policyeng admit - --snapshot estate.json
      policyeng admit --delete "$WORKSPACE_ID" --snapshot estate.json
      policyeng admit new/ --whole --snapshot old/
    """
    format_, outputs = plain_format(format_), [output_of(entry, _FORMATS) for entry in output or ()]
    flags: dict[str, object] = {"select": select, "ignore": ignore, "exemptions": exemptions, "fail_on": fail_on}
    flags |= {"profile": profile, "strict_unknown": strict_unknown, "blame": blame, "exclude": exclude}
    settings = settings_of({**flags, **trust}, config)
    at, said = moment_of(as_of), normalize_context(scope or "", workspace or "", read_parameters(parameters or ()))
    from_ = find_known(from_, FORMATS if whole else CHANGE_FORMATS, "input format") if from_ else None
    named, files, facts = (inputs or (), snapshot or (), delete or ()), policy or (), data or ()
    others = [*files, *facts, *(parameters or ()), config, *(path for _, path in outputs)]
    walk = walk_of(settings, others, gitignore=not no_gitignore)
    request = _Request(
        *named, whole, files, facts, from_, said, walk, show_skipped, no_exemptions, at, engine, opa, standing
    )
    _require_inputs(request)
    with cache.switched_off(no_cache):
        decision = _decision(request, settings)
    for name, path in outputs:
        write(path, _FORMATS[name](decision), "decision")
    _print(decision, format_)
    return decision.exit_code


def _require_inputs(request: _Request) -> None:
    """Refuse a command line without changes or without a state, or with conflicting options.

    Raises:
        UsageError: naming what is missing or conflicts.
    """
    require_text(request.inputs, request.snapshots, request.deletes)
    if not request.inputs and not request.deletes:
        raise UsageError("no changes are given", remedy="pass a file with changes, or `--delete ID`")
    if not request.snapshots:
        remedy = "pass `--snapshot FILE`; for an empty state, a file with `snapshotVersion`: 1"
        raise UsageError("missing the state before the change", remedy=remedy)
    if [*request.inputs, *request.snapshots].count("-") > 1:
        raise UsageError("`-` is given twice", remedy="pass a file for the changes or for the snapshot")
    if request.whole and (request.deletes or not request.inputs):
        raise UsageError(
            "--whole already deletes every resource that is not in the changes",
            remedy="remove --delete, and pass a file with the complete state",
        )
    for identity in request.deletes:
        if not is_resource_id(identity):
            remedy = "write /subscriptions/.../providers/<namespace>/<type>/<name>"
            raise UsageError(f"`{identity}` is not the ARM id of a resource", place=("--delete",), remedy=remedy)


def _decision(request: _Request, settings: Settings) -> Decision:
    """Decide on the changes that could be read; a reading error denies the change.

    Raises:
        BundleError: no policy evaluates resources, so nothing would ever be denied.
    """
    held = load_resources(request.policies, request.given_data, settings, no_exemptions=request.no_exemptions)
    if {lowered(kind.type) for policy in held.bundle.policies for kind in policy.header.judges} <= {"document"}:
        raise BundleError("no selected policy evaluates resources", remedy="change `--select` or `--ignore`")
    with show_progress("reading"):
        wants_stdin = "-" in (*request.inputs, *request.snapshots) and sys.stdin is not None
        stdin = sys.stdin.buffer.read() if wants_stdin else None
        before = read_inputs(request.snapshots, stdin=stdin, said=request.said, walk=request.walk)
        read = _changes(request, before.snapshot, stdin)
    for line in reading_lines(read.read, read.skipped, show_skipped=request.show_skipped):
        print_line(line, error=True)
    deletes = [Change(operation=Operation.DELETE, id=identity) for identity in request.deletes]
    snapshot = before.snapshot.model_copy(update={"texts": {**before.snapshot.texts, **read.texts}})
    with show_progress(f"evaluating {len(snapshot.resources)} resources before and after the change"):
        decision = decide(
            held.bundle,
            snapshot,
            [*read.changes, *deletes],
            as_of=request.as_of,
            exemptions=held.exemptions,
            parameters=held.parameters,
            engine=request.engine,
            opa=request.opa,
            fail_on=settings.fail_on,
            strict_unknown=settings.strict_unknown,
            modes=settings.modes,
            blame=settings.blame or Blame.TOUCHED,
            standing=request.standing,
        )
    decision = decision.model_copy(update={"settings": held.applied})
    return with_problems(decision, [*before.problems, *read.problems, *held.problems])


def _changes(request: _Request, before: Snapshot, stdin: bytes | None) -> ChangesRead:
    if not request.inputs:
        return ChangesRead((), (), {})
    how: dict[str, Any] = {
        "from_format": request.from_format,
        "stdin": stdin,
        "said": request.said,
        "walk": request.walk,
    }
    if request.whole:
        return read_whole(request.inputs, before, **how)
    return read_changes(request.inputs, **how)


def _print(decision: Decision, format_: str) -> None:
    if format_ != "text":
        print_line(_FORMATS[format_](decision).rstrip("\n"))
        return
    color, width = detect_terminal()
    print_line(text.render(decision, color=color, width=width).rstrip("\n"))
