"""The bundle, exemptions and parameters of an evaluation, read according to the settings."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import asdict

from policyeng.bundle import Bundle, load_bundle
from policyeng.bundle.parameters import refuse_unknown_ids, require_fitting, spread_parameters
from policyeng.bundle.policy_selection import selected, with_profile
from policyeng.configuration.settings import Settings
from policyeng.errors import UsageError
from policyeng.models import AppliedSettings, Blame, Exemption, JsonObject, Problem, SettingChange
from policyeng.redaction import MASK, masked
from policyeng.sources.discovery import FileWalk

if TYPE_CHECKING:
    from policyeng.admission import AdmissionOptions
    from policyeng.bundle import Verification
    from policyeng.engines import OpaOptions
    from policyeng.evaluation import EvaluationOptions

#: Settings without effect on findings and decisions; some contain URLs with secrets.
_ELSEWHERE = ("store", "expect", "estates", "notify")
#: Options without effect on findings and decisions.
_PRESENTATION = ("format", "group-by", "owner-tag", "show-skipped", "jobs", "no-cache")
_ENVIRONMENT = "environment "


def _values_in_json(settings: Settings, names: Collection[str]) -> JsonObject:
    """Return settings as JSON values; most runs set only lists of strings, which need no pydantic."""
    values = {name: getattr(settings, name) for name in names}
    if all(isinstance(value, tuple) and all(type(entry) is str for entry in value) for value in values.values()):
        return {name: list(value) for name, value in values.items()}
    return settings.model_dump(mode="json", include=set(names))


def describe_settings(settings: Settings) -> AppliedSettings:
    """Describe the configuration for a report, with masked secrets and paths relative to the working directory."""
    file = _format_value(settings.file) if settings.file else ""
    given = [name for name, origin in settings.origins.items() if origin != "default" and name not in _ELSEWHERE]
    values = _values_in_json(settings, given)
    if "exclude" in values:
        here = re.compile(rf"^(!?){re.escape(Path.cwd().as_posix())}/")
        values["exclude"] = [here.sub(r"\1/", pattern) for pattern in values["exclude"]]
    changes = [
        SettingChange(
            setting=name,
            value=masked(values[name]),
            origin=settings.origins[name].replace(str(settings.file), file, 1),
        )
        for name in given
    ]
    for variable, (option, value) in settings.variables.items():
        if option in _PRESENTATION:
            continue
        name = "template parameters" if option == "parameters" else option  # there is a setting `parameters`
        origin = _ENVIRONMENT + variable
        changes.append(SettingChange(setting=name, value=_mask_option(option, value), origin=origin))
    environment = {change.origin.removeprefix(_ENVIRONMENT) for change in changes if _ENVIRONMENT in change.origin}
    return AppliedSettings(  # validation would take longer than all of this in a short run
        file=file,
        environment=tuple(sorted(environment)),
        changes=tuple(sorted(changes, key=lambda change: change.setting)),
    )


def _format_value(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _mask_option(option: str, value: object) -> object:
    """Mask secrets in the value of an option; every template parameter may be a secret, whatever its name."""
    if option == "parameters" and isinstance(value, list | tuple):
        return [
            f"{name}={MASK}" if equals else name for name, equals, _ in (str(each).partition("=") for each in value)
        ]
    plain = [str(each) for each in value] if isinstance(value, list | tuple) else value
    plain = plain if isinstance(plain, int | float | str | list) else str(plain)
    return masked({option: plain})[option]  # type: ignore[index]  # it gives an object for an object


class EvaluationSetup(Struct, frozen=True):
    """The inputs of an evaluation apart from the snapshot.

    Attributes:
        bundle: with the policies that the settings select.
        parameters: by policy id, the values that override defaults of parameters.
        problems: errors in the exemption files; a faulty entry exempts nothing.
        applied: the settings as described in reports.
    """

    bundle: Bundle
    exemptions: Sequence[Exemption]
    parameters: Mapping[str, JsonObject]
    settings: Settings
    problems: Sequence[Problem] = ()
    applied: AppliedSettings = field(default_factory=AppliedSettings)

    def options(self, as_of: datetime, engine: str = "embedded", opa: OpaOptions | None = None) -> EvaluationOptions:
        """Return the options for evaluations at a time; the problems of the exemption files are not among them."""
        from policyeng.evaluation import EvaluationOptions  # not every command evaluates

        return EvaluationOptions(
            as_of,
            self.exemptions,
            self.parameters,
            engine,
            opa,
            fail_on=self.settings.fail_on,
            strict_unknown=self.settings.strict_unknown,
        )

    def admission_options(
        self,
        as_of: datetime,
        engine: str = "embedded",
        opa: OpaOptions | None = None,
        *,
        blame: Blame = Blame.TOUCHED,
        standing: bool = False,
    ) -> AdmissionOptions:
        """Return the options for decisions at a time; `blame` applies if the settings do not set it."""
        from policyeng.admission import AdmissionOptions  # few commands decide

        settings, options = self.settings, self.options(as_of, engine, opa)
        return AdmissionOptions(
            **asdict(options), modes=settings.modes, blame=settings.blame or blame, standing=standing
        )


def load_resources(
    policies: Sequence[Path], given_data: Sequence[str], settings: Settings, *, no_exemptions: bool = False
) -> EvaluationSetup:
    """Read the policies, parameters and exemptions.

    Args:
        policies: directories and archives; the built-in policies if empty.
        given_data: the paths given with `--data`.
        settings: the settings of the run.
        no_exemptions: ignore all exemptions, including configured ones.

    Raises:
        BundleError: a bundle or a profile is not well formed, a signature is not valid, or a Python module cannot be
            run.
        UsageError: a policy, a parameter, a profile or a key of the settings does not exist or is not valid.
    """
    whole = bundle_of(policies, settings, given_data, azure_policy=True)
    bundle = selected(whole, settings.select, settings.ignore)
    bundle.run_python()
    parameters = parameters_given(whole, bundle, settings)
    exemptions, problems = ([], []) if no_exemptions else _exemptions(settings)
    return EvaluationSetup(bundle, exemptions, parameters, settings, problems, describe_settings(settings))


def walk_of(settings: Settings, *, all_files: bool = False) -> FileWalk:
    """Return which files of directories a run reads.

    Patterns of `exclude` from a configuration file that was found count as written by who wrote the directory.
    """
    if settings.aliases is not None and not settings.azure_policy:
        place = (settings.origins.get("aliases", ""),)
        raise UsageError("`aliases` without Azure policies", place=place, remedy="add `--azure-policy`, or remove it")
    is_stated = settings.origins.get("exclude", "").startswith(("flag ", "environment "))
    config = settings.file if settings.is_found and not is_stated else None
    return FileWalk(settings.exclude, config=config, all_files=all_files)


def verification_of(settings: Settings) -> Verification | None:
    """Return how to verify the signatures of bundles; None if no key is configured and no signature is required."""
    if settings.verification_key is None and not settings.require_signature:
        return None
    from policyeng.bundle import Verification  # most runs do not verify signatures

    return Verification(
        settings.verification_key,
        settings.verification_algorithm,
        settings.verification_key_id,
        settings.verification_scope,
        settings.require_signature,
        settings.allow_unsigned_directory,
    )


def bundle_of(
    policies: Sequence[Path],
    settings: Settings,
    given_data: Sequence[str] = (),
    *,
    require_policies: bool = True,
    azure_policy: bool = False,
) -> Bundle:
    """Load the bundle of the given directories and archives, or the built-in one, with the data of `--data`.

    Without `require_policies`, a library that has none is a bundle, too. With `azure_policy`, it has the definitions
    of the settings: on the command line they replace the built-in policies as `--policy` does; a configuration file
    can only add them, because it may come with what is evaluated.

    Raises:
        BundleError: the bundle is not well formed, or its signature is not valid.
        UsageError: the configured key or algorithm cannot be used.
    """
    verification = verification_of(settings)
    is_stated = settings.origins.get("azure_policy", "").startswith(("flag ", "environment "))
    aliases = [settings.aliases] if settings.aliases is not None else []
    return load_bundle(
        *policies,
        data=given_data,
        verification=verification,
        require_policies=require_policies,
        azure_policy=(*settings.azure_policy, *aliases) if azure_policy and settings.azure_policy else (),
        built_in_too=not is_stated,
    )


def parameters_given(whole: Bundle, bundle: Bundle, settings: Settings) -> Mapping[str, JsonObject]:
    """Return, by policy id, the parameters of the settings, which override those of the profile.

    Args:
        whole: the bundle with all policies.
        bundle: the bundle with the selected policies.
        settings: the settings of the run.

    Raises:
        UsageError: a policy, a parameter or a profile does not exist, or a value is not valid.
        BundleError: the profile is not well formed.
    """
    origin = settings.origins.get("parameters", "")
    given = spread_parameters(whole, settings.parameters, origin)
    refuse_unknown_ids(whole, given, origin)
    require_fitting(bundle, given, origin)
    return with_profile(whole, settings.profile, given)


def _exemptions(settings: Settings) -> tuple[list[Exemption], list[Problem]]:
    """Read the exemptions of every file; an entry that cannot be read is reported and does not affect others."""
    read: list[Exemption] = []
    problems: list[Problem] = []
    if settings.exemptions:
        from policyeng.sources import read_exemptions  # most runs have none
    for path in settings.exemptions:
        exemptions, faults = read_exemptions(path, max_days=settings.max_exemption_days)
        read += exemptions
        problems += faults
    seen: set[str] = set()
    for exemption in read:
        if exemption.id in seen:
            message = "two files have an exemption with this id; exemption ids must be unique"
            problems.append(Problem(level="error", message=message, place=f"exemption {exemption.id}"))
        seen.add(exemption.id)
    return read, problems
