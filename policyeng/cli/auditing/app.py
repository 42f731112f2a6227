"""`policyeng audit`: its commands, each in its own module."""

from __future__ import annotations

import typer

audit = typer.Typer(help="Audit estates: collect, judge, keep, compare and tell.", no_args_is_help=True)
