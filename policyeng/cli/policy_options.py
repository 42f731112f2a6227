"""Options that choose policies, settings and exemptions, for every command that has them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from policyeng.cli.context import selected_bundle, settings_of
from policyeng.context import EvaluationSetup, load_resources
from policyeng.errors import UsageError
from policyeng.frozen import frozen

if TYPE_CHECKING:  # the options need typer, and a plain run does not
    from policyeng.bundle import Bundle
    from policyeng.cli import options
    from policyeng.configuration import Settings


@frozen(kw_only=True)
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


@frozen(kw_only=True)
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


@frozen(kw_only=True)
class SelectionOptions(PolicyOptions):
    """The policies, and which of them to use."""

    select: options.Select = None
    ignore: options.Ignore = None

    def bundle(self, settings: Settings) -> Bundle:
        """Load the bundle with the policies that the command line selects.

        Raises:
            BundleError, UsageError: as for `selected_bundle`.
        """
        return selected_bundle(self.policies, settings, self.given_data, self.select, self.ignore)


@frozen(kw_only=True)
class SetupOptions(SelectionOptions):
    """The policies, parameters and exemptions of an evaluation."""

    profile: options.Profile = None
    exemptions: options.Exemptions = None
    no_exemptions: options.NoExemptions = False

    SETTINGS = tuple[str, ...]((*SelectionOptions.SETTINGS, "select", "ignore", "profile", "exemptions"))

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


@frozen(kw_only=True)
class CriteriaOptions(SetupOptions):
    """The policies, parameters and exemptions of an evaluation, and what fails the run."""

    fail_on: options.FailOn = None
    strict_unknown: options.StrictUnknown = False

    SETTINGS = tuple[str, ...]((*SetupOptions.SETTINGS, "fail_on", "strict_unknown"))
