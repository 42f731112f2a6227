"""`policyeng admit`: decide whether a change is allowed, for hooks and pipelines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import typer

from policyeng import cache
from policyeng.admission import admit as decide
from policyeng.cli import options
from policyeng.cli.console import print_form, print_line, show_progress
from policyeng.cli.context import moment_of, plain_format, require_text
from policyeng.cli.evaluation_options import (
    CriteriaOptions,
    InputOptions,
    RegoEngineOptions,
    reading_lines,
    refuse_urls,
)
from policyeng.cli.files import output_of, write
from policyeng.cli.option_groups import with_options
from policyeng.configuration import Settings
from policyeng.errors import BundleError, UsageError
from policyeng.models import Blame, Change, Decision, Operation, Snapshot, lowered
from policyeng.report import decision as report
from policyeng.sources import (
    CHANGE_FORMATS,
    FORMATS,
    ChangesRead,
    is_resource_id,
    read_changes,
    read_inputs,
    read_whole,
)

_FORMATS: Mapping[str, Callable[..., str]] = {"text": report.render, "json": report.render_json}

ChangeInputs = Annotated[
    list[str] | None,
    typer.Argument(metavar="CHANGE", help="Files or directories with changes; - reads standard input."),
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


@dataclass(kw_only=True, repr=False, eq=False)
class AdmitOptions(InputOptions, CriteriaOptions, RegoEngineOptions):
    """The options of `policyeng admit`."""

    inputs: ChangeInputs = None
    snapshot: Snapshots = None
    delete: Deletes = None
    whole: Whole = False
    from_: ChangeFormat = None
    format_: options.PlainFormat = "text"
    output: options.Output = None
    blame: BlameOption = None
    standing: Standing = False
    as_of: options.AsOf = None
    no_cache: options.NoCache = False

    @property
    def changes(self) -> Sequence[str]:
        """The files with changes."""
        return self.inputs or ()

    @property
    def before(self) -> Sequence[str]:
        """The files with the state before the change."""
        return self.snapshot or ()

    @property
    def deleted(self) -> Sequence[str]:
        """The ids of the resources to delete."""
        return self.delete or ()


@with_options(AdmitOptions)
def admit(args: AdmitOptions) -> int:
    """Decide whether a change to a snapshot is allowed. Exit codes: 0 allowed, 1 denied, 2 undecided.

    Examples:
      policyeng admit plan.json --snapshot estate.json
      az deployment group what-if ... --no-pretty-print | policyeng admit - --snapshot estate.json
      policyeng admit --delete "$WORKSPACE_ID" --snapshot estate.json
      policyeng admit new/ --whole --snapshot old/
    """
    format_, outputs = plain_format(args.format_), [output_of(entry, _FORMATS) for entry in args.output or ()]
    settings = args.settings(blame=args.blame, exclude=args.exclude)
    _require_inputs(args)
    how = {
        "from_format": args.from_format(FORMATS if args.whole else CHANGE_FORMATS),
        "context": args.context(),
        "walk": args.walk(settings, [*args.policies, *args.given_data, args.config, *(path for _, path in outputs)]),
    }
    with cache.switched_off(args.no_cache):
        decision = _decision(args, settings, how)
    for name, path in outputs:
        write(path, _FORMATS[name](decision), "decision")
    print_form(_FORMATS[format_], decision, format_)
    return decision.exit_code


def _require_inputs(args: AdmitOptions) -> None:
    """Refuse a command line without changes or without a state, or with conflicting options.

    Raises:
        UsageError: naming what is missing or conflicts.
    """
    require_text(args.changes, args.before, args.deleted)
    refuse_urls((*args.changes, *args.before))
    if not args.changes and not args.deleted:
        raise UsageError("no changes are given", remedy="pass a file with changes, or `--delete ID`")
    if not args.before:
        remedy = "pass `--snapshot FILE`; for an empty state, a file with `snapshotVersion`: 1"
        raise UsageError("missing the state before the change", remedy=remedy)
    if [*args.changes, *args.before].count("-") > 1:
        raise UsageError("`-` is given twice", remedy="pass a file for the changes or for the snapshot")
    if args.whole and (args.deleted or not args.changes):
        raise UsageError(
            "--whole already deletes every resource that is not in the changes",
            remedy="remove --delete, and pass a file with the complete state",
        )
    for identity in args.deleted:
        if not is_resource_id(identity):
            remedy = "write /subscriptions/.../providers/<namespace>/<type>/<name>"
            raise UsageError(f"`{identity}` is not the ARM id of a resource", place=("--delete",), remedy=remedy)


def _decision(args: AdmitOptions, settings: Settings, how: Mapping[str, Any]) -> Decision:
    """Decide on the changes that could be read; a reading error denies the change.

    Raises:
        BundleError: no policy evaluates resources, so nothing would ever be denied.
    """
    setup = args.setup(settings)
    if {lowered(kind.type) for policy in setup.bundle.policies for kind in policy.header.judges} <= {"document"}:
        raise BundleError("no selected policy evaluates resources", remedy="change `--select` or `--ignore`")
    with show_progress("reading", "files"):
        wants_stdin = "-" in (*args.changes, *args.before) and sys.stdin is not None
        stdin = sys.stdin.buffer.read() if wants_stdin else None
        before = read_inputs(args.before, stdin=stdin, context=how["context"], walk=how["walk"])
        read = _changes(args, before.snapshot, {**how, "stdin": stdin})
    for line in reading_lines(read.read, (*before.snapshot.ledger, *read.ledger), show_skipped=args.show_skipped):
        print_line(line, error=True)
    engine, opa = args.rego_engine()
    deletes = [Change(operation=Operation.DELETE, id=identity) for identity in args.deleted]
    # What was not read of a state that is replaced as a whole cannot change the decision.
    ledger = () if args.whole else before.snapshot.ledger
    snapshot = before.snapshot.model_copy(update={"texts": {**before.snapshot.texts, **read.texts}, "ledger": ledger})
    problems = (*before.problems, *read.problems, *setup.problems)
    with show_progress(f"evaluating {len(snapshot.resources)} resources before and after the change"):
        decision = decide(
            setup.bundle,
            snapshot,
            replace(read, changes=(*read.changes, *deletes), problems=problems),
            setup.admission_options(moment_of(args.as_of), engine, opa, standing=args.standing),
        )
    return decision.model_copy(update={"settings": setup.applied})


def _changes(args: AdmitOptions, before: Snapshot, how: Mapping[str, Any]) -> ChangesRead:
    if not args.changes:
        return ChangesRead(())
    return read_whole(args.changes, before, **how) if args.whole else read_changes(args.changes, **how)
