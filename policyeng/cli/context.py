"""What the commands judge with: the settings, and the bundle that they let in."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from policyeng.bundle import Bundle
from policyeng.bundle.policy_selection import selected
from policyeng.cli.environment import ENVIRONMENT, IN_FORCE
from policyeng.configuration import ENVIRONMENT_PREFIX, Settings, candidates, resolve
from policyeng.context import bundle_of
from policyeng.errors import BundleError, UsageError, nearest
from policyeng.report.phrases import count
from policyeng.sources import FileWalk, whole_paths


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
    settings = resolve(flags, os.environ, Path.cwd(), config, flags_elsewhere=ENVIRONMENT)
    return settings.model_copy(update={"variables": IN_FORCE.get()}) if IN_FORCE.get() else settings


def walk_of(settings: Settings, others: Iterable[str | Path | None], *, gitignore: bool) -> FileWalk:
    """What is left out of the directories of a run; `others` are the values of options that name files."""
    named = [other.removeprefix("@") if isinstance(other, str) else other for other in others]
    named += [*settings.exemptions, settings.verification_key]
    return FileWalk(settings.exclude, gitignore, whole_paths(named))


def settings_files(config: Path | None) -> tuple[Path, ...]:
    """The files that the settings of a run here are read from, or would be if they were there."""
    named = config or os.environ.get(f"{ENVIRONMENT_PREFIX}CONFIG")
    return (Path.cwd() / named,) if named else tuple(candidates(Path.cwd()))


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


def moment_of(text: str | None, option: str = "--as-of") -> datetime:
    """The time that an option names, now without one; a time without a zone is in UTC.

    Raises:
        UsageError: it is none, or out of range.
    """
    if not text:
        return datetime.now(UTC)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"`{text}` is no time for {option}", remedy="write 2026-06-01T00:00:00Z") from None
    try:
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except OverflowError:
        raise UsageError(
            f"`{text}` is out of range for {option}", remedy="write a time of the years 1 to 9999"
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
