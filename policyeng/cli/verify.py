"""`policyeng verify`: prove that the engines say the same of a bundle."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from policyeng.cli import options
from policyeng.cli.loading import plain_format, selected_bundle, settings_of, split
from policyeng.cli.printing import is_terminal
from policyeng.cli.writing import write
from policyeng.engines import OpaOptions
from policyeng.errors import UsageError

if TYPE_CHECKING:
    from policyeng.verify.counterexamples import Counterexample
    from policyeng.verify.engines_report import Run

#: Differences of more kinds than this have one cause; shrinking each of them would only take time.
_MOST_SHRUNK = 10


def verify(
    engines: Annotated[
        bool, typer.Option("--engines", help="Compare what every engine says of the same random pairs.")
    ] = False,
    policy: options.Policies = None,
    data: options.GivenData = None,
    select: options.Select = None,
    ignore: options.Ignore = None,
    pairs: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many pairs of policy and resource to compare.")
    ] = 100_000,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Draw the examples of an earlier run again; any unless given.")
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="ENGINE", help="Leave an engine out; repeatable, or with commas."),
    ] = None,
    counterexample: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the smallest snapshot on which engines differ.")
    ] = None,
    format_: options.PlainFormat = "text",
    config: options.Config = None,
    *,
    trust: Mapping[str, object],
    opa: OpaOptions,
) -> int:
    """Prove that the engines say the same: exit 0 when they do, 1 when they differ, 2 when it could not be decided.

    Examples:
      policyeng verify --engines
      policyeng verify --engines --policy my-policies --pairs 10000 --seed 7 --counterexample smallest.json
    """
    format_ = plain_format(format_)
    _require(engines)
    from policyeng.verify.contestants import contestants
    from policyeng.verify.counterexamples import counterexample as smallest
    from policyeng.verify.differential import compare
    from policyeng.verify.engines_report import Run

    bundle = selected_bundle(policy, settings_of(trust, config), data, select, ignore)
    chosen = random.SystemRandom().randrange(2**32) if seed is None else seed
    started = time.monotonic()
    compared = contestants(bundle, without=_left_out(without, opa), opa=opa)
    with _progress(pairs, chosen) as advance:
        tally = compare(bundle, compared, pairs=pairs, seed=chosen, progress=advance)
        found = [smallest(difference, bundle, compared) for difference in tally.differences[:_MOST_SHRUNK]]
    run = Run(bundle, compared, tally, found, time.monotonic() - started)
    _print(run, list(_written(found, counterexample)) if counterexample else [], format_)
    return int(bool(tally.differing))


def _require(engines: bool) -> None:
    if not engines:
        raise UsageError("nothing to verify is named", remedy="name it: --engines compares the engines")


def _left_out(without: Sequence[str] | None, opa: OpaOptions) -> list[str]:
    left_out = [name.lower() for name in split(without)]
    if "opa" in left_out and replace(opa, token="") != OpaOptions():
        raise UsageError("options of the OPA server are given, and `--without opa`", remedy="leave one of them out")
    return left_out


def _written(found: Sequence[Counterexample], path: Path) -> Iterator[Path]:
    """Write every counterexample: the first where the user said, the others beside it with a number."""
    from policyeng.verify.engines_report import snapshot_text

    for number, entry in enumerate(found, 1):
        target = path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")
        write(target, snapshot_text(entry), "counterexample")
        yield target


def _print(run: Run, written: Sequence[Path], format_: str) -> None:
    from policyeng.verify import engines_report

    typer.echo(engines_report.as_json(run) if format_ == "json" else engines_report.as_text(run, written))


@contextmanager
def _progress(pairs: int, seed: int) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal's stderr; silent elsewhere."""
    if not is_terminal(sys.stderr):
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"comparing, seed {seed}", total=pairs)
        yield lambda done: bar.update(task, completed=done)
