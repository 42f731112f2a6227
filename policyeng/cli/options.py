"""The options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from policyeng.engines import ENGINES
from policyeng.models import Severity
from policyeng.report import FORMATS, GROUPS, INFORMED, PROSE
from policyeng.sources import FORMATS as SOURCES

Inputs = Annotated[
    list[str], typer.Argument(metavar="INPUT...", help="Files or directories to check; - reads standard input.")
]
Policies = Annotated[
    list[Path] | None,
    typer.Option(
        "--policy",
        metavar="PATH",
        envvar="POLICYENG_POLICY",
        help="Policy directory or bundle archive to use instead of the built-in policies; repeatable.",
    ),
]
GivenData = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATH",
        envvar="POLICYENG_DATA",
        help="JSON or YAML file, or a directory of them, to merge into the policies' `data`; repeatable.",
    ),
]
Select = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SELECTOR",
        help="Run only policies with these ids, areas, controls or severities; repeatable or comma-separated.",
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SELECTOR",
        help="Skip policies with these ids, areas, controls or severities; repeatable or comma-separated.",
    ),
]
Exemptions = Annotated[list[Path] | None, typer.Option(metavar="FILE", help="Exemption file; repeatable.")]
NoExemptions = Annotated[
    bool,
    typer.Option(
        "--no-exemptions", envvar="POLICYENG_NO_EXEMPTIONS", help="Ignore all exemptions, including configured ones."
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Configuration file. Default: the nearest policyeng.toml or pyproject.toml in this or a parent directory.",
    ),
]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="FORMAT",
        envvar="POLICYENG_FROM",
        help=f"Input format: {', '.join(SOURCES)}. Default: auto-detect. Without a value, lists the formats.",
    ),
]
Scope = Annotated[
    str | None,
    typer.Option(
        metavar="ID",
        envvar="POLICYENG_SCOPE",
        help="Resource group or subscription id that templates and plans are deployed to.",
    ),
]
Workspace = Annotated[
    str | None,
    typer.Option(
        metavar="ID",
        envvar="POLICYENG_WORKSPACE",
        help="ARM id or name of the workspace that Azure CLI files belong to.",
    ),
]
TemplateParameters = Annotated[
    list[str] | None,
    typer.Option(
        "--parameters",
        metavar="FILE|NAME=VALUE",
        envvar="POLICYENG_PARAMETERS",
        help="Parameter values for ARM templates, as in `az deployment`; repeatable.",
    ),
]
ShowSkipped = Annotated[
    bool,
    typer.Option(
        "--show-skipped", envvar="POLICYENG_SHOW_SKIPPED", help="List skipped files and directories with the reason."
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(metavar="GLOB", help="Exclude files and directories that match a .gitignore pattern; repeatable."),
]
NoGitignore = Annotated[
    bool,
    typer.Option("--no-gitignore", envvar="POLICYENG_NO_GITIGNORE", help="Also read files that .gitignore excludes."),
]
StrictUnknown = Annotated[bool, typer.Option("--strict-unknown", help="Treat unknown findings as failures.")]
Format = Annotated[
    str,
    typer.Option("--format", metavar="FORMAT", envvar="POLICYENG_FORMAT", help=f"Output format: {', '.join(FORMATS)}."),
]
PlainFormat = Annotated[str, typer.Option("--format", metavar="FORMAT", help="Output format: text, json.")]
VerifyFormat = Annotated[str, typer.Option("--format", metavar="FORMAT", help="Output format: text, json, junit.")]
PageFormat = Annotated[str, typer.Option("--format", metavar="FORMAT", help="Output format: text, json, markdown.")]
Output = Annotated[
    list[str] | None, typer.Option(metavar="FORMAT=PATH", help="Also write the report to a file; repeatable.")
]
Profile = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Named set of policy parameters (see `policies list --profiles`)."),
]
GroupBy = Annotated[
    str | None,
    typer.Option(
        metavar="WHAT",
        envvar="POLICYENG_GROUP_BY",
        help=f"Group findings by {' or '.join(GROUPS)} (formats {' and '.join(PROSE)}).",
    ),
]

OwnerTag = Annotated[
    str,
    typer.Option(
        metavar="TAG",
        envvar="POLICYENG_OWNER_TAG",
        help=f"Tag that contains the owner of a resource (formats {', '.join(INFORMED)}).",
    ),
]
FailOn = Annotated[
    str | None,
    typer.Option(
        metavar="SEVERITY", help=f"Exit 1 if there are failures of this severity or higher: {', '.join(Severity)}."
    ),
]
AsOf = Annotated[
    str | None,
    typer.Option(metavar="TIME", envvar="POLICYENG_AS_OF", help="Evaluate as of this time (ISO 8601). Default: now."),
]
Engine = Annotated[
    str, typer.Option(metavar="ENGINE", envvar="POLICYENG_ENGINE", help=f"Rego engine: {', '.join(ENGINES)}.")
]
Jobs = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=0,
        envvar="POLICYENG_JOBS",
        help="Number of evaluation processes; 0 chooses a number, up to one per processor.",
    ),
]
Baseline = Annotated[
    Path | None,
    typer.Option(
        metavar="REPORT",
        envvar="POLICYENG_BASELINE",
        help="Earlier JSON report; only failures that are not in it fail the run.",
    ),
]
Minimise = Annotated[
    bool,
    typer.Option(
        "--minimise", help="Instead of the report, print the smallest part of the snapshot on which a policy fails."
    ),
]
Suggest = Annotated[
    bool,
    typer.Option("--suggest", help="Instead of the report, print the smallest verified edit that fixes each failure."),
]
NoCache = Annotated[
    bool,
    typer.Option(
        "--no-cache", envvar="POLICYENG_NO_CACHE", help="Do not read or write the cache of compiled policies."
    ),
]
