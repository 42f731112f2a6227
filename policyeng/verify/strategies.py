"""Hypothesis strategies for the examples of a bundle, for property-based tests.

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
    """Return examples of all kinds: snapshots with parameters and a clock, from wild to nearly compliant."""
    return _RANDOMS.map(_source(bundle).drawn)


def wild(bundle: Bundle) -> st.SearchStrategy[Example]:
    """Return examples with resources of types that policies select, and of others, with any JSON inside."""
    return _of_kind(bundle, "wild")


def plausible(bundle: Bundle) -> st.SearchStrategy[Example]:
    """Return examples with realistic workspaces: sizes and roles of the catalog, regions, every compute and target."""
    return _of_kind(bundle, "plausible")


def nearly_compliant(bundle: Bundle) -> st.SearchStrategy[Example]:
    """Return examples that are the compliant baselines with a few edits, most of them those of cases."""
    return _of_kind(bundle, "nearly-compliant")


def estates(bundle: Bundle) -> st.SearchStrategy[Example]:
    """Return examples with several plausible workspaces, statements and observations about them, and exemptions.

    Statements and observations are approvals, declared workloads, role assignments and definitions, networks, quotas,
    metrics and principals.
    """
    return _of_kind(bundle, "estate")


def exemptions(bundle: Bundle, example: Example) -> st.SearchStrategy[tuple[Exemption, ...]]:
    """Return exemptions of the bundle's policies at or above resources of an example, active at its clock or not."""
    return _RANDOMS.map(lambda random: _source(bundle).exemptions(random, example))


def snapshots(bundle: Bundle) -> st.SearchStrategy[Snapshot]:
    """Return the snapshots of examples."""
    return examples(bundle).map(lambda example: example.snapshot)


def parameters(bundle: Bundle) -> st.SearchStrategy[dict[str, JsonObject]]:
    """Return parameters that fit the JSON Schemas of the policies, by policy id."""
    source = _source(bundle)
    return _RANDOMS.map(lambda random: source.parameters(random, {}))


def moments(bundle: Bundle) -> st.SearchStrategy[datetime]:
    """Return clocks, many of them at a moment when facts or approvals change."""
    return _RANDOMS.map(_source(bundle).moment)


def _of_kind(bundle: Bundle, kind: Kind) -> st.SearchStrategy[Example]:
    return _RANDOMS.map(partial(_source(bundle).drawn, kind=kind))


def _source(bundle: Bundle) -> Examples:
    """Return the generator of a bundle, shared by all its strategies, because it computes the vocabulary only once."""
    return _SOURCES.setdefault(id(bundle), Examples(bundle))


#: Generators by the identity of the bundle, which the generator keeps alive.
_SOURCES: WeakValueDictionary[int, Examples] = WeakValueDictionary()
#: Hypothesis controls every draw from these generators, so it can replay and shrink the examples.
_RANDOMS = st.randoms(use_true_random=False)
