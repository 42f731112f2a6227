"""Hypothesis strategies of a bundle's examples: what `policyeng verify` draws in bulk, for property-based tests.

They need the extra `verify` (`pip install 'policyeng[verify]'`).
"""

from __future__ import annotations

from datetime import datetime

from policyeng.bundle import Bundle
from policyeng.models import JsonObject, Snapshot
from policyeng.verify.drawing.examples import Example, Examples

try:
    from hypothesis import strategies as st
except ImportError as error:
    remedy = "pip install 'policyeng[verify]'"
    raise ImportError(f"`policyeng.verify.strategies` needs hypothesis, which is not installed; {remedy}") from error

__all__ = ["examples", "moments", "parameters", "snapshots"]


def examples(bundle: Bundle) -> st.SearchStrategy[Example]:
    """Snapshots with parameters and a clock, from wild over plausible to nearly compliant."""
    return _RANDOMS.map(Examples(bundle).drawn)


def snapshots(bundle: Bundle) -> st.SearchStrategy[Snapshot]:
    """Snapshots alone."""
    return examples(bundle).map(lambda example: example.snapshot)


def parameters(bundle: Bundle) -> st.SearchStrategy[dict[str, JsonObject]]:
    """By policy id, parameters within each one's JSON Schema."""
    source = Examples(bundle)
    return _RANDOMS.map(lambda random: source.parameters(random, {}))


def moments(bundle: Bundle) -> st.SearchStrategy[datetime]:
    """Clocks, many of them at a moment when facts or approvals change."""
    return _RANDOMS.map(Examples(bundle).moment)


#: Every draw from these generators is hypothesis's own, so it replays and shrinks examples as it does any other.
_RANDOMS = st.randoms(use_true_random=False)
