"""`policyeng init`: write a configuration file with comments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from policyeng.cli.console import print_line
from policyeng.cli.files import write
from policyeng.cli.schema import SCHEMA_DIRECTORY, write_schemas
from policyeng.configuration.toml_file import FILE_NAME
from policyeng.errors import UsageError

_CONTENT = """\
#:schema ./.policyeng/configuration.schema.json
# Settings of policyeng. Options of the command line and POLICYENG_... variables override them.

# Failures of this severity or higher fail a run: info, low, medium, high or critical.
fail_on = "low"

# Fail a run for findings that could not be decided, too.
# strict_unknown = true

# Files and directories to exclude, as in .gitignore.
# exclude = ["/tests/", "*.generated.json"]

# Policies to run or to skip, by id, area, control or severity.
# select = ["network", "critical"]
# ignore = ["AML-COST-103"]

# A named set of parameters; `policyeng policies list --profiles` lists them.
# profile = "documents"

# Files with approved, expiring exemptions.
# exemptions = ["exemptions.yaml"]

# Azure Policy definitions, initiatives and assignments to evaluate next to the other policies.
# azure_policy = ["landing-zone/policies"]

# Parameters of policies; `policyeng policies show ID` lists them.
# [parameters."AML-NET-001"]
# name = "value"

# How changes that violate a policy are enforced by `policyeng admit` and `serve`: deny, warn or off.
# [[modes]]
# policy = "cost"
# mode = "warn"

# What `policyeng audit run` audits.
# [[estates]]
# name = "production"
# inputs = ["snapshots/production"]
"""


def init(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Directory of the file.", show_default=False)
    ] = Path(),
) -> int:
    """Write a commented policyeng.toml to the current directory.

    Also writes JSON Schemas to `.policyeng`, with which editors complete and check policyeng.toml and exemptions.yaml.

    Examples:
      policyeng init
    """
    path = directory / FILE_NAME
    if path.exists():
        raise UsageError("the file already exists", place=(str(path),), remedy="edit it, or remove it first")
    write(path, _CONTENT, "configuration", private=False)
    print_line(f"wrote {path}")
    for written in write_schemas(directory / SCHEMA_DIRECTORY, ("configuration", "exemptions")):
        print_line(f"wrote {written}")
    return 0
