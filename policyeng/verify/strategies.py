"""Hypothesis strategies of a bundle's examples: what `policyeng verify` draws in bulk, for property-based tests.

They need the extra `verify` (`pip install 'policyeng[verify]'`).
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from weakref import WeakValueDictionary

from policyeng.bundle import Bundle
from policyeng.models import Exemption, JsonObject, Snapshot
from policyeng.verify.generators.examples import Example, Examples, Kind

try:
    from hypothesis import strategies as st
except ImportError as error:
    remedy = "pip install 'policyeng[verify]'"
    raise ImportError(f"`policyeng.verify.strategies` needs hypothesis, which is not installed; {remedy}") from error

__all__ = [
    "estates",
    "examples",
    "exemptions",
    "moments",
    "nearly_compliant",
    "parameters",
    "plausible",
    "snapshots",
    "wild",
]


def examples(bundle: Bundle) -> st.SearchStrategy[Example]:
    """Snapshots with parameters and a clock, from wild over plausible to nearly compliant."""
    return _RANDOMS.map(_source(bundle).drawn)


def wild(bundle: Bundle) -> st.SearchStrategy[Example]:
    """Resources of the types that are judged, and of others, with any JSON inside."""
    return _of_kind(bundle, "wild")


def plausible(bundle: Bundle) -> st.SearchStrategy[Example]:
    """Workspaces as organisations have them: sizes and roles of the catalogue, regions, every compute and target."""
    return _of_kind(bundle, "plausible")


def nearly_compliant(bundle: Bundle) -> st.SearchStrategy[Example]:
    """The compliant estate of the baselines with a few edits, most of them those of cases of the policies."""
    return _of_kind(bundle, "nearly-compliant")


def estates(bundle: Bundle) -> st.SearchStrategy[Example]:
    """Several plausible workspaces with what is stated and observed beside them, and with exemptions.

    That is approvals, declared workloads, role assignments and definitions, networks, quotas, metrics and principals.
    """
    return _of_kind(bundle, "estate")


def exemptions(bundle: Bundle, example: Example) -> st.SearchStrategy[tuple[Exemption, ...]]:
    """Exemptions of the bundle's policies at or above resources of an example, in force at its clock or not."""
    return _RANDOMS.map(lambda random: _source(bundle).exemptions(random, example))


def snapshots(bundle: Bundle) -> st.SearchStrategy[Snapshot]:
    """Snapshots alone."""
    return examples(bundle).map(lambda example: example.snapshot)


def parameters(bundle: Bundle) -> st.SearchStrategy[dict[str, JsonObject]]:
    """By policy id, parameters within each one's JSON Schema."""
    source = _source(bundle)
    return _RANDOMS.map(lambda random: source.parameters(random, {}))


def moments(bundle: Bundle) -> st.SearchStrategy[datetime]:
    """Clocks, many of them at a moment when facts or approvals change."""
    return _RANDOMS.map(_source(bundle).moment)


def _of_kind(bundle: Bundle, kind: Kind) -> st.SearchStrategy[Example]:
    return _RANDOMS.map(partial(_source(bundle).drawn, kind=kind))


def _source(bundle: Bundle) -> Examples:
    """What draws for a bundle: one for all of its strategies, because it learns what the policies speak of once."""
    return _SOURCES.setdefault(id(bundle), Examples(bundle))


#: By the identity of the bundle, which the source keeps alive while it is itself.
_SOURCES: WeakValueDictionary[int, Examples] = WeakValueDictionary()
#: Every draw from these generators is hypothesis's own, so it replays and shrinks examples as it does any other.
_RANDOMS = st.randoms(use_true_random=False)
