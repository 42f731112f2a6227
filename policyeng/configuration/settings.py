"""The settings of a run and their names."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from msgspec import field
from msgspec.structs import fields

from policyeng.errors import suggest_nearest
from policyeng.models import UNCHECKED, Blame, Checked, Enforcement, JsonObject, Limited, Model, Severity


class EstateSettings(Model, frozen=True, kw_only=True):
    """One `[[estates]]` table.

    Attributes:
        name: letters, digits, `-`, `_` and `.`; unique.
        inputs: directories, files and http(s) URLs; relative to the configuration file.
        together: whether the files of each direct subdirectory of an input form one snapshot, and the files directly in
            the input another; otherwise each file is a snapshot.
        subscription, resource_group, workspace: what to read from live Azure instead of inputs.
        cloud: the Azure cloud, by its name in the Azure CLI.
        deadline: the timeout for fetching one document from a URL.
        cron: the schedule, as five fields.
        every: the interval of the schedule; without it and `cron`, the estate is not scheduled.
        timezone: the time zone of `cron`.
        jitter: the maximum random delay of a scheduled run.
        grace: how late a missed run is still started.
    """

    name: str
    inputs: tuple[str, ...] = ()
    together: bool = False
    subscription: str = ""
    resource_group: str = ""
    workspace: str = ""
    cloud: str = "AzureCloud"
    deadline: timedelta = timedelta(minutes=5)
    cron: str = ""
    every: timedelta | None = None
    timezone: str = "UTC"
    jitter: timedelta = timedelta(0)
    grace: timedelta = timedelta(hours=1)


if TYPE_CHECKING:
    from pydantic import SecretStr as Secret
else:  # pydantic is only loaded to read the table
    Secret = Annotated[object, UNCHECKED]


class Notifying(Model, frozen=True, kw_only=True):
    """One `[[notify]]` table: a target, and which findings it receives.

    Attributes:
        name: letters, digits, `-`, `_` and `.`; unique.
        url: an apprise URL, in which `${NAME}` refers to the environment; never printed.
        estates: estate names; all if empty.
        owners: values of the tag `owner`, ignoring case; all if empty.
        severity: the lowest severity of findings.
        per_hour: the maximum number of messages per hour; further messages are combined.
        inherited_from: the configuration file that sets it, if that was found in a parent directory; `${NAME}` in the
            URL is not expanded then. Not a key of the table.
    """

    name: str
    url: Secret
    estates: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    severity: Severity = Severity.LOW
    per_hour: int = 20
    inherited_from: str = ""


def _in_lower_case(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


_ANY_CASE = Checked(_in_lower_case, before=True)


class Settings(Model, frozen=True, kw_only=True):
    """The settings of a run.

    Attributes:
        profile: a profile of the bundle; its parameters override the defaults, and `parameters` override them.
        fail_on: failures at or above this severity fail the run.
        strict_unknown: whether unknown findings fail the run.
        select, ignore: policy ids, areas, controls or severities.
        frameworks: names of frameworks, or files relative to the configuration file; `check` evaluates their policies.
        exemptions: exemption files; relative to the configuration file.
        exclude: patterns of excluded files, as from `policyeng.sources.excluded`; relative to the configuration file.
        azure_policy: files and directories with definitions of Azure Policy; relative to the configuration file.
        aliases: the aliases of resource providers; relative to the configuration file.
        max_exemption_days: the longest lifetime of an exemption.
        verification_key: the public key for the signatures of bundles; relative to the configuration file.
        verification_algorithm, verification_key_id, verification_scope: what the signatures must have.
        require_signature: whether a verification key must be configured and policy directories must be signed.
        allow_unsigned_directory: whether unsigned policy directories are read despite the key.
        parameters: by policy id and parameter name.
        modes: how failures that a change is to blame for are enforced; the default is deny.
        store: the audit store; a relative path is relative to the configuration file.
        expect: hashes of runs or retentions, recorded elsewhere, that the store must contain.
        estates: the estates to audit.
        blame: whether existing failures on changed resources deny a change; the default of the caller if None.
        notify: the notification targets.
        origins: the origin of each setting: `flag --x`, `environment X`, `FILE:LINE` or `default`.
        file: the configuration file that was read; None without one.
        is_found: whether the search found that file, and no option or variable names it.
        variables: for each environment variable of an option that is not a setting, the option and its value.
    """

    profile: str | None = None
    fail_on: Annotated[Severity, _ANY_CASE] = Severity.LOW
    strict_unknown: bool = False
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    frameworks: tuple[str, ...] = ()
    exemptions: tuple[Path, ...] = ()
    exclude: tuple[str, ...] = ()
    azure_policy: tuple[Path, ...] = ()
    aliases: Path | None = None
    max_exemption_days: Annotated[int, Limited(ge=1, le=36500)] = 365
    verification_key: Path | None = None
    verification_algorithm: str = ""
    verification_key_id: str = ""
    verification_scope: str = ""
    require_signature: bool = False
    allow_unsigned_directory: bool = False
    parameters: Mapping[str, JsonObject] = field(default_factory=dict)
    modes: tuple[Enforcement, ...] = ()
    blame: Annotated[Blame | None, _ANY_CASE] = None
    store: str = "sqlite:///audits.db"
    expect: tuple[str, ...] = ()
    estates: tuple[EstateSettings, ...] = ()
    notify: tuple[Notifying, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)
    file: Path | None = None
    is_found: bool = False
    variables: Mapping[str, tuple[str, Any]] = field(default_factory=dict)


NAMES = tuple(
    entry.name for entry in fields(Settings) if entry.name not in ("origins", "file", "is_found", "variables")
)
#: Settings that are lists of strings; a single string is accepted as well.
LISTS = ("select", "ignore", "frameworks", "exemptions", "exclude", "azure_policy", "expect")
#: Settings that are tables, which can only be set in a file.
TABLES = ("parameters", "modes", "estates", "notify")


class GivenSetting(NamedTuple):
    """The value of a setting and its origin."""

    value: object
    origin: str


def list_settings() -> str:
    """Return a remedy with the names of all settings."""
    return "choose from " + ", ".join(f"`{name}`" for name in NAMES)


ENVIRONMENT_PREFIX = "POLICYENG_"
#: The options of settings that are not called as these.
_OPTIONS = {"frameworks": "framework"}
_IN_ENVIRONMENT = tuple(name for name in NAMES if name not in TABLES)


def from_flags(flags: Mapping[str, object]) -> Iterator[tuple[str, GivenSetting]]:
    """Yield the settings that the command line sets, with their names."""
    for name, value in flags.items():
        if value in (None, (), []) or value is False:  # a flag that was not given overrides nothing
            continue
        if name in ("select", "ignore") and isinstance(value, list | tuple):
            value = [part for entry in value for part in _parts(str(entry))]
        yield name, GivenSetting(value, f"flag --{_OPTIONS.get(name, name).replace('_', '-')}")


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def from_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, GivenSetting]]:
    """Yield the settings that the environment sets, with their names."""
    for name in _IN_ENVIRONMENT:
        if text := environ.get(_variable(name)):
            yield name, GivenSetting(_parts(text) if name in LISTS else text, f"environment {_variable(name)}")


def describe_unknown_variables(environ: Mapping[str, str], flags_elsewhere: Collection[str]) -> Iterator[str]:
    """Yield a warning per `POLICYENG_` variable that sets nothing; it may belong to another program.

    Args:
        environ: the environment.
        flags_elsewhere: flags that are not settings and whose variables are known.
    """
    known = [_variable(name) for name in (*_IN_ENVIRONMENT, *flags_elsewhere, "config")]
    for variable in sorted(environ):
        if variable.startswith(ENVIRONMENT_PREFIX) and variable not in known:
            yield f"environment {variable}: unknown variable, ignored{suggest_nearest(variable, known)}"


def _variable(name: str) -> str:
    return f"{ENVIRONMENT_PREFIX}{name.upper().replace('-', '_')}"
