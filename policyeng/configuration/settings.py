"""The settings of a run and their names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from policyeng.configuration.estates import EstateSettings
from policyeng.configuration.notification_targets import Notifying
from policyeng.frozen import field, fields, frozen
from policyeng.models import Blame, Checked, Enforcement, JsonObject, Limited, Model, Severity
from policyeng.named import NamedTuple


def _in_lower_case(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


_ANY_CASE = Checked(_in_lower_case, before=True)


@frozen(kw_only=True)
class Settings(Model):
    """The settings of a run.

    Attributes:
        profile: a profile of the bundle; its parameters override the defaults, and `parameters` override them.
        fail_on: failures at or above this severity fail the run.
        strict_unknown: whether unknown findings fail the run.
        select, ignore: policy ids, areas, controls or severities.
        frameworks: names of frameworks, or files relative to the configuration file; `check` evaluates their policies.
        exemptions: exemption files; relative to the configuration file.
        exclude: patterns of excluded files, as from `policyeng.sources.excluded`; relative to the configuration file.
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
    variables: Mapping[str, tuple[str, Any]] = field(default_factory=dict)


NAMES = tuple(entry.name for entry in fields(Settings) if entry.name not in ("origins", "file", "variables"))
#: Settings that are lists of strings; a single string is accepted as well.
LISTS = ("select", "ignore", "frameworks", "exemptions", "exclude", "expect")
#: Settings that are tables, which can only be set in a file.
TABLES = ("parameters", "modes", "estates", "notify")


class GivenSetting(NamedTuple):
    """The value of a setting and its origin."""

    value: object
    origin: str


def list_settings() -> str:
    """Return a remedy with the names of all settings."""
    return "choose from " + ", ".join(f"`{name}`" for name in NAMES)
