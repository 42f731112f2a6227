"""`policyeng audit run`: collect and evaluate estates, and store the results."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from policyeng.cli import options
from policyeng.cli.audit.options import StoreUrl, require_expandable_urls
from policyeng.cli.console import print_line, show_progress
from policyeng.cli.context import moment_of, plain_format, require_text
from policyeng.cli.evaluation_options import CriteriaOptions, RegoEngineOptions
from policyeng.cli.option_groups import with_options
from policyeng.cli.options import complete_estates
from policyeng.configuration import Settings
from policyeng.configuration.audit_sections import input_of, require_name
from policyeng.configuration.settings import EstateSettings
from policyeng.errors import PolicyengError, UsageError, suggest_nearest
from policyeng.models import JsonObject, Problem
from policyeng.processes import processors
from policyeng.report.phrases import count, ledger_sentence

if TYPE_CHECKING:
    from policyeng.audit.records import AuditRun
    from policyeng.audit.store import Store


def notify_about_runs(store: Store, settings: Settings) -> None:
    """Notify the configured targets of new runs, and resend earlier notifications that failed."""
    if not settings.notify:
        return
    from policyeng.audit.notifications import lines_of, send_notifications

    try:
        deliveries = send_notifications(store, settings.notify, os.environ, datetime.now(UTC))
    except PolicyengError as error:  # the runs are stored, and the notification is repeated next time
        print_line(f"policyeng: not notified: {error}", error=True)
        return
    for line in lines_of(deliveries):
        print_line(f"policyeng: {line}", error=True)


#: The exit code for undecided, and the number of undecided parts that are listed.
_UNDECIDED = 2
_NAMED = 10

Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="ESTATE", help="Configured estates. Default: all.", autocompletion=complete_estates),
]
Given = Annotated[
    list[str] | None,
    typer.Option(
        "--input", metavar="INPUT", help="Directory, file or URL of an estate that is not configured; repeatable."
    ),
]
Together = Annotated[
    bool,
    typer.Option("--together", help="With --input: read the files of a directory as one snapshot, not one per file."),
]
Named = Annotated[str | None, typer.Option("--estate", metavar="NAME", help="Name of the estate for --input.")]
Processes = Annotated[
    int,
    typer.Option(
        metavar="N", min=0, envvar="POLICYENG_JOBS", help="Number of evaluation processes; 0 is one per processor."
    ),
]
Full = Annotated[bool, typer.Option("--full", help="Also re-evaluate parts that have not changed since the last run.")]


@dataclass(kw_only=True, repr=False, eq=False)
class AuditRunOptions(CriteriaOptions, RegoEngineOptions):
    """The options of `policyeng audit run`."""

    estates: Names = None
    input_: Given = None
    estate: Named = None
    together: Together = False
    store: StoreUrl = None
    as_of: options.AsOf = None
    jobs: Processes = 1
    full: Full = False
    all_files: options.AllFiles = False
    format_: options.PlainFormat = "text"

    SETTINGS = tuple[str, ...]((*CriteriaOptions.SETTINGS, "store"))


@with_options(AuditRunOptions)
def run(args: AuditRunOptions) -> int:
    """Evaluate estates and store the results. Exit codes as for `check`.

    Examples:
      policyeng audit run
      policyeng audit run production --jobs 2
      policyeng audit run --input snapshots/ --estate production --store sqlite:///audits.db
    """
    from policyeng.audit.runner import run_estate
    from policyeng.audit.store import open_store

    require_text(args.select, args.ignore)
    format_, moment = plain_format(args.format_), moment_of(args.as_of)
    settings, (engine, opa) = require_expandable_urls(args.settings()), args.rego_engine()
    named, given = args.estates or (), args.input_ or ()
    chosen = estates_of(settings, named, given, args.estate, together=args.together)
    setup = args.setup(settings)
    options, jobs = setup.options(moment, engine, opa), args.jobs or processors()
    with open_store(settings.store, create=True) as opened:

        def audit(each: EstateSettings) -> AuditRun:
            return run_estate(
                opened,
                each,
                setup,
                options,
                jobs=jobs,
                full=args.full,
                all_files=args.all_files,
            )

        made = [audited(opened, each, audit, format_) for each in chosen]
        notify_about_runs(opened, settings)
    if format_ == "json":
        documents = [document for _, document in made if document is not None]
        print_line(orjson.dumps({"runs": documents}, option=orjson.OPT_INDENT_2).decode())
    return max(code for code, _ in made)


def audited(
    store: Store, estate: EstateSettings, audit: Callable[[EstateSettings], AuditRun], format_: str
) -> tuple[int, JsonObject | None]:
    """Audit an estate, print the run and return its exit code and JSON; an error does not stop the other estates."""
    try:
        with show_progress(f"auditing {estate.name}", "parts"):
            made = audit(estate)
    except PolicyengError as error:
        print_line(f"policyeng: {estate.name}: {error}", error=True)
        return error.exit_code, None
    document = encode_run(store, made)
    print_run(store, made, document, format_)
    return made.exit_code, document


def estates_of(
    settings: Settings, names: Sequence[str], inputs: Sequence[str], name: str | None, *, together: bool = False
) -> Sequence[EstateSettings]:
    """Return the estates that a command line names, or all configured ones.

    Raises:
        UsageError: a name is unknown, or the options cannot be combined.
    """
    if inputs or name is not None:
        if names or not inputs or name is None:
            remedy = "use `--input PATH --estate NAME`, or only names of configured estates"
            raise UsageError("`--input` and `--estate` require each other and exclude other estates", remedy=remedy)
        require_name(name, "flag --estate")
        read = tuple(input_of(given, Path.cwd(), "flag --input") for given in inputs)
        return [EstateSettings(name=name, inputs=read, together=together)]
    if together:
        raise UsageError("`--together` requires `--input`", remedy="set `together = true` in `[[estates]]` instead")
    configured = {estate.name: estate for estate in settings.estates}
    if not configured:
        remedy = "add `[[estates]]` to `policyeng.toml`, or use `--input PATH --estate NAME`"
        raise UsageError("no estate is configured", remedy=remedy)
    for given in names:
        if given not in configured:
            known = f"choose from {', '.join(configured)}"
            raise UsageError(f"unknown estate `{given}`{suggest_nearest(given, configured)}", remedy=known)
    return [configured[given] for given in dict.fromkeys(names)] or [*configured.values()]


def encode_run(store: Store, run: AuditRun) -> JsonObject:
    """Return a run with its changes, as JSON."""
    turned = store.turned(run)
    document: JsonObject = orjson.loads(run.model_dump_json(by_alias=True))
    return {**document, **turned._asdict()}


def lines_of(run: JsonObject) -> Iterator[str]:
    """Yield the lines that describe a run."""
    summary = run["summary"]
    counts = [f"{summary[name]} {name}" for name in ("pass", "fail")]
    counts += [f"{summary[name]} {name}" for name in ("unknown", "error", "exempt") if summary[name]]
    moved = [f"{run['new']} new", f"{run['fixed']} fixed"] + [f"{run['lost']} no longer evaluated"] * bool(run["lost"])
    found = f"{count(run['parts'], 'part')}: {', '.join(counts)} ({', '.join(moved)})"
    yield f"{run['estate']}: run {run['number']}, {found}; exit {run['exitCode']}"
    yield f"  head {run['hash']}"


def print_run(store: Store, run: AuditRun, document: JsonObject, format_: str) -> None:
    """Print a run as text if that is the format, and its problems on standard error."""
    if format_ == "text":
        print_line("\n".join(lines_of(document)))
    for problem in run.problems:
        print_problem(run.estate, problem)
    if sentence := ledger_sentence(run.ledger):
        print_line(f"policyeng: {run.estate}: {sentence}", error=True)
    undecided = [part for part in store.parts(run) if part.exit_code == _UNDECIDED and part.snapshot]
    for part in undecided[:_NAMED]:
        errors = [problem for problem in store.evaluation(part).problems if problem.level == "error"]
        for problem in errors[:1]:
            print_problem(f"{run.estate}: {part.name}", problem)
        if not errors:
            print_line(f"policyeng: {run.estate}: {part.name}: {count(part.summary.error, 'error')}", error=True)
    if len(undecided) > _NAMED:
        print_line(f"policyeng: {run.estate}: {len(undecided) - _NAMED} more parts could not be decided", error=True)


def print_problem(where: str, problem: Problem) -> None:
    """Print a problem on standard error."""
    place = f"{problem.place}: " if problem.place else ""
    level = "" if problem.level == "error" else "warning: "
    print_line(f"policyeng: {where}: {level}{place}{problem.message}", error=True)
