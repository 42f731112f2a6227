"""The settings of a run, and their names."""

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
        profile: the name of a profile of the bundle, whose parameters go before the defaults and after `parameters`.
        fail_on: failures at or above this severity fail the run.
        strict_unknown: what cannot be decided fails it, too.
        select, ignore: policy ids, areas, controls or severities.
        exemptions: exemption files; those named in a configuration file are relative to it.
        exclude: what is left out of directories, as `policyeng.sources.excluded` gives it; that of a configuration
            file is relative to it.
        max_exemption_days: the longest life of an exemption.
        verification_key: a public key; the signatures of bundles are verified with it. One that a configuration file
            names is relative to it.
        verification_algorithm, verification_key_id, verification_scope: what its signatures are made with and state.
        require_signature: a verification key has to be configured, and no directory of policies may be unsigned.
        allow_unsigned_directory: a directory of policies that carries no signature is read in spite of the key.
        parameters: by policy id and parameter name.
        modes: how failures are enforced that a change is to blame for; where none is set they deny it.
        store: the database of audits; a relative path in a configuration file is relative to that.
        expect: hashes of runs or of retentions that the store has to have, as they were noted elsewhere.
        estates: what is audited.
        blame: whether old failures on what is changed deny a change, too; as the caller has it when None.
        notify: who is told of audits, and of what.
        origins: by setting, where its value came from: `flag --x`, `environment X`, `FILE:LINE` or `default`.
        file: the configuration file that was read; None without one.
        variables: by variable of the environment, the option of the command line that it sets, and its value; those
            that are no settings.
    """

    profile: str | None = None
    fail_on: Annotated[Severity, _ANY_CASE] = Severity.LOW
    strict_unknown: bool = False
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
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
#: Settings that are lists of text, for which text alone stands, too.
LISTS = ("select", "ignore", "exemptions", "exclude", "expect")
#: Settings that are tables, which only a file can give.
TABLES = ("parameters", "modes", "estates", "notify")


class GivenSetting(NamedTuple):
    """A value that someone gave, and where."""

    value: object
    origin: str


def known() -> str:
    """The names of all settings, for a message."""
    return "known are " + ", ".join(f"`{name}`" for name in NAMES)
