"""The built-in policies as an earlier run read them, where no file of theirs has changed since."""

from __future__ import annotations

import pickle
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import starmap
from typing import TYPE_CHECKING

from policyeng import __version__, cache
from policyeng.bundle import analysis
from policyeng.bundle.files import FilesState, state_of
from policyeng.bundle.header_cache import READ_BY
from policyeng.facts.catalogue import built_in_root

if TYPE_CHECKING:
    from policyeng.bundle.loader import Bundle

#: Nanoseconds for which a file has to be unchanged: within the tick of a clock it may change again and look the same.
_SETTLED = 2_000_000_000
#: What is worked out of a bundle for every run, and stored with it.
_WORKED_OUT = ("asked_types", "clocked", "controls", "data_bytes", "facts", "places", "reaches", "spellings")


def built_in(read: Callable[[], Bundle]) -> Bundle:
    """Return the built-in bundle from the cache, or read it and store it.

    Raises:
        BundleError: as of `read`.
    """
    # Before any file is read: what changes meanwhile has another state, under which the entry is never found.
    state = state_of(built_in_root()) if cache.directory() is not None else None
    if state is None:
        return read()
    key = cache.key_of(
        "bundle", __version__, sys.version, cache.state_of_code(*READ_BY), str(built_in_root()), state.text
    )
    if stored := cache.load(key):
        bundle: Bundle = pickle.loads(stored[0])  # noqa: S301  # from a private file, its digest verified
        analysis.set_loader(partial(_analyses, bundle, stored[1]))
        return bundle
    bundle = read()
    if _is_settled(state):
        for name in _WORKED_OUT:
            getattr(bundle, name)
        analyses = list(starmap(analysis.analysis_of, _modules(bundle)))
        with suppress(TypeError, AttributeError, pickle.PicklingError):  # such as a value of a Python policy
            cache.store(key, [pickle.dumps(bundle, protocol=5), pickle.dumps(analyses, protocol=5)])
    return bundle


def _is_settled(state: FilesState) -> bool:
    return state.latest < time.time_ns() - _SETTLED


def _analyses(bundle: Bundle, stored: bytes | memoryview) -> None:
    """Keep the analyses of the modules: most runs need what was worked out of them alone."""
    for (source, rego_v0, _), known in zip(_modules(bundle), pickle.loads(stored), strict=True):  # noqa: S301  # as above
        analysis.add_analysis(source, rego_v0, known)


def _modules(bundle: Bundle) -> list[tuple[str, bool, str]]:
    return [(source, path in bundle.rego_v0, path) for path, source in bundle.modules]
