"""Settings, selected bundle, time and other values that commands compute from their options."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from policyeng.bundle import Bundle
from policyeng.bundle.policy_selection import selected
from policyeng.cli.fast_path import IN_FORCE
from policyeng.configuration import ENVIRONMENT_PREFIX, Settings, candidates, resolve
from policyeng.context import bundle_of
from policyeng.errors import BundleError, UsageError, suggest_nearest


def find_known(given: str, known: Iterable[str], noun: str) -> str:
    """Return the known name that equals the given one, ignoring case.

    Args:
        given: on the command line.
        known: in lower case.
        noun: for the message, in the singular.

    Raises:
        UsageError: the name is unknown; the message has the nearest name and all known ones.
    """
    names = list(known)
    if given.lower() in names:
        return given.lower()
    raise UsageError(
        f"unknown {noun} `{given}`{suggest_nearest(given, names)}", remedy=f"choose from {', '.join(names)}"
    )


def plain_format(given: str, *others: str) -> str:
    """Return the output format of a command that prints text, JSON or one of `others`.

    Raises:
        UsageError: the format is unknown.
    """
    return find_known(given, ("text", "json", *others), "format")


def settings_of(flags: Mapping[str, object], config: Path | None) -> Settings:
    """Return the settings of a run in this directory and environment.

    Raises:
        UsageError: a setting is unknown or not valid.
    """
    settings = resolve(flags, os.environ, Path.cwd(), config)
    return settings.model_copy(update={"variables": IN_FORCE.get()}) if IN_FORCE.get() else settings


def settings_files(config: Path | None) -> tuple[Path, ...]:
    """Return the files that the settings of a run here come from; they need not exist."""
    named = config or os.environ.get(f"{ENVIRONMENT_PREFIX}CONFIG")
    return (Path.cwd() / named,) if named else tuple(candidates(Path.cwd()))


def selected_bundle(
    policies: Sequence[Path] | None,
    settings: Settings,
    given_data: Sequence[str] | None,
    select: Sequence[str] | None,
    ignore: Sequence[str] | None,
    *,
    require_policies: bool = True,
) -> Bundle:
    """Load the bundle with the selected policies; without `require_policies`, it may have none, as a library.

    Raises:
        BundleError, UsageError: as for `bundle_of`; a selector is empty or matches nothing; or no policy is left.
    """
    require_text(select, ignore)
    whole = bundle_of(policies or (), settings, given_data or (), require_policies=require_policies)
    left = selected(whole, split(select), split(ignore))
    if whole.policies and not left.policies:
        raise BundleError("no policy is left after `--select` and `--ignore`", remedy="change one of them")
    return left


def moment_of(text: str | None, option: str = "--as-of", *, starts: bool = False) -> datetime:
    """Return the time of an option, or now without one; a time without a zone is in UTC.

    Args:
        text: a time, or a date, which means the end of that day.
        option: for the message.
        starts: a date means the start of that day.

    Raises:
        UsageError: the text is not a time, or out of range.
    """
    if not text:
        return datetime.now(UTC)
    try:
        moment = datetime.fromisoformat(text)
        if "T" not in text.upper() and len(text) <= len("2026-12-31") and not starts:
            moment = moment.replace(hour=23, minute=59, second=59)
    except ValueError:
        raise UsageError(
            f"`{text}` is not a valid time for {option}", remedy="use ISO 8601, such as 2026-06-01T00:00:00Z"
        ) from None
    try:
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except OverflowError:
        raise UsageError(f"`{text}` is out of range for {option}", remedy="use a year from 1 to 9999") from None


def require_text(*given: Sequence[str] | None) -> None:
    """Refuse blank values, such as those of empty shell variables: they would silently widen the run.

    Raises:
        UsageError: a value is blank.
    """
    for values in given:
        if values and not all(value.replace(",", " ").strip() for value in values):
            raise UsageError("an input or option value is empty", remedy="pass a value, or remove the option")


def split(selectors: Sequence[str] | None) -> list[str]:
    """Split repeated or comma-separated selectors into a flat list."""
    return [part.strip() for entry in selectors or () for part in entry.split(",") if part.strip()]
