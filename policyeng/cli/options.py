"""The options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Context

from policyeng.engines import ENGINES
from policyeng.errors import PolicyengError
from policyeng.models import Severity
from policyeng.report import FORMATS, GROUPS, PROSE
from policyeng.sources import FORMATS as SOURCES

if TYPE_CHECKING:
    from policyeng.bundle import Bundle

_Found = list[tuple[str, str]]


def choose(names: Iterable[str]) -> Callable[[str], _Found]:
    """Return the completion of one of some names."""
    known = list(names)

    def complete(incomplete: str) -> _Found:
        return _matching(((name, "") for name in known), incomplete)

    return complete


def choose_output(names: Iterable[str]) -> Callable[[str], _Found]:
    """Return the completion of the format of `FORMAT=PATH`."""
    return choose([f"{name}=" for name in names])


def complete_selectors(ctx: Context, incomplete: str) -> _Found:
    """Complete the last of comma-separated ids, areas, controls and severities."""
    before, comma, last = incomplete.rpartition(",")
    return [(f"{before}{comma}{name}", text) for name, text in _safely(lambda: _selectors(_bundle(ctx)), last)]


def complete_ids(ctx: Context, incomplete: str) -> _Found:
    """Complete policy ids, with their titles."""
    return _safely(lambda: ((entry.id, entry.header.title) for entry in _bundle(ctx).policies), incomplete)


def complete_profiles(ctx: Context, incomplete: str) -> _Found:
    """Complete the names of profiles, with their titles."""
    from policyeng.bundle.policy_selection import profiles_of

    return _safely(lambda: ((profile.name, profile.title) for profile in profiles_of(_bundle(ctx))), incomplete)


def complete_estates(ctx: Context, incomplete: str) -> _Found:
    """Complete the names of configured estates."""
    from policyeng.cli.context import settings_of

    config = ctx.params.get("config")
    return _safely(lambda: ((one.name, "") for one in settings_of({}, config).estates), incomplete)


def _selectors(bundle: Bundle) -> Iterator[tuple[str, str]]:
    from policyeng.models import Severity

    yield from sorted({(entry.area, "area") for entry in bundle.policies})
    yield from ((str(severity), "severity") for severity in Severity)
    active = {entry.id for entry in bundle.policies}
    yield from sorted(
        {(one, "control") for known, named in bundle.controls.items() if known in active for one in named}
    )
    yield from ((entry.id, entry.header.title) for entry in bundle.policies)


def _bundle(ctx: Context) -> Bundle:
    from policyeng.bundle import load_bundle

    return load_bundle(*map(Path, ctx.params.get("policy") or ()))


def _safely(find: Callable[[], Iterable[tuple[str, str]]], incomplete: str) -> _Found:
    try:
        return _matching(find(), incomplete)
    except (PolicyengError, OSError):
        return []


def _matching(found: Iterable[tuple[str, str]], incomplete: str) -> _Found:
    return [(name, text) for name, text in found if name.lower().startswith(incomplete.lower())]


#: The sections of the help, in its order; options of one command only come first.
INPUT, POLICIES, EVALUATION, OUTPUT, EXIT, SIGNATURES, OPA = PANELS = (
    "Input",
    "Policies",
    "Evaluation",
    "Output",
    "Exit",
    "Signatures",
    "OPA",
)

Inputs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="INPUT",
        help="Files or directories to check; - reads standard input. Default: the current directory.",
        show_default=False,
        rich_help_panel=INPUT,
    ),
]


def _find_policies(values: list[Path] | None) -> list[Path] | None:
    """Return paths of policy directories or archives, or names of installed packages of policies, that exist."""
    from policyeng.bundle.files import is_installed

    for value in values or ():
        if not value.exists() and not is_installed(str(value)):
            raise typer.BadParameter(f"path `{value}` does not exist")
    return values


Policies = Annotated[
    list[Path] | None,
    typer.Option(
        "--policy",
        metavar="PATH",
        envvar="POLICYENG_POLICY",
        help="Policy directory, archive or installed package to use instead of the built-in policies; repeatable.",
        callback=_find_policies,
        rich_help_panel=POLICIES,
    ),
]
GivenData = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATH",
        envvar="POLICYENG_DATA",
        help="JSON or YAML file, or a directory of them, to merge into the policies' `data`; repeatable.",
        rich_help_panel=POLICIES,
    ),
]
Select = Annotated[
    list[str] | None,
    typer.Option(
        "--select",
        "-s",
        metavar="SELECTOR",
        help="Run only policies with these ids, areas, controls or severities; repeatable or comma-separated.",
        autocompletion=complete_selectors,
        rich_help_panel=POLICIES,
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SELECTOR",
        help="Skip policies with these ids, areas, controls or severities; repeatable or comma-separated.",
        autocompletion=complete_selectors,
        rich_help_panel=POLICIES,
    ),
]
Framework = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME|FILE",
        help="Run the policies that test controls of a framework, and report its controls; repeatable.",
        rich_help_panel=POLICIES,
    ),
]
Exemptions = Annotated[
    list[Path] | None, typer.Option(metavar="FILE", help="Exemption file; repeatable.", rich_help_panel=POLICIES)
]
NoExemptions = Annotated[
    bool,
    typer.Option(
        "--no-exemptions",
        envvar="POLICYENG_NO_EXEMPTIONS",
        help="Ignore all exemptions, including configured ones.",
        rich_help_panel=POLICIES,
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Configuration file. Default: the nearest policyeng.toml or pyproject.toml in this or a parent directory.",
        rich_help_panel=POLICIES,
    ),
]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="FORMAT",
        envvar="POLICYENG_FROM",
        help=f"Input format: {', '.join(SOURCES)}. Default: auto-detect. Without a value, lists the formats.",
        autocompletion=choose(SOURCES),
        rich_help_panel=INPUT,
    ),
]
Scope = Annotated[
    str | None,
    typer.Option(
        metavar="ID",
        envvar="POLICYENG_SCOPE",
        help="Resource group or subscription id that templates and plans are deployed to.",
        rich_help_panel=INPUT,
    ),
]
Workspace = Annotated[
    str | None,
    typer.Option(
        metavar="ID",
        envvar="POLICYENG_WORKSPACE",
        help="ARM id or name of the workspace that Azure CLI files belong to.",
        rich_help_panel=INPUT,
    ),
]
TemplateParameters = Annotated[
    list[str] | None,
    typer.Option(
        "--parameters",
        metavar="FILE|NAME=VALUE",
        envvar="POLICYENG_PARAMETERS",
        help="Parameter values for ARM templates, as in `az deployment`; repeatable.",
        rich_help_panel=INPUT,
    ),
]
ShowSkipped = Annotated[
    bool,
    typer.Option(
        "--show-skipped",
        envvar="POLICYENG_SHOW_SKIPPED",
        help="List skipped files and directories with the reason.",
        rich_help_panel=INPUT,
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(
        metavar="GLOB",
        help="Exclude files and directories that match a .gitignore pattern; repeatable.",
        rich_help_panel=INPUT,
    ),
]
NoGitignore = Annotated[
    bool,
    typer.Option(
        "--no-gitignore",
        envvar="POLICYENG_NO_GITIGNORE",
        help="Also read files that .gitignore excludes.",
        rich_help_panel=INPUT,
    ),
]
StrictUnknown = Annotated[
    bool, typer.Option("--strict-unknown", help="Treat unknown findings as failures.", rich_help_panel=EXIT)
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        envvar="POLICYENG_FORMAT",
        help=f"Output format: {', '.join(FORMATS)}. Default: github in GitHub Actions, azure-devops in Azure "
        "Pipelines, else text.",
        autocompletion=choose(FORMATS),
        rich_help_panel=OUTPUT,
    ),
]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose",
        "-v",
        help="Print every reason with its path, values, source and the complete fix (text).",
        rich_help_panel=OUTPUT,
    ),
]
SummaryOnly = Annotated[bool, typer.Option("--summary", help="Print only the summary (text).", rich_help_panel=OUTPUT)]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Print only failures and errors, one line each (text).", rich_help_panel=OUTPUT),
]
All = Annotated[
    bool,
    typer.Option(
        "--all", help="Print every resource of a policy instead of the first 20 (text).", rich_help_panel=OUTPUT
    ),
]
Color = Annotated[
    str | None,
    typer.Option(
        metavar="WHEN",
        help="Color the text: always, never or auto (on a terminal). Default: auto; see NO_COLOR and FORCE_COLOR.",
        rich_help_panel=OUTPUT,
    ),
]
ExitZero = Annotated[bool, typer.Option("--exit-zero", help="Exit 0 even if there are failures.", rich_help_panel=EXIT)]
PlainFormat = Annotated[
    str,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        help="Output format: text, json.",
        autocompletion=choose(("text", "json")),
        rich_help_panel=OUTPUT,
    ),
]
VerifyFormat = Annotated[
    str,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        help="Output format: text, json, junit.",
        autocompletion=choose(("text", "json", "junit")),
        rich_help_panel=OUTPUT,
    ),
]
PageFormat = Annotated[
    str,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        help="Output format: text, json, markdown.",
        autocompletion=choose(("text", "json", "markdown")),
        rich_help_panel=OUTPUT,
    ),
]
Output = Annotated[
    list[str] | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FORMAT=PATH",
        help="Also write the report to a file; repeatable.",
        autocompletion=choose_output(FORMATS),
        rich_help_panel=OUTPUT,
    ),
]
Profile = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Named set of policy parameters (see `policies list --profiles`).",
        autocompletion=complete_profiles,
        rich_help_panel=POLICIES,
    ),
]
GroupBy = Annotated[
    str | None,
    typer.Option(
        metavar="WHAT",
        envvar="POLICYENG_GROUP_BY",
        help=f"Group findings by {' or '.join(GROUPS)} (formats {' and '.join(PROSE)}).",
        autocompletion=choose(GROUPS),
        rich_help_panel=OUTPUT,
    ),
]

OwnerTag = Annotated[
    str,
    typer.Option(
        metavar="TAG",
        envvar="POLICYENG_OWNER_TAG",
        help="Tag that contains the owner of a resource.",
        rich_help_panel=OUTPUT,
    ),
]
FailOn = Annotated[
    str | None,
    typer.Option(
        metavar="SEVERITY",
        help=f"Exit 1 if there are failures of this severity or higher: {', '.join(Severity)}.",
        autocompletion=choose(Severity),
        rich_help_panel=EXIT,
    ),
]
AsOf = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        envvar="POLICYENG_AS_OF",
        help="Evaluate as of this time (ISO 8601), or the end of this day, in UTC. Default: now.",
        rich_help_panel=EVALUATION,
    ),
]
Engine = Annotated[
    str,
    typer.Option(
        metavar="ENGINE",
        envvar="POLICYENG_ENGINE",
        help=f"Rego engine: {', '.join(ENGINES)}.",
        autocompletion=choose(ENGINES),
        rich_help_panel=EVALUATION,
    ),
]
Jobs = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=0,
        envvar="POLICYENG_JOBS",
        help="Number of evaluation processes; 0 chooses a number, up to one per processor.",
        rich_help_panel=EVALUATION,
    ),
]
Baseline = Annotated[
    Path | None,
    typer.Option(
        metavar="REPORT",
        envvar="POLICYENG_BASELINE",
        help="Earlier JSON report; only failures that are not in it fail the run.",
        exists=True,
        rich_help_panel=EXIT,
    ),
]
Minimise = Annotated[
    bool,
    typer.Option(
        "--minimise",
        help="Instead of the report, print the smallest part of the snapshot on which a policy fails.",
        rich_help_panel=OUTPUT,
    ),
]
Suggest = Annotated[
    bool,
    typer.Option(
        "--suggest",
        help="Instead of the report, print the smallest verified edit that fixes each failure.",
        rich_help_panel=OUTPUT,
    ),
]
NoCache = Annotated[
    bool,
    typer.Option(
        "--no-cache",
        envvar="POLICYENG_NO_CACHE",
        help="Do not read or write the cache of compiled policies.",
        rich_help_panel=EVALUATION,
    ),
]
VerificationKey = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Public key to verify bundle archives and policy directories with (PEM).",
        exists=True,
        rich_help_panel=SIGNATURES,
    ),
]
VerificationAlgorithm = Annotated[
    str | None,
    typer.Option(
        metavar="ALGORITHM",
        help="Signature algorithm. Default: ES256 or RS256, depending on the key type.",
        rich_help_panel=SIGNATURES,
    ),
]
VerificationKeyId = Annotated[
    str | None, typer.Option(metavar="ID", help="Key id that signatures must have.", rich_help_panel=SIGNATURES)
]
VerificationScope = Annotated[
    str | None, typer.Option(metavar="SCOPE", help="Scope that signatures must have.", rich_help_panel=SIGNATURES)
]
RequireSignature = Annotated[
    bool,
    typer.Option(
        "--require-signature",
        help="Fail if no verification key is configured or a directory is unsigned.",
        rich_help_panel=SIGNATURES,
    ),
]
AllowUnsignedDirectory = Annotated[
    bool,
    typer.Option(
        "--allow-unsigned-directory",
        help="Accept unsigned policy directories even if a verification key is configured.",
        rich_help_panel=SIGNATURES,
    ),
]
OpaUrl = Annotated[
    str,
    typer.Option(
        "--opa-url",
        metavar="URL",
        envvar="POLICYENG_OPA_URL",
        help="URL of an OPA server. Default: start a private one.",
        rich_help_panel=OPA,
    ),
]
OpaTokenFile = Annotated[
    Path | None,
    typer.Option(
        "--opa-token-file",
        metavar="FILE",
        envvar="POLICYENG_OPA_TOKEN_FILE",
        help="File with the bearer token for the OPA server. Default: the variable POLICYENG_OPA_TOKEN.",
        exists=True,
        rich_help_panel=OPA,
    ),
]
OpaCaFile = Annotated[
    Path | None,
    typer.Option(
        "--opa-ca-file",
        metavar="FILE",
        envvar="POLICYENG_OPA_CA_FILE",
        help="CA certificates to trust for the OPA server instead of the public ones (PEM).",
        exists=True,
        rich_help_panel=OPA,
    ),
]
OpaClientCert = Annotated[
    Path | None,
    typer.Option(
        "--opa-client-cert",
        metavar="FILE",
        envvar="POLICYENG_OPA_CLIENT_CERT",
        help="Client certificate and key for the OPA server (PEM).",
        exists=True,
        rich_help_panel=OPA,
    ),
]
OpaTimeout = Annotated[
    float,
    typer.Option(
        "--opa-timeout",
        metavar="SECONDS",
        envvar="POLICYENG_OPA_TIMEOUT",
        help="Timeout for a response of the OPA server; the run then exits with 2.",
        rich_help_panel=OPA,
    ),
]
OpaBinary = Annotated[
    Path | None,
    typer.Option(
        "--opa-binary",
        metavar="FILE",
        envvar="POLICYENG_OPA_BINARY",
        help="The `opa` program for a private server. Default: `opa` on the PATH.",
        exists=True,
        rich_help_panel=OPA,
    ),
]
OpaBundle = Annotated[
    str,
    typer.Option(
        "--opa-bundle",
        metavar="NAME",
        envvar="POLICYENG_OPA_BUNDLE",
        help="Name of the bundle that the OPA server itself loads. Default: auto-detect.",
        rich_help_panel=OPA,
    ),
]
OpaPush = Annotated[
    bool | None,
    typer.Option(
        "--opa-push/--no-opa-push",
        envvar="POLICYENG_OPA_PUSH",
        help="Whether to push the bundle to the OPA server. Default: push unless the server loads it itself.",
        rich_help_panel=OPA,
    ),
]
