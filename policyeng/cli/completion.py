"""Completion of option values in shells: ids, areas, controls, formats, profiles and estates.

Completion only reads headers: Python of policies is not run. What cannot be read completes nothing, since a message
would garble the command line that the user is typing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from typer import Context

from policyeng.errors import PolicyengError

if TYPE_CHECKING:
    from policyeng.bundle import Bundle

_Found = list[tuple[str, str]]


def choose(names: Iterable[str]) -> Callable[[str], _Found]:
    """Return the completion of one of some names."""
    known = list(names)

    def complete(incomplete: str) -> _Found:
        return _matching(((name, "") for name in known), incomplete)

    return complete


def choose_output(names: Iterable[str]) -> Callable[[str], _Found]:
    """Return the completion of the format of `FORMAT=PATH`."""
    return choose([f"{name}=" for name in names])


def complete_selectors(ctx: Context, incomplete: str) -> _Found:
    """Complete the last of comma-separated ids, areas, controls and severities."""
    before, comma, last = incomplete.rpartition(",")
    return [(f"{before}{comma}{name}", text) for name, text in _safely(lambda: _selectors(_bundle(ctx)), last)]


def complete_ids(ctx: Context, incomplete: str) -> _Found:
    """Complete policy ids, with their titles."""
    return _safely(lambda: ((entry.id, entry.header.title) for entry in _bundle(ctx).policies), incomplete)


def complete_profiles(ctx: Context, incomplete: str) -> _Found:
    """Complete the names of profiles, with their titles."""
    from policyeng.bundle.policy_selection import profiles_of

    return _safely(lambda: ((profile.name, profile.title) for profile in profiles_of(_bundle(ctx))), incomplete)


def complete_estates(ctx: Context, incomplete: str) -> _Found:
    """Complete the names of configured estates."""
    from policyeng.cli.context import settings_of

    config = ctx.params.get("config")
    return _safely(lambda: ((one.name, "") for one in settings_of({}, config).estates), incomplete)


def _selectors(bundle: Bundle) -> Iterator[tuple[str, str]]:
    from policyeng.models import Severity

    yield from sorted({(entry.area, "area") for entry in bundle.policies})
    yield from ((str(severity), "severity") for severity in Severity)
    active = {entry.id for entry in bundle.policies}
    yield from sorted(
        {(one, "control") for known, named in bundle.controls.items() if known in active for one in named}
    )
    yield from ((entry.id, entry.header.title) for entry in bundle.policies)


def _bundle(ctx: Context) -> Bundle:
    from policyeng.bundle import load_bundle

    return load_bundle(*map(Path, ctx.params.get("policy") or ()))


def _safely(find: Callable[[], Iterable[tuple[str, str]]], incomplete: str) -> _Found:
    try:
        return _matching(find(), incomplete)
    except (PolicyengError, OSError):
        return []


def _matching(found: Iterable[tuple[str, str]], incomplete: str) -> _Found:
    return [(name, text) for name, text in found if name.lower().startswith(incomplete.lower())]
