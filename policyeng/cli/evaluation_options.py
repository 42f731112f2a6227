"""Options of every command that evaluates: what it reads, with which policies and settings, and on which engine.

Classes that only other classes of options extend generate no methods, and none compares options: each generated method
costs every run a fifth of a millisecond.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from policyeng.cli.context import find_known, selected_bundle, settings_of
from policyeng.context import EvaluationSetup, load_resources, walk_of
from policyeng.engines import ENGINES, OpaOptions
from policyeng.errors import UsageError
from policyeng.models import LedgerEntry
from policyeng.report.phrases import count, ledger_entry_sentence
from policyeng.sources import (
    FORMATS,
    DocumentContext,
    FileWalk,
    ReadDocument,
    normalize_context,
    resolve_paths,
)

if TYPE_CHECKING:
    from policyeng.bundle import Bundle
    from policyeng.cli import options
    from policyeng.configuration import Settings


@dataclass(kw_only=True, init=False, repr=False, eq=False)
class SignatureOptions:
    """The configuration file, and how signatures are verified."""

    config: options.Config = None
    verification_key: options.VerificationKey = None
    verification_algorithm: options.VerificationAlgorithm = None
    verification_key_id: options.VerificationKeyId = None
    verification_scope: options.VerificationScope = None
    require_signature: options.RequireSignature = False
    allow_unsigned_directory: options.AllowUnsignedDirectory = False

    #: The fields that are settings; subclasses add theirs.
    SETTINGS = tuple[str, ...](
        (
            "verification_key",
            "verification_algorithm",
            "verification_key_id",
            "verification_scope",
            "require_signature",
            "allow_unsigned_directory",
        )
    )

    def settings(self, **others: object) -> Settings:
        """Return the settings with those of the command line; `others` are settings with options of one command only.

        Raises:
            UsageError: a setting is unknown or not valid.
        """
        return settings_of({**{name: getattr(self, name) for name in self.SETTINGS}, **others}, self.config)


@dataclass(kw_only=True, init=False, repr=False, eq=False)
class PolicyOptions(SignatureOptions):
    """The policies and their data."""

    policy: options.Policies = None
    data: options.GivenData = None

    @property
    def policies(self) -> Sequence[Path]:
        """The policy directories and archives; empty for the built-in policies."""
        return self.policy or ()

    @property
    def given_data(self) -> Sequence[str]:
        """The paths of `--data`."""
        return self.data or ()

    @property
    def repeated(self) -> list[str]:
        """The options that a later command needs to find the same policies."""
        return [
            *(part for path in self.policies for part in ("--policy", str(path))),
            *(part for path in self.given_data for part in ("--data", path)),
        ]


@dataclass(kw_only=True, init=False, repr=False, eq=False)
class SelectionOptions(PolicyOptions):
    """The policies, and which of them to use."""

    select: options.Select = None
    ignore: options.Ignore = None

    def bundle(self, settings: Settings, *, require_policies: bool = True) -> Bundle:
        """Load the bundle with the policies that the command line selects; it may have none if they are not required.

        Raises:
            BundleError, UsageError: as for `selected_bundle`.
        """
        selection = self.policies, settings, self.given_data, self.select, self.ignore
        return selected_bundle(*selection, require_policies=require_policies)


@dataclass(kw_only=True, init=False, repr=False, eq=False)
class SetupOptions(SelectionOptions):
    """The policies, parameters and exemptions of an evaluation."""

    azure_policy: options.AzurePolicy = None
    aliases: options.Aliases = None
    profile: options.Profile = None
    exemptions: options.Exemptions = None
    no_exemptions: options.NoExemptions = False

    SETTINGS = tuple[str, ...](
        (*SelectionOptions.SETTINGS, "select", "ignore", "profile", "exemptions", "azure_policy", "aliases")
    )

    def setup(self, settings: Settings) -> EvaluationSetup:
        """Read the policies, parameters and exemptions.

        Raises:
            BundleError, UsageError: as for `load_resources`, or an exemption file does not exist.
        """
        for path in () if self.no_exemptions else settings.exemptions:
            if not path.exists():
                place = (settings.origins["exemptions"], str(path))
                raise UsageError("no such exemption file", place=place, remedy="pass an existing file")
        return load_resources(self.policies, self.given_data, settings, no_exemptions=self.no_exemptions)


@dataclass(kw_only=True, init=False, repr=False, eq=False)
class CriteriaOptions(SetupOptions):
    """The policies, parameters and exemptions of an evaluation, and what fails the run."""

    fail_on: options.FailOn = None
    strict_unknown: options.StrictUnknown = False

    SETTINGS = tuple[str, ...]((*SetupOptions.SETTINGS, "fail_on", "strict_unknown"))


TOKEN_VARIABLE = "POLICYENG_OPA_TOKEN"  # noqa: S105  # the name of a variable


@dataclass(kw_only=True, repr=False, eq=False)
class OpaServerOptions:
    """The OPA server, for commands that choose the engine themselves."""

    opa_url: options.OpaUrl = ""
    opa_token_file: options.OpaTokenFile = None
    opa_ca_file: options.OpaCaFile = None
    opa_client_cert: options.OpaClientCert = None
    opa_timeout: options.OpaTimeout = OpaOptions.timeout
    opa_binary: options.OpaBinary = None
    opa_bundle: options.OpaBundle = ""
    opa_push: options.OpaPush = None

    def opa(self) -> OpaOptions:
        """Return the options of the OPA server.

        Raises:
            UsageError: the token file cannot be read.
        """
        return OpaOptions(
            url=self.opa_url,
            token=_read_token(self.opa_token_file),
            ca_file=self.opa_ca_file,
            client_cert=self.opa_client_cert,
            timeout=self.opa_timeout,
            binary=self.opa_binary,
            bundle=self.opa_bundle,
            push=self.opa_push,
        )


@dataclass(kw_only=True, init=False, repr=False, eq=False)
class RegoEngineOptions(OpaServerOptions):
    """The Rego engine, and the OPA server if that is the engine."""

    engine: options.Engine = "embedded"

    def rego_engine(self) -> tuple[str, OpaOptions]:
        """Return the engine and the options of the OPA server.

        Raises:
            UsageError: the engine is unknown, or it is another one and there are options of the OPA server. A token in
                the environment is allowed, since it may be for other runs.
        """
        engine, opa = find_known(self.engine, ENGINES, "engine"), self.opa()
        if engine != "opa" and replace(opa, token="") != OpaOptions():
            raise UsageError("OPA server options without `--engine opa`", remedy="add it, or remove the options")
        return engine, opa


def _read_token(file: Path | None) -> str:
    """Read the bearer token from the file or the environment; it is never on the command line."""
    if file is None:
        return os.environ.get(TOKEN_VARIABLE, "").strip()
    try:
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise UsageError("cannot read the token", place=(str(file),), remedy="pass a text file") from None
    if not token:
        raise UsageError("the token file is empty", place=(str(file),), remedy="write the token to it")
    return token


@dataclass(kw_only=True, init=False, repr=False, eq=False)
class InputOptions:
    """The format of the inputs, the context that their documents lack, and which files of directories to read."""

    from_: options.From = None
    scope: options.Scope = None
    workspace: options.Workspace = None
    parameters: options.TemplateParameters = None
    show_skipped: options.ShowSkipped = False
    exclude: options.Exclude = None
    no_gitignore: options.NoGitignore = False
    all_files: options.AllFiles = False

    def from_format(self, formats: Iterable[str] = FORMATS) -> str | None:
        """Return the name of the input format, if one is given.

        Raises:
            UsageError: it is unknown.
        """
        return find_known(self.from_, formats, "input format") if self.from_ else None

    def context(self) -> DocumentContext:
        """Return the context that documents of some formats lack.

        Raises:
            UsageError, InputError: a value is not valid, or a parameter file cannot be read.
        """
        return normalize_context(self.scope or "", self.workspace or "", self._parameters())

    def _parameters(self) -> Mapping[str, object]:
        if not self.parameters:
            return {}
        from policyeng.sources import read_parameters  # most runs have none

        return read_parameters(self.parameters)

    def walk(self, settings: Settings, others: Iterable[str | Path | None]) -> FileWalk:
        """Return which files of directories a run reads; `others` are the values of options that name files."""
        named = [
            other.removeprefix("@") if isinstance(other, str) else other
            for other in (*others, *(self.parameters or ()))
        ]
        named += [*settings.exemptions, *settings.azure_policy, settings.aliases, settings.verification_key]
        walk = walk_of(settings, all_files=self.all_files)
        return walk._replace(gitignore=not self.no_gitignore, others=resolve_paths(named))


def refuse_urls(inputs: Iterable[str]) -> None:
    """Refuse URLs, which are not downloaded.

    Raises:
        UsageError: with the command that downloads it.
    """
    for given in inputs:
        if given.lower().startswith(("http://", "https://")):
            remedy = f"use `curl -fsS {shlex.quote(given)} | policyeng check -`"
            raise UsageError(f"`{given}` is a URL; inputs are files and directories", remedy=remedy)


def format_lines() -> Iterator[str]:
    """Yield one line per input format: its name for `--from` and a summary."""
    width = max(map(len, FORMATS))
    yield from (f"{name:<{width}}  {each.SUMMARY}" for name, each in FORMATS.items())


def reading_lines(every: Sequence[ReadDocument], ledger: Sequence[LedgerEntry], *, show_skipped: bool) -> Iterator[str]:
    """Yield a summary if files have several formats, and on request one line for each entry of the ledger."""
    formats = Counter(read.format for read in every)
    if len(formats) > 1:
        what = ", ".join(f"{number} {name}" for name, number in sorted(formats.items()))
        yield f"policyeng: read {count(len({read.file for read in every}), 'file')} ({what})"
    if show_skipped:
        for entry in ledger:
            mark = " (could hold or change Machine Learning resources)" if entry.relevant else ""
            yield f"policyeng: not read: {ledger_entry_sentence(entry)}{mark}"
