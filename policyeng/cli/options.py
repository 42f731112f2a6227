"""The options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Context

from policyeng.configuration import ENVIRONMENT_PREFIX
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


def option(panel: str, help_: str, *flags: str, env: str = "", **details: Any) -> Any:
    """Return an option in a section of the help.

    Args:
        panel: the section.
        help_: what the option does.
        flags: the names, if they are not those that typer takes from the parameter.
        env: the environment variable that sets it, without the prefix of policyeng.
        details: further arguments of `typer.Option`.
    """
    envvar = f"{ENVIRONMENT_PREFIX}{env}" if env else None
    return typer.Option(*flags, help=help_, rich_help_panel=panel, envvar=envvar, **details)


def _choose_format(*names: str) -> Any:
    return option(
        OUTPUT, f"Output format: {', '.join(names)}.", "--format", "-f", metavar="FORMAT", autocompletion=choose(names)
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
    option(
        POLICIES,
        "Policy directory, archive or installed package to use instead of the built-in policies; repeatable.",
        "--policy",
        metavar="PATH",
        env="POLICY",
        callback=_find_policies,
    ),
]
GivenData = Annotated[
    list[str] | None,
    option(
        POLICIES,
        "JSON or YAML file, or a directory of them, to merge into the policies' `data`; repeatable.",
        metavar="PATH",
        env="DATA",
    ),
]
AzurePolicy = Annotated[
    list[Path] | None,
    option(
        POLICIES,
        "File or directory with Azure Policy definitions, initiatives or assignments, to use instead of the built-in "
        "policies; repeatable.",
        metavar="PATH",
        env="AZURE_POLICY",
        exists=True,
    ),
]
Aliases = Annotated[
    Path | None,
    option(
        POLICIES,
        "Output of `az provider list --expand resourceTypes/aliases`, for aliases that policyeng does not have.",
        metavar="FILE",
        env="ALIASES",
        exists=True,
        dir_okay=False,
    ),
]
Select = Annotated[
    list[str] | None,
    option(
        POLICIES,
        "Run only policies with these ids, areas, controls or severities; repeatable or comma-separated.",
        "--select",
        "-s",
        metavar="SELECTOR",
        autocompletion=complete_selectors,
    ),
]
Ignore = Annotated[
    list[str] | None,
    option(
        POLICIES,
        "Skip policies with these ids, areas, controls or severities; repeatable or comma-separated.",
        metavar="SELECTOR",
        autocompletion=complete_selectors,
    ),
]
Framework = Annotated[
    list[str] | None,
    option(
        POLICIES,
        "Run the policies that test controls of a framework, and report its controls; repeatable.",
        metavar="NAME|FILE",
    ),
]
Exemptions = Annotated[list[Path] | None, option(POLICIES, "Exemption file; repeatable.", metavar="FILE")]
NoExemptions = Annotated[
    bool, option(POLICIES, "Ignore all exemptions, including configured ones.", "--no-exemptions", env="NO_EXEMPTIONS")
]
Config = Annotated[
    Path | None,
    option(
        POLICIES,
        "Configuration file. Default: the nearest policyeng.toml or pyproject.toml in this or a parent directory.",
        metavar="FILE",
    ),
]
From = Annotated[
    str | None,
    option(
        INPUT,
        f"Input format: {', '.join(SOURCES)}. Default: auto-detect. Without a value, lists the formats.",
        "--from",
        metavar="FORMAT",
        env="FROM",
        autocompletion=choose(SOURCES),
    ),
]
Scope = Annotated[
    str | None,
    option(
        INPUT, "Resource group or subscription id that templates and plans are deployed to.", metavar="ID", env="SCOPE"
    ),
]
Workspace = Annotated[
    str | None,
    option(INPUT, "ARM id or name of the workspace that Azure CLI files belong to.", metavar="ID", env="WORKSPACE"),
]
TemplateParameters = Annotated[
    list[str] | None,
    option(
        INPUT,
        "Parameter values for ARM templates, as in `az deployment`; repeatable.",
        "--parameters",
        metavar="FILE|NAME=VALUE",
        env="PARAMETERS",
    ),
]
ShowSkipped = Annotated[
    bool, option(INPUT, "List skipped files and directories with the reason.", "--show-skipped", env="SHOW_SKIPPED")
]
Exclude = Annotated[
    list[str] | None,
    option(INPUT, "Exclude files and directories that match a .gitignore pattern; repeatable.", metavar="GLOB"),
]
NoGitignore = Annotated[
    bool, option(INPUT, "Also read files that .gitignore excludes.", "--no-gitignore", env="NO_GITIGNORE")
]
AllFiles = Annotated[
    bool,
    option(
        INPUT,
        "Also read hidden directories, node_modules, ignored files, and documents with any suffix.",
        "--all-files",
        env="ALL_FILES",
    ),
]
StrictUnknown = Annotated[bool, option(EXIT, "Treat unknown findings as failures.", "--strict-unknown")]
Format = Annotated[
    str | None,
    option(
        OUTPUT,
        f"Output format: {', '.join(FORMATS)}. Default: github in GitHub Actions, azure-devops in Azure "
        "Pipelines, else text.",
        "--format",
        "-f",
        metavar="FORMAT",
        env="FORMAT",
        autocompletion=choose(FORMATS),
    ),
]
Verbose = Annotated[
    bool,
    option(OUTPUT, "Print every reason with its path, values, source and the complete fix (text).", "--verbose", "-v"),
]
SummaryOnly = Annotated[bool, option(OUTPUT, "Print only the summary (text).", "--summary")]
Quiet = Annotated[bool, option(OUTPUT, "Print only failures and errors, one line each (text).", "--quiet", "-q")]
All = Annotated[bool, option(OUTPUT, "Print every resource of a policy instead of the first 20 (text).", "--all")]
Color = Annotated[
    str | None,
    option(
        OUTPUT,
        "Color the text: always, never or auto (on a terminal). Default: auto; see NO_COLOR and FORCE_COLOR.",
        metavar="WHEN",
    ),
]
ExitZero = Annotated[bool, option(EXIT, "Exit 0 even if there are failures.", "--exit-zero")]
PlainFormat = Annotated[str, _choose_format("text", "json")]
VerifyFormat = Annotated[str, _choose_format("text", "json", "junit")]
PageFormat = Annotated[str, _choose_format("text", "json", "markdown")]
Output = Annotated[
    list[str] | None,
    option(
        OUTPUT,
        "Also write the report to a file; repeatable.",
        "--output",
        "-o",
        metavar="FORMAT=PATH",
        autocompletion=choose(f"{name}=" for name in FORMATS),
    ),
]
Profile = Annotated[
    str | None,
    option(
        POLICIES,
        "Named set of policy parameters (see `policies list --profiles`).",
        metavar="NAME",
        autocompletion=complete_profiles,
    ),
]
GroupBy = Annotated[
    str | None,
    option(
        OUTPUT,
        f"Group findings by {' or '.join(GROUPS)} (formats {' and '.join(PROSE)}).",
        metavar="WHAT",
        env="GROUP_BY",
        autocompletion=choose(GROUPS),
    ),
]

OwnerTag = Annotated[str, option(OUTPUT, "Tag that contains the owner of a resource.", metavar="TAG", env="OWNER_TAG")]
FailOn = Annotated[
    str | None,
    option(
        EXIT,
        f"Exit 1 if there are failures of this severity or higher: {', '.join(Severity)}.",
        metavar="SEVERITY",
        autocompletion=choose(Severity),
    ),
]
AsOf = Annotated[
    str | None,
    option(
        EVALUATION,
        "Evaluate as of this time (ISO 8601), or the end of this day, in UTC. Default: now.",
        metavar="TIME",
        env="AS_OF",
    ),
]
Engine = Annotated[
    str,
    option(
        EVALUATION,
        f"Rego engine: {', '.join(ENGINES)}.",
        metavar="ENGINE",
        env="ENGINE",
        autocompletion=choose(ENGINES),
    ),
]
Jobs = Annotated[
    int,
    option(
        EVALUATION,
        "Number of evaluation processes; 0 chooses a number, up to one per processor.",
        metavar="N",
        env="JOBS",
        min=0,
    ),
]
Baseline = Annotated[
    Path | None,
    option(
        EXIT,
        "Earlier JSON report; only failures that are not in it fail the run.",
        metavar="REPORT",
        env="BASELINE",
        exists=True,
    ),
]
Minimise = Annotated[
    bool,
    option(
        OUTPUT, "Instead of the report, print the smallest part of the snapshot on which a policy fails.", "--minimise"
    ),
]
Suggest = Annotated[
    bool,
    option(OUTPUT, "Instead of the report, print the smallest verified edit that fixes each failure.", "--suggest"),
]
NoCache = Annotated[
    bool, option(EVALUATION, "Do not read or write the cache of compiled policies.", "--no-cache", env="NO_CACHE")
]
VerificationKey = Annotated[
    Path | None,
    option(
        SIGNATURES,
        "Public key to verify bundle archives and policy directories with (PEM).",
        metavar="FILE",
        exists=True,
    ),
]
VerificationAlgorithm = Annotated[
    str | None,
    option(SIGNATURES, "Signature algorithm. Default: ES256 or RS256, depending on the key type.", metavar="ALGORITHM"),
]
VerificationKeyId = Annotated[str | None, option(SIGNATURES, "Key id that signatures must have.", metavar="ID")]
VerificationScope = Annotated[str | None, option(SIGNATURES, "Scope that signatures must have.", metavar="SCOPE")]
RequireSignature = Annotated[
    bool,
    option(SIGNATURES, "Fail if no verification key is configured or a directory is unsigned.", "--require-signature"),
]
AllowUnsignedDirectory = Annotated[
    bool,
    option(
        SIGNATURES,
        "Accept unsigned policy directories even if a verification key is configured.",
        "--allow-unsigned-directory",
    ),
]
OpaUrl = Annotated[
    str, option(OPA, "URL of an OPA server. Default: start a private one.", metavar="URL", env="OPA_URL")
]
OpaTokenFile = Annotated[
    Path | None,
    option(
        OPA,
        "File with the bearer token for the OPA server. Default: the variable POLICYENG_OPA_TOKEN.",
        metavar="FILE",
        env="OPA_TOKEN_FILE",
        exists=True,
    ),
]
OpaCaFile = Annotated[
    Path | None,
    option(
        OPA,
        "CA certificates to trust for the OPA server instead of the public ones (PEM).",
        metavar="FILE",
        env="OPA_CA_FILE",
        exists=True,
    ),
]
OpaClientCert = Annotated[
    Path | None,
    option(
        OPA, "Client certificate and key for the OPA server (PEM).", metavar="FILE", env="OPA_CLIENT_CERT", exists=True
    ),
]
OpaTimeout = Annotated[
    float,
    option(
        OPA,
        "Timeout for a response of the OPA server; the run then exits with 2.",
        metavar="SECONDS",
        env="OPA_TIMEOUT",
    ),
]
OpaBinary = Annotated[
    Path | None,
    option(
        OPA,
        "The `opa` program for a private server. Default: `opa` on the PATH.",
        metavar="FILE",
        env="OPA_BINARY",
        exists=True,
    ),
]
OpaBundle = Annotated[
    str,
    option(
        OPA,
        "Name of the bundle that the OPA server itself loads. Default: auto-detect.",
        metavar="NAME",
        env="OPA_BUNDLE",
    ),
]
OpaPush = Annotated[
    bool | None,
    option(
        OPA,
        "Whether to push the bundle to the OPA server. Default: push unless the server loads it itself.",
        "--opa-push/--no-opa-push",
        env="OPA_PUSH",
    ),
]
