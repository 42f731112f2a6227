"""`policyeng audit run`: collect, judge and keep estates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from policyeng.cli import options
from policyeng.cli.audit.notify_after_run import tell_runs
from policyeng.cli.audit.options import StoreUrl, notifying_settings_of
from policyeng.cli.console import busy, say
from policyeng.cli.context import moment_of, plain_format, require_text
from policyeng.cli.opa_options import with_opa
from policyeng.cli.signature_options import with_trust
from policyeng.configuration import Settings
from policyeng.configuration.estate_sections import input_of, require_name
from policyeng.configuration.estates import EstateSettings
from policyeng.context import held_of
from policyeng.engines import OpaOptions
from policyeng.errors import PolicyengError, UsageError, nearest
from policyeng.models import JsonObject, Problem
from policyeng.processes import processors
from policyeng.report.phrases import count

if TYPE_CHECKING:
    from policyeng.audit.records import AuditRun
    from policyeng.audit.store.store import Store

#: The exit code of what could not be decided, and how many parts that end so are named.
_UNDECIDED = 2
_NAMED = 10

Names = Annotated[list[str] | None, typer.Argument(metavar="[ESTATE]...", help="Configured estates; all unless named.")]
Given = Annotated[
    list[str] | None,
    typer.Option(
        "--input", metavar="INPUT", help="A directory, a file or a URL of an estate that is not configured; repeatable."
    ),
]
Together = Annotated[
    bool,
    typer.Option("--together", help="Of `--input`, take the files of a folder for one snapshot, not each for one."),
]
Named = Annotated[str | None, typer.Option("--estate", metavar="NAME", help="The name of the estate of `--input`.")]
Processes = Annotated[
    int,
    typer.Option(
        metavar="N", min=0, envvar="POLICYENG_JOBS", help="Processes that judge; 0 is one for each processor."
    ),
]
Full = Annotated[bool, typer.Option("--full", help="Judge also what did not change since the last run.")]


@with_opa
@with_trust
def run(
    estates: Names = None,
    input_: Given = None,
    estate: Named = None,
    together: Together = False,
    store: StoreUrl = None,
    policy: options.Policies = None,
    data: options.GivenData = None,
    select: options.Select = None,
    ignore: options.Ignore = None,
    exemptions: options.Exemptions = None,
    no_exemptions: options.NoExemptions = False,
    config: options.Config = None,
    profile: options.Profile = None,
    fail_on: options.FailOn = None,
    strict_unknown: options.StrictUnknown = False,
    as_of: options.AsOf = None,
    engine: options.Engine = "embedded",
    jobs: Processes = 1,
    full: Full = False,
    format_: options.PlainFormat = "text",
    *,
    trust: Mapping[str, object],
    opa: OpaOptions,
) -> int:
    """Judge every part of estates, and keep what came of it in the store; exits as `check` of all the parts would.

    Examples:
      policyeng audit run
      policyeng audit run production --jobs 2
      policyeng audit run --input snapshots/ --estate production --store sqlite:///audits.db
    """
    from policyeng.audit.execution.runner import run_estate
    from policyeng.audit.store import open_store

    require_text(select, ignore)
    format_, moment = plain_format(format_), moment_of(as_of)
    flags: dict[str, object] = {"select": select, "ignore": ignore, "exemptions": exemptions, "fail_on": fail_on}
    flags |= {"profile": profile, "strict_unknown": strict_unknown, "store": store, **trust}
    settings = notifying_settings_of(flags, config)
    chosen = estates_of(settings, estates or (), input_ or (), estate, together=together)
    held = held_of(policy or (), data or (), settings, no_exemptions=no_exemptions)
    with open_store(settings.store, create=True) as opened:

        def audit(each: EstateSettings) -> AuditRun:
            return run_estate(
                opened, each, held, as_of=moment, engine=engine, opa=opa, jobs=jobs or processors(), full=full
            )

        made = [audited(opened, each, audit, format_) for each in chosen]
        tell_runs(opened, settings)
    if format_ == "json":
        said = [document for _, document in made if document is not None]
        say(orjson.dumps({"runs": said}, option=orjson.OPT_INDENT_2).decode())
    return max(code for code, _ in made)


def audited(
    store: Store, estate: EstateSettings, audit: Callable[[EstateSettings], AuditRun], format_: str
) -> tuple[int, JsonObject | None]:
    """The exit code and the JSON of a run, once it was printed; one that cannot be made keeps no other from it."""
    try:
        with busy(f"auditing {estate.name}"):
            made = audit(estate)
    except PolicyengError as error:
        say(f"policyeng: {estate.name}: {error}", error=True)
        return error.exit_code, None
    document = shown(store, made)
    say_run(store, made, document, format_)
    return made.exit_code, document


def estates_of(
    settings: Settings, names: Sequence[str], inputs: Sequence[str], name: str | None, *, together: bool = False
) -> Sequence[EstateSettings]:
    """The estates that a command line names, all that are configured where it names none.

    Raises:
        UsageError: there is none of a name, or the options do not go together.
    """
    if inputs or name is not None:
        if names or not inputs or name is None:
            remedy = "write `--input PATH --estate NAME`, or the names of configured estates alone"
            raise UsageError("`--input` and `--estate` go together, and with no other estate", remedy=remedy)
        require_name(name, "flag --estate")
        read = tuple(input_of(given, Path.cwd(), "flag --input") for given in inputs)
        return [EstateSettings(name=name, inputs=read, together=together)]
    if together:
        raise UsageError("`--together` goes with `--input`", remedy="write `together = true` below `[[estates]]`")
    configured = {estate.name: estate for estate in settings.estates}
    if not configured:
        remedy = "add `[[estates]]` to `policyeng.toml`, or write `--input PATH --estate NAME`"
        raise UsageError("no estate is configured", remedy=remedy)
    for given in names:
        if given not in configured:
            known = f"the estates are {', '.join(configured)}"
            raise UsageError(f"no estate is called `{given}`{nearest(given, configured)}", remedy=known)
    return [configured[given] for given in dict.fromkeys(names)] or [*configured.values()]


def shown(store: Store, run: AuditRun) -> JsonObject:
    """A run as JSON, with what it changed."""
    turned = store.turned(run)
    document: JsonObject = orjson.loads(run.model_dump_json(by_alias=True))
    return {**document, **turned._asdict()}


def lines_of(run: JsonObject) -> Iterator[str]:
    """A run for a reader."""
    summary = run["summary"]
    counts = [f"{summary[name]} {name}" for name in ("pass", "fail")]
    counts += [f"{summary[name]} {name}" for name in ("unknown", "error", "exempt") if summary[name]]
    moved = [f"{run['new']} new", f"{run['fixed']} fixed"] + [f"{run['lost']} no longer judged"] * bool(run["lost"])
    found = f"{count(run['parts'], 'part')}: {', '.join(counts)} ({', '.join(moved)})"
    yield f"{run['estate']}: run {run['number']}, {found}; exit {run['exitCode']}"
    yield f"  head {run['hash']}"


def say_run(store: Store, run: AuditRun, document: JsonObject, format_: str) -> None:
    """Print a run where the format is text, and on standard error what a reader must know of it."""
    if format_ == "text":
        say("\n".join(lines_of(document)))
    for problem in run.problems:
        say_problem(run.estate, problem)
    undecided = [part for part in store.parts(run) if part.exit_code == _UNDECIDED and part.snapshot]
    for part in undecided[:_NAMED]:
        errors = [problem for problem in store.evaluation(part).problems if problem.level == "error"]
        for problem in errors[:1]:
            say_problem(f"{run.estate}: {part.name}", problem)
        if not errors:
            say(f"policyeng: {run.estate}: {part.name}: {count(part.summary.error, 'finding')} of errors", error=True)
    if len(undecided) > _NAMED:
        say(f"policyeng: {run.estate}: {len(undecided) - _NAMED} more parts could not be decided", error=True)


def say_problem(where: str, problem: Problem) -> None:
    """Say a problem on standard error."""
    place = f"{problem.place}: " if problem.place else ""
    level = "" if problem.level == "error" else "warning: "
    say(f"policyeng: {where}: {level}{place}{problem.message}", error=True)
