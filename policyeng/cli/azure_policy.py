"""`policyeng azure-policy`: show what of Azure Policy definitions is evaluated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from policyeng.cli import options
from policyeng.cli.commands import Command, Group
from policyeng.cli.console import print_line
from policyeng.cli.context import plain_format
from policyeng.cli.option_groups import with_options
from policyeng.models import JsonObject
from policyeng.parsing.json_text import shortened
from policyeng.report.escaping import visible
from policyeng.report.phrases import count

if TYPE_CHECKING:
    from policyeng.azure_policy.assignments import PolicyNote
    from policyeng.azure_policy.coverage import PolicyCoverage

azure_policy = typer.Typer(
    cls=Group,
    help="Show what of Azure Policy definitions is evaluated.",
    no_args_is_help=True,
    add_completion=False,
)


@azure_policy.callback()
def _group() -> None:
    """Show what of Azure Policy definitions is evaluated."""


@dataclass(kw_only=True, repr=False, eq=False)
class CoverageOptions:
    """The options of `policyeng azure-policy coverage`."""

    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH",
            exists=True,
            help="Files or directories with definitions, initiatives, assignments and exemptions.",
        ),
    ]
    aliases: options.Aliases = None
    format_: options.PlainFormat = "text"


@azure_policy.command(cls=Command)
@with_options(CoverageOptions)
def coverage(args: CoverageOptions) -> int:
    """Show what of definitions, initiatives and assignments is evaluated, and why the rest is not.

    Examples:
      policyeng azure-policy coverage initiative.json definitions
      policyeng azure-policy coverage . --format json
    """
    from policyeng.azure_policy.coverage import coverage_of
    from policyeng.bundle.azure_policies import open_azure_policies, resolve_origins

    format_ = plain_format(args.format_)
    paths = [*args.paths, *([args.aliases] if args.aliases is not None else [])]
    resolved = resolve_origins(list(open_azure_policies(paths)))
    rows = coverage_of(resolved.policies, resolved.aliases)
    if format_ == "json":
        notes = [{"level": "error" if note.is_error else "warning", "message": note.message} for note in resolved.notes]
        document = {"policies": list(map(_document, rows)), "notes": notes, "aliases": resolved.aliases.source}
        typer.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2))
        return 0
    for line in _lines(rows, resolved.notes):
        print_line(visible(line))
    return 0


def _document(row: PolicyCoverage) -> JsonObject:
    return {
        "id": row.id,
        "title": row.title,
        "mode": row.mode,
        "effect": row.effect,
        "types": row.types,
        "parametersWithoutValue": row.without_value,
        "status": row.status,
        "refusal": row.refusal,
        "refusalKind": row.kind,
        "file": row.file,
    }


def _lines(rows: Sequence[PolicyCoverage], notes: Sequence[PolicyNote]) -> Iterator[str]:
    """Yield a line for each policy, with details below it, and the numbers."""
    for row in sorted(rows, key=lambda row: (_ORDER.index(row.status), row.title)):
        yield f"{row.status:<9}  {row.effect or '(parameter)':<17}  {shortened(row.title)}  [{row.id}]"
        if row.refusal:
            yield f"             {row.refusal}"
        if row.without_value:
            yield f"             without a value: {', '.join(row.without_value)}"
    for note in notes:
        yield f"{'not read' if note.is_error else 'note'}: {note.message}"
    statuses = Counter(row.status for row in rows)
    numbers = ", ".join(f"{statuses[status]} {status}" for status in _ORDER)
    yield f"{count(len(rows), 'policy')}: {numbers}"
    for kind, number in Counter(row.kind for row in rows if row.refusal).most_common():
        yield f"  refused for {kind}: {number}"


_ORDER = ("evaluated", "disabled", "refused")
