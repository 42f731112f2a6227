"""`policyeng check`: judge snapshots and report."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from policyeng import cache
from policyeng.bundle import Bundle
from policyeng.bundle.parameters import refuse_unknown_ids, require_fitting, spread
from policyeng.bundle.profiles import with_profile
from policyeng.bundle.selection import selected
from policyeng.cli.loading import bundle_of, chosen, require_text, settings_of
from policyeng.cli.printing import is_terminal, look, say
from policyeng.cli.reading import reading_lines
from policyeng.cli.writing import write
from policyeng.configuration import Settings
from policyeng.engines import OpaOptions
from policyeng.errors import UsageError
from policyeng.evaluation import evaluate
from policyeng.models import Evaluation, Exemption, JsonObject, Problem, Snapshot
from policyeng.report import FORMATS, GROUPS, PROFILED, PROSE
from policyeng.sources import FORMATS as SOURCES
from policyeng.sources import Given, given, given_parameters, read_baseline, read_exemptions, read_inputs

if TYPE_CHECKING:  # the options need typer, and a plain run does not
    from policyeng.cli import options


@dataclass(frozen=True, slots=True)
class Request:
    """What the command line asks for beyond the settings."""

    inputs: Sequence[str]
    policies: Sequence[Path]
    given_data: Sequence[str]
    from_format: str | None
    said: Given
    show_skipped: bool
    no_exemptions: bool
    as_of: datetime
    engine: str
    opa: OpaOptions
    jobs: int
    baseline: Path | None


@dataclass(frozen=True, slots=True)
class Judged:
    """An evaluation and what it was made of."""

    evaluation: Evaluation
    bundle: Bundle
    snapshot: Snapshot
    parameters: Mapping[str, JsonObject]
    exemptions: Sequence[Exemption]


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
    format_: options.Format = "text",
    output: options.Output = None,
    profile: options.Profile = None,
    group_by: options.GroupBy = None,
    fail_on: options.FailOn = None,
    strict_unknown: options.StrictUnknown = False,
    as_of: options.AsOf = None,
    engine: options.Engine = "embedded",
    jobs: options.Jobs = 0,
    baseline: options.Baseline = None,
    no_cache: options.NoCache = False,
    suggest: options.Suggest = False,
    *,
    trust: Mapping[str, object],
    opa: OpaOptions,
) -> int:
    """Judge snapshots of workspaces and report what fails, where, why and how to mend it.

    Examples:
      policyeng check snapshot.json
      az rest --url "$WORKSPACE_URL" | policyeng check -
      policyeng check workspace.json computes.json roles.json --select network --fail-on high
      policyeng check . --exemptions exemptions.yaml --output sarif=findings.sarif
      policyeng check main.json --parameters main.parameters.json
    """
    require_text(inputs, select, ignore, parameters, [text for text in (profile, scope, workspace) if text is not None])
    outputs = [_output(entry) for entry in output or ()]
    format_ = _format(format_, group_by, suggest=suggest)
    if group_by:
        group_by = _grouping(group_by, [format_, *(name for name, _ in outputs)])
    flags: dict[str, object] = {"select": select, "ignore": ignore, "exemptions": exemptions, "fail_on": fail_on}
    flags |= {"profile": profile, "strict_unknown": strict_unknown, **trust}
    settings = settings_of(flags, config)
    from_ = chosen(from_, SOURCES, "input format") if from_ else None
    moment = _moment(as_of) if as_of else datetime.now(UTC)
    said = given(scope or "", workspace or "", given_parameters(parameters or ()))
    request = Request(
        inputs, policy or (), data or (), from_, said, show_skipped, no_exemptions, moment, engine, opa, jobs, baseline
    )
    with cache.switched_off(no_cache):
        judged = _judged(request, settings)
        for name, path in outputs:
            write(path, FORMATS[name](judged.evaluation, **_shown(name, group_by, settings.profile)), "report")
        _print(judged, format_, _shown(format_, group_by, settings.profile), suggest=suggest)
    return judged.evaluation.exit_code


def _suggestions(judged: Judged, format_: str) -> str:
    """For each failure the smallest edit that mends it, as text or JSON."""
    from policyeng.verify.mending.rendering import as_json, as_text
    from policyeng.verify.mending.suggestion import Mender

    evaluation, snapshot = judged.evaluation, judged.snapshot
    mender = Mender(judged.bundle, snapshot, evaluation.as_of, judged.parameters, judged.exemptions)
    with _progress("looking for edits"):
        found = [one for finding in evaluation.findings if (one := mender.suggestion(finding)) is not None]
    return (as_json if format_ == "json" else as_text)(found, snapshot)


def _format(given: str, group_by: str | None, *, suggest: bool) -> str:
    """The report format; suggestions are text or JSON, and not grouped."""
    format_ = chosen(given, FORMATS, "report format")
    if suggest and format_ not in ("text", "json"):
        message = f"--suggest and --format {format_} do not go together"
        raise UsageError(message, remedy=f"suggestions are text or json; write the report with --output {format_}=PATH")
    if suggest and group_by:
        raise UsageError("--suggest and --group-by do not go together", remedy="leave one of them out")
    return format_


def _judged(request: Request, settings: Settings) -> Judged:
    whole = bundle_of(request.policies, settings, request.given_data)
    origin = settings.origins.get("parameters", "")
    given = spread(whole, settings.parameters, origin)
    refuse_unknown_ids(whole, given, origin)
    bundle = selected(whole, settings.select, settings.ignore)
    require_fitting(bundle, given, origin)
    parameters = with_profile(whole, settings.profile, given)
    earlier = read_baseline(request.baseline) if request.baseline else None
    exemptions, problems = _exemptions(request, settings)
    with _progress("reading"):
        stdin = sys.stdin.buffer.read() if "-" in request.inputs and sys.stdin is not None else None
        judged = {kind.type.lower() for entry in bundle.policies for kind in entry.header.judges}
        read = read_inputs(
            request.inputs,
            from_format=request.from_format,
            stdin=stdin,
            documents="document" in judged,
            resources=judged != {"document"},
            said=request.said,
        )
    snapshot = read.snapshot
    for line in reading_lines(read, show_skipped=request.show_skipped):
        say(line, error=True)
    with _progress(f"judging {len(snapshot.resources) or len(snapshot.documents)} resources"):
        evaluation = evaluate(
            bundle,
            snapshot,
            as_of=request.as_of,
            exemptions=exemptions,
            parameters=parameters,
            engine=request.engine,
            opa=request.opa,
            threads=request.jobs or os.cpu_count() or 1,
            fail_on=settings.fail_on,
            strict_unknown=settings.strict_unknown,
            problems=(*read.problems, *problems),
        )
    if earlier is not None:
        from policyeng.evaluation.baseline import against_baseline

        evaluation = against_baseline(evaluation, earlier, settings.fail_on, strict_unknown=settings.strict_unknown)
    return Judged(evaluation, bundle, snapshot, parameters, exemptions)


def _exemptions(request: Request, settings: Settings) -> tuple[list[Exemption], list[Problem]]:
    """Exemptions of every file; an entry that cannot be read is a problem and hides no other."""
    if request.no_exemptions:
        return [], []
    read: list[Exemption] = []
    problems: list[Problem] = []
    for path in settings.exemptions:
        exemptions, faults = read_exemptions(path, max_days=settings.max_exemption_days)
        read += exemptions
        problems += faults
    seen: set[str] = set()
    for exemption in read:
        if exemption.id in seen:
            message = "the exemption stands in two files; the ids of exemptions are unique"
            problems.append(Problem(level="error", message=message, place=f"exemption {exemption.id}"))
        seen.add(exemption.id)
    return read, problems


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"`{text}` is no time for --as-of", remedy="write 2026-06-01T00:00:00Z") from None
    try:
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except OverflowError:
        raise UsageError(
            f"`{text}` is out of range for --as-of", remedy="write a time of the years 1 to 9999"
        ) from None


def _output(entry: str) -> tuple[str, Path]:
    name, equals, path = entry.partition("=")
    if not equals or path.strip() in ("", "-"):
        raise UsageError(
            f"`{entry}` is not FORMAT=PATH", remedy="write, for example, --output sarif=findings.sarif; --format prints"
        )
    return chosen(name, FORMATS, "report format"), Path(path)


def _grouping(given: str, names: Sequence[str]) -> str:
    group_by = chosen(given, GROUPS, "grouping")
    if not any(name in PROSE for name in names):
        message = f"--group-by does nothing to {', '.join(dict.fromkeys(names))}"
        raise UsageError(message, remedy=f"it is for {' and '.join(PROSE)}")
    return group_by


def _shown(name: str, group_by: str | None, profile: str | None) -> dict[str, str | None]:
    """What a report format is told beside the evaluation."""
    grouped = {"group_by": group_by or None} if name in PROSE else {}
    return {**grouped, "profile": profile} if name in PROFILED else grouped


def _print(judged: Judged, name: str, shown: Mapping[str, str | None], *, suggest: bool) -> None:
    evaluation = judged.evaluation
    if suggest or name != "text":
        printed = _suggestions(judged, name) if suggest else FORMATS[name](evaluation, **shown)
        say(printed.rstrip("\n"))
        _print_errors(evaluation)
        return
    from policyeng.report import text

    color, width = look()
    say(text.render(evaluation, color=color, width=width, **shown).rstrip("\n"))


def _print_errors(evaluation: Evaluation) -> None:
    for problem in evaluation.problems:
        if problem.level == "error":
            place = f"{problem.place}: " if problem.place else ""
            say(f"policyeng: {place}{problem.message}", error=True)


@contextmanager
def _progress(what: str) -> Iterator[None]:
    """Say on a terminal's stderr what takes long; silent elsewhere."""
    if not is_terminal(sys.stderr):
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield
