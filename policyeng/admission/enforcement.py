"""Find the enforcement mode of a failure, from the most specific setting for its policy and scope."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from policyeng.bundle import Bundle
from policyeng.bundle.policy_selection import selected
from policyeng.errors import UsageError
from policyeng.facts.ids import is_at_or_under, segments
from policyeng.models import Enforcement, Mode

_STRICTEST = tuple(Mode)


class _Setting(NamedTuple):
    """A setting with the ids of its policies; no ids mean all policies."""

    policies: frozenset[str]
    scope: str
    mode: Mode


class Modes:
    """The mode of each policy in each scope."""

    def __init__(self, bundle: Bundle, enforcements: Sequence[Enforcement]) -> None:
        """Read settings in any order.

        Raises:
            UsageError: a setting names a policy that is not in the bundle, or a scope that is not an ARM id.
        """
        self._settings = [_setting(bundle, entry) for entry in enforcements]

    def of(self, policy: str, home: str) -> Mode:
        """Return the mode for a policy's failures at an ARM id; `deny` by default.

        The setting with the longest scope applies, then the one with the fewest policies, then the strictest.
        """
        near = [
            setting
            for setting in self._settings
            if (not setting.policies or policy in setting.policies)
            and (not setting.scope or is_at_or_under(home, setting.scope))
        ]
        return min(near, key=_rank).mode if near else Mode.DENY


def _rank(setting: _Setting) -> tuple[int, float, int]:
    depth = len(segments(setting.scope) or ()) if setting.scope else -1
    return -depth, len(setting.policies) or float("inf"), _STRICTEST.index(setting.mode)


def _setting(bundle: Bundle, entry: Enforcement) -> _Setting:
    if entry.scope and segments(entry.scope) is None:
        raise UsageError(
            f"`{entry.scope}` is not an ARM id", place=("modes",), remedy="name a scope such as `/subscriptions/...`"
        )
    everything = entry.policy == "*"
    policies = () if everything else (policy.id for policy in selected(bundle, [entry.policy]).policies)
    return _Setting(frozenset(policies), entry.scope, entry.mode)
