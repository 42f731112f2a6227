"""`policyeng check` with its options for typer; a plain run loads neither this module nor typer."""

from __future__ import annotations

from policyeng.cli import check as checking
from policyeng.cli.option_groups import with_options

check = with_options(checking.CheckOptions)(checking.check)
