"""What is judged with: the bundle, exemptions and parameters in force, read as the settings say."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from policyeng.bundle import Bundle, load_bundle
from policyeng.bundle.parameters import refuse_unknown_ids, require_fitting, spread
from policyeng.bundle.policy_selection import selected, with_profile
from policyeng.configuration.settings import Settings
from policyeng.frozen import field, frozen
from policyeng.models import AppliedSettings, Exemption, JsonObject, Problem, SettingChange
from policyeng.redaction import MASK, masked

if TYPE_CHECKING:
    from policyeng.bundle import Verification

#: Settings with no effect on what is found or decided; URLs with secrets are among them.
_ELSEWHERE = ("store", "expect", "estates", "notify")
#: The same of options.
_PRESENTATION = ("format", "group-by", "owner-tag", "show-skipped", "jobs", "no-cache")
_ENVIRONMENT = "environment "


def applied_settings(settings: Settings) -> AppliedSettings:
    """Describe for a report what was configured, secrets masked; files in the working directory by relative path."""
    file = _shown(settings.file) if settings.file else ""
    given = [name for name, origin in settings.origins.items() if origin != "default" and name not in _ELSEWHERE]
    values: JsonObject = settings.model_dump(mode="json", include=set(given)) if given else {}
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
        changes.append(SettingChange(setting=name, value=_harmless(option, value), origin=origin))
    environment = {change.origin.removeprefix(_ENVIRONMENT) for change in changes if _ENVIRONMENT in change.origin}
    return AppliedSettings(  # a validator would cost a short run more than all of this
        file=file,
        environment=tuple(sorted(environment)),
        changes=tuple(sorted(changes, key=lambda change: change.setting)),
    )


def _shown(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _harmless(option: str, value: object) -> object:
    """The value of an option without secrets; parameters of templates may be some, whatever their names."""
    if option == "parameters" and isinstance(value, list | tuple):
        return [
            f"{name}={MASK}" if equals else name for name, equals, _ in (str(each).partition("=") for each in value)
        ]
    plain = [str(each) for each in value] if isinstance(value, list | tuple) else value
    plain = plain if isinstance(plain, int | float | str | list) else str(plain)
    return masked({option: plain})[option]  # type: ignore[index]  # it gives an object for an object


@frozen
class EvaluationSetup:
    """What is in force.

    Attributes:
        bundle: with the policies that the settings select.
        parameters: by policy id, what replaces the defaults of parameters.
        problems: an error for each fault of the exemption files; a faulty entry exempts nothing.
        applied: the settings as reports describe them.
    """

    bundle: Bundle
    exemptions: Sequence[Exemption]
    parameters: Mapping[str, JsonObject]
    settings: Settings
    problems: Sequence[Problem] = ()
    applied: AppliedSettings = field(default_factory=AppliedSettings)


def held_of(
    policies: Sequence[Path], given_data: Sequence[str], settings: Settings, *, no_exemptions: bool = False
) -> EvaluationSetup:
    """Read what is in force.

    Args:
        policies: directories and archives; without any, the built-in policies.
        given_data: what `--data` names.
        settings: what is configured.
        no_exemptions: apply none, whatever is configured.

    Raises:
        BundleError: a bundle or a profile is not well formed, a signature is not valid, or a module in Python cannot
            be run.
        UsageError: a policy, a parameter, a profile or a key of the settings does not exist or does not fit.
    """
    whole = bundle_of(policies, settings, given_data)
    bundle = selected(whole, settings.select, settings.ignore)
    bundle.run_python()
    parameters = parameters_given(whole, bundle, settings)
    exemptions, problems = ([], []) if no_exemptions else _exemptions(settings)
    return EvaluationSetup(bundle, exemptions, parameters, settings, problems, applied_settings(settings))


def verification_of(settings: Settings) -> Verification | None:
    """How the signatures of bundles are verified; None when no key is configured and none is required."""
    if settings.verification_key is None and not settings.require_signature:
        return None
    from policyeng.bundle import Verification  # most runs verify nothing

    return Verification(
        settings.verification_key,
        settings.verification_algorithm,
        settings.verification_key_id,
        settings.verification_scope,
        settings.require_signature,
        settings.allow_unsigned_directory,
    )


def bundle_of(policies: Sequence[Path], settings: Settings, given_data: Sequence[str] = ()) -> Bundle:
    """The bundle of the given directories and archives, or the built-in one, with what `--data` names.

    Raises:
        BundleError: it is not well formed, or its signature does not hold.
        UsageError: the key or the algorithm of the configuration cannot be used.
    """
    return load_bundle(*policies, data=given_data, verification=verification_of(settings))


def parameters_given(whole: Bundle, bundle: Bundle, settings: Settings) -> Mapping[str, JsonObject]:
    """By policy id, the parameters that the settings give, over those of their profile.

    Args:
        whole: the bundle with all policies.
        bundle: with those in force.
        settings: what is configured.

    Raises:
        UsageError: a policy, a parameter or a profile does not exist, or a value does not fit.
        BundleError: the profile is not well formed.
    """
    origin = settings.origins.get("parameters", "")
    given = spread(whole, settings.parameters, origin)
    refuse_unknown_ids(whole, given, origin)
    require_fitting(bundle, given, origin)
    return with_profile(whole, settings.profile, given)


def _exemptions(settings: Settings) -> tuple[list[Exemption], list[Problem]]:
    """Exemptions of every file; an entry that cannot be read is a problem and hides no other."""
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
            message = "the exemption stands in two files; the ids of exemptions are unique"
            problems.append(Problem(level="error", message=message, place=f"exemption {exemption.id}"))
        seen.add(exemption.id)
    return read, problems
