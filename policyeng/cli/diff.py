"""`policyeng diff`: compare the findings of two snapshots, with the cause of each change."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from policyeng import cache
from policyeng.audit.collection.parts import Collected, PartSource, read, sources_of
from policyeng.audit.diff import report
from policyeng.audit.diff.comparison import PartPair, compare_parts, compare_states
from policyeng.audit.diff.inputs import Comparison, State
from policyeng.cli import options
from policyeng.cli.console import print_form, print_line, show_progress
from policyeng.cli.context import moment_of, plain_format
from policyeng.cli.evaluation_options import (
    CriteriaOptions,
    InputOptions,
    RegoEngineOptions,
    reading_lines,
    refuse_urls,
)
from policyeng.cli.files import output_of, write
from policyeng.cli.option_groups import with_options
from policyeng.configuration.settings import EstateSettings
from policyeng.context import EvaluationSetup
from policyeng.engines import OpaOptions
from policyeng.errors import UsageError
from policyeng.facts.coverage import ledger_of
from policyeng.models import Problem, Snapshot
from policyeng.progress import counted
from policyeng.sources import DocumentContext, FileWalk, read_inputs


@dataclass(frozen=True, slots=True)
class ComparisonOptions:
    """How both sides are read and evaluated."""

    from_format: str | None
    context: DocumentContext
    walk: FileWalk
    show_skipped: bool
    engine: str
    opa: OpaOptions
    with_causes: bool


@dataclass(frozen=True, slots=True)
class DiffSide:
    """One side of a comparison and what it is evaluated with."""

    named: str
    setup: EvaluationSetup
    as_of: datetime

    def state(self, snapshot: Snapshot, reading: ComparisonOptions, problems: Sequence[Problem] = ()) -> State:
        """Combine a snapshot with what it is evaluated with."""
        options = self.setup.options(self.as_of, reading.engine, reading.opa)
        return State(self.setup.bundle, snapshot, replace(options, problems=problems))


def by_parts(before: DiffSide, after: DiffSide, reading: ComparisonOptions) -> Comparison:
    """Compare the files of two directories by relative path.

    Raises:
        UsageError: a side is not a directory, or an option does not apply to separate files.
    """
    if reading.from_format or reading.show_skipped or reading.context != DocumentContext():
        remedy = "remove --from, --scope, --workspace, --parameters and --show-skipped"
        raise UsageError("--parts reads each file separately", remedy=remedy)
    for side in (before, after):
        if not Path(side.named).is_dir():
            raise UsageError("--parts compares directories", place=(side.named,), remedy="pass two directories")
    with show_progress("comparing", "files"):
        return compare_parts(
            _pairs(before, after, reading),
            (before.state(Snapshot(), reading), after.state(Snapshot(), reading)),
            problems=tuple(dict.fromkeys((*before.setup.problems, *after.setup.problems))),
            with_causes=reading.with_causes,
        )


def _pairs(before: DiffSide, after: DiffSide, reading: ComparisonOptions) -> Iterator[PartPair]:
    """Yield the parts of both sides by name, each read on demand."""
    named = [{one.name: one for one in sources_of(_estate(side), reading.walk)} for side in (before, after)]
    names = sorted({**named[0], **named[1]})
    for name in counted(names, len(names)):
        one, other = (sources.get(name) for sources in named)
        old = read(one, before.setup.bundle.wanted) if one else Collected(name, None)
        if before.setup is after.setup and before.as_of == after.as_of and _has_same_bytes(one, other):
            state = _input_state(before, old, reading)
            yield PartPair(name, state, state, () if state else old.remarks)
            continue
        new = read(other, after.setup.bundle.wanted) if other else Collected(name, None)
        problems = (*(old.remarks if old.snapshot is None else ()), *(new.remarks if new.snapshot is None else ()))
        was, now = _input_state(before, old, reading), _input_state(after, new, reading)
        yield PartPair(name, was, now, problems)


def _input_state(side: DiffSide, part: Collected, reading: ComparisonOptions) -> State | None:
    return None if part.snapshot is None else side.state(part.snapshot, reading, part.problems)


def _estate(side: DiffSide) -> EstateSettings:
    return EstateSettings(name="parts", inputs=(side.named,))


def _has_same_bytes(one: PartSource | Collected | None, other: PartSource | Collected | None) -> bool:
    """Check whether two files have the same bytes."""
    if not (isinstance(one, PartSource) and isinstance(other, PartSource)):
        return False
    try:
        return Path(one.address).read_bytes() == Path(other.address).read_bytes()
    except OSError:  # reading the file reports why
        return False


_FORMATS: Mapping[str, Callable[..., str]] = {
    "text": report.render_text,
    "json": report.render_json,
    "markdown": report.render_markdown,
}

Before = Annotated[str, typer.Argument(metavar="BEFORE", help="File or directory; - reads standard input.")]
After = Annotated[str, typer.Argument(metavar="AFTER", help="Later file or directory; - reads standard input.")]
Parts = Annotated[
    bool, typer.Option("--parts", help="Compare two directories file by file, each file as a separate snapshot.")
]
NoCauses = Annotated[bool, typer.Option("--no-causes", help="Skip the search for causes, which re-evaluates policies.")]


@dataclass(kw_only=True, repr=False, eq=False)
class DiffOptions(InputOptions, CriteriaOptions, RegoEngineOptions):
    """The options of `policyeng diff`; those for BEFORE that are not given are the same as for AFTER."""

    before: Before
    after: After
    format_: options.PageFormat = "text"
    output: options.Output = None
    as_of: options.AsOf = None
    parts: Parts = False
    no_causes: NoCauses = False
    no_cache: options.NoCache = False
    policy_before: Annotated[
        list[Path] | None,
        typer.Option(metavar="PATH", help="Policies to evaluate BEFORE with; repeatable."),
    ] = None
    exemptions_before: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Exemption file for BEFORE; repeatable.")
    ] = None
    config_before: Annotated[Path | None, typer.Option(metavar="FILE", help="Configuration file for BEFORE.")] = None
    as_of_before: Annotated[
        str | None, typer.Option(metavar="TIME", help="Evaluate BEFORE as of this time. Default: --as-of.")
    ] = None

    def earlier(self) -> DiffOptions:
        """Return the options for the earlier side; the same object if nothing but the clock differs."""
        given = {"policy": self.policy_before, "exemptions": self.exemptions_before, "config": self.config_before}
        changed = {name: value for name, value in given.items() if value}
        return dataclasses.replace(self, **changed) if changed else self  # type: ignore[arg-type]  # they have the types of the fields

    def load(self) -> EvaluationSetup:
        """Read the settings, policies, parameters and exemptions."""
        return self.setup(self.settings(exclude=self.exclude))


@with_options(DiffOptions)
def diff(args: DiffOptions) -> int:
    """Compare the findings of two snapshots. Exit codes: 0 no new failures, 1 new failures, 2 undecided.

    For each new, fixed or changed finding, the report has the cause: the smallest set of differences that undoes the
    change when they are reverted and the policy is evaluated again.

    Examples:
      policyeng diff monday.json tuesday.json
      policyeng diff main/ branch/ --format markdown
      policyeng diff snapshots/monday/ snapshots/tuesday/ --parts
      policyeng diff estate.json estate.json --as-of-before 2026-01-01 --as-of 2026-07-01
      policyeng diff estate.json estate.json --policy-before policies-1.0/ --policy policies-1.1/
    """
    format_, outputs = (
        plain_format(args.format_, "markdown"),
        [output_of(entry, _FORMATS) for entry in args.output or ()],
    )
    if args.before == args.after == "-":
        raise UsageError("`-` is given twice", remedy="pass a file for one of them")
    refuse_urls((args.before, args.after))
    from_format, context, now = args.from_format(), args.context(), moment_of(args.as_of)
    was = moment_of(args.as_of_before, "--as-of-before") if args.as_of_before else now
    others = [*args.policies, *args.given_data, args.config, *(path for _, path in outputs)]
    with cache.switched_off(args.no_cache):
        setup = args.load()
        walk = args.walk(setup.settings, others)
        reading = ComparisonOptions(
            from_format, context, walk, args.show_skipped, *args.rego_engine(), not args.no_causes
        )
        theirs = setup if (earlier := args.earlier()) is args else earlier.load()
        comparing = by_parts if args.parts else _compare_whole
        comparison = comparing(DiffSide(args.before, theirs, was), DiffSide(args.after, setup, now), reading)
    for name, path in outputs:
        write(path, _FORMATS[name](comparison), "comparison")
    print_form(_FORMATS[format_], comparison, format_)
    return comparison.exit_code


def _compare_whole(before: DiffSide, after: DiffSide, reading: ComparisonOptions) -> Comparison:
    """Compare the sides, each read as one snapshot."""
    old, new = _state(before, reading), _state(after, reading)
    with show_progress("comparing"):
        return compare_states(old, new, with_causes=reading.with_causes)


def _state(side: DiffSide, reading: ComparisonOptions) -> State:
    """Read one side."""
    with show_progress(f"reading {side.named}", "files"):
        stdin = sys.stdin.buffer.read() if side.named == "-" and sys.stdin is not None else None
        wanted = side.setup.bundle.wanted
        read = read_inputs(
            [side.named],
            from_format=reading.from_format,
            stdin=stdin,
            context=reading.context,
            walk=reading.walk,
            **wanted,
        )
    for line in reading_lines(read.read, ledger_of(read.snapshot), show_skipped=reading.show_skipped):
        print_line(line, error=True)
    return side.state(read.snapshot, reading, (*read.problems, *side.setup.problems))
