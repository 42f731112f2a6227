"""What the commands judge with: the settings, and the bundle that they let in."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from policyeng.bundle import Bundle, Verification, load_bundle
from policyeng.bundle.parameters import refuse_unknown_ids, require_fitting, spread
from policyeng.bundle.profiles import with_profile
from policyeng.bundle.selection import selected
from policyeng.cli.variables import ENVIRONMENT
from policyeng.configuration import Settings, resolve
from policyeng.errors import BundleError, UsageError, nearest
from policyeng.models import JsonObject
from policyeng.report.wording import count


def chosen(given: str, known: Iterable[str], noun: str) -> str:
    """The name among those known that is given, in any letter case.

    Args:
        given: on the command line.
        known: in lower case.
        noun: what they name; it takes an `s`, or `ies` for its `y`.

    Raises:
        UsageError: there is none of that name; it has the nearest and all of them.
    """
    names = list(known)
    if given.lower() in names:
        return given.lower()
    remedy = f"the {count(2, noun).partition(' ')[2]} are {', '.join(names)}"
    raise UsageError(f"no {noun} is called `{given}`{nearest(given, names)}", remedy=remedy)


def plain_format(given: str, *others: str) -> str:
    """A format of a command that prints text or JSON, or one of `others`.

    Raises:
        UsageError: it is another one.
    """
    return chosen(given, ("text", "json", *others), "format")


def settings_of(flags: Mapping[str, object], config: Path | None) -> Settings:
    """The settings of a run in this directory and environment.

    Raises:
        UsageError: a setting is unknown or does not fit.
    """
    return resolve(flags, os.environ, Path.cwd(), config, flags_elsewhere=ENVIRONMENT)


def verification_of(settings: Settings) -> Verification | None:
    """How the signatures of bundles are verified; None when no key is configured and none is required."""
    if settings.verification_key is None and not settings.require_signature:
        return None
    return Verification(
        settings.verification_key,
        settings.verification_algorithm,
        settings.verification_key_id,
        settings.verification_scope,
        settings.require_signature,
    )


def bundle_of(policies: Sequence[Path], settings: Settings, given_data: Sequence[str] = ()) -> Bundle:
    """The bundle of the given directories and archives, or the built-in one, with what `--data` names.

    Raises:
        BundleError: it is not well formed, or its signature does not hold.
        UsageError: the key or the algorithm of the configuration cannot be used.
    """
    return load_bundle(*policies, data=given_data, verification=verification_of(settings))


def selected_bundle(
    policies: Sequence[Path] | None,
    settings: Settings,
    given_data: Sequence[str] | None,
    select: Sequence[str] | None,
    ignore: Sequence[str] | None,
) -> Bundle:
    """That bundle with the policies that the options choose.

    Raises:
        BundleError, UsageError: as of `bundle_of`, for a selector that is empty or names nothing, and where no policy
            is left: then nothing can be said of it, as nothing can be judged with it.
    """
    require_text(select, ignore)
    whole = bundle_of(policies or (), settings, given_data or ())
    left = selected(whole, split(select), split(ignore))
    if whole.policies and not left.policies:
        what = f"of {count(len(whole.policies), 'policy')} none is left after `--select` and `--ignore`"
        raise BundleError(what, remedy="select more, or ignore less")
    return left


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


def moment_of(text: str | None) -> datetime:
    """The time that `--as-of` names, now without one; a time without a zone is in UTC.

    Raises:
        UsageError: it is none, or out of range.
    """
    if not text:
        return datetime.now(UTC)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"`{text}` is no time for --as-of", remedy="write 2026-06-01T00:00:00Z") from None
    try:
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except OverflowError:
        raise UsageError(
            f"`{text}` is out of range for --as-of", remedy="write a time of the years 1 to 9999"
        ) from None


def require_text(*given: Sequence[str] | None) -> None:
    """Refuse what an empty shell variable leaves behind: it would widen the run without a word.

    Raises:
        UsageError: one of them is blank.
    """
    for values in given:
        if values and not all(value.replace(",", " ").strip() for value in values):
            raise UsageError("an input or an option is empty", remedy="name it, or leave the option out")


def split(selectors: Sequence[str] | None) -> list[str]:
    """Selectors that were given repeatedly or with commas, one by one."""
    return [part.strip() for entry in selectors or () for part in entry.split(",") if part.strip()]
