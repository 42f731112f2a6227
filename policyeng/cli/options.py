"""The options of the commands, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from policyeng.engines import ENGINES
from policyeng.models import Severity
from policyeng.report import FORMATS, GROUPS, INFORMED, PROSE
from policyeng.sources import FORMATS as SOURCES

Inputs = Annotated[
    list[str], typer.Argument(metavar="INPUT...", help="Files or directories to judge; - is standard input.")
]
Policies = Annotated[
    list[Path] | None,
    typer.Option(
        "--policy",
        metavar="PATH",
        envvar="POLICYENG_POLICY",
        help="A directory or an archive of policies instead of the built-in ones; repeatable.",
    ),
]
GivenData = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATH",
        envvar="POLICYENG_DATA",
        help="A JSON or YAML file, or a directory of them, joined into `data` for the policies; repeatable.",
    ),
]
Select = Annotated[
    list[str] | None,
    typer.Option(metavar="SELECTOR", help="Only these ids, areas, controls or severities; repeatable, or with commas."),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(metavar="SELECTOR", help="Not these ids, areas, controls or severities; repeatable, or with commas."),
]
Exemptions = Annotated[list[Path] | None, typer.Option(metavar="FILE", help="A file of exemptions; repeatable.")]
NoExemptions = Annotated[
    bool,
    typer.Option(
        "--no-exemptions", envvar="POLICYENG_NO_EXEMPTIONS", help="Apply no exemptions, whatever is configured."
    ),
]
Config = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The configuration; else policyeng.toml or pyproject.toml upwards.")
]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="FORMAT",
        envvar="POLICYENG_FROM",
        help=f"Insist on an input format: {', '.join(SOURCES)}. Alone, it lists them.",
    ),
]
Scope = Annotated[
    str | None,
    typer.Option(
        metavar="ID",
        envvar="POLICYENG_SCOPE",
        help="The resource group, or subscription, that templates and plans are deployed to.",
    ),
]
Workspace = Annotated[
    str | None,
    typer.Option(
        metavar="ID",
        envvar="POLICYENG_WORKSPACE",
        help="The workspace, by ARM id or name, that Azure CLI files belong to.",
    ),
]
TemplateParameters = Annotated[
    list[str] | None,
    typer.Option(
        "--parameters",
        metavar="FILE|NAME=VALUE",
        envvar="POLICYENG_PARAMETERS",
        help="Values for the parameters of ARM templates, as for `az deployment`; repeatable.",
    ),
]
ShowSkipped = Annotated[
    bool,
    typer.Option(
        "--show-skipped", envvar="POLICYENG_SHOW_SKIPPED", help="List the files and folders that are left out, and why."
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(metavar="GLOB", help="Leave this out of directories, written as in a .gitignore; repeatable."),
]
NoGitignore = Annotated[
    bool,
    typer.Option(
        "--no-gitignore", envvar="POLICYENG_NO_GITIGNORE", help="Read what .gitignore files list in directories, too."
    ),
]
StrictUnknown = Annotated[
    bool, typer.Option("--strict-unknown", help="Let what cannot be decided fail the run as a failure does.")
]
Format = Annotated[
    str,
    typer.Option("--format", metavar="FORMAT", envvar="POLICYENG_FORMAT", help=f"What to print: {', '.join(FORMATS)}."),
]
PlainFormat = Annotated[str, typer.Option("--format", metavar="FORMAT", help="What to print: text, json.")]
VerifyFormat = Annotated[str, typer.Option("--format", metavar="FORMAT", help="What to print: text, json, junit.")]
PageFormat = Annotated[str, typer.Option("--format", metavar="FORMAT", help="What to print: text, json, markdown.")]
Output = Annotated[
    list[str] | None, typer.Option(metavar="FORMAT=PATH", help="Also write a report to a file; repeatable.")
]
Profile = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="A named set of parameters of the policies (`policies list --profiles`)."),
]
GroupBy = Annotated[
    str | None,
    typer.Option(
        metavar="WHAT",
        envvar="POLICYENG_GROUP_BY",
        help=f"One heading for each {' or '.join(GROUPS)}, in the formats {' and '.join(PROSE)}.",
    ),
]

OwnerTag = Annotated[
    str,
    typer.Option(
        metavar="TAG",
        envvar="POLICYENG_OWNER_TAG",
        help=f"The tag that says who owns a resource, in the formats {', '.join(INFORMED)}.",
    ),
]
FailOn = Annotated[
    str | None, typer.Option(metavar="SEVERITY", help=f"Exit 1 from this severity on: {', '.join(Severity)}.")
]
AsOf = Annotated[
    str | None,
    typer.Option(metavar="TIME", envvar="POLICYENG_AS_OF", help="Judge as of this time (ISO 8601); now unless given."),
]
Engine = Annotated[
    str, typer.Option(metavar="ENGINE", envvar="POLICYENG_ENGINE", help=f"What judges Rego: {', '.join(ENGINES)}.")
]
Jobs = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=0,
        envvar="POLICYENG_JOBS",
        help="Processes that judge; 0 is as many as pay, at most one for each processor.",
    ),
]
Baseline = Annotated[
    Path | None,
    typer.Option(
        metavar="REPORT",
        envvar="POLICYENG_BASELINE",
        help="An earlier JSON report: only failures that it does not have fail the run.",
    ),
]
Minimise = Annotated[
    bool,
    typer.Option("--minimise", help="Print the smallest part of the snapshot on which a policy still fails, alone."),
]
Suggest = Annotated[
    bool,
    typer.Option(
        "--suggest", help="Print for each failure, instead of the report, the smallest edit that mends it, verified."
    ),
]
NoCache = Annotated[
    bool,
    typer.Option(
        "--no-cache", envvar="POLICYENG_NO_CACHE", help="Neither use nor keep compiled policies and parsed headers."
    ),
]
