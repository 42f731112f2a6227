"""Bundles of tests without the built-in libraries that they do not name: to compile those takes longer than most tests.

Bundles of commands that are run as processes, and the built-in policies, are compiled as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from policyeng.bundle import Bundle
from policyeng.engines import embedded
from policyeng.rego.syntax import Module

_NAMED = re.compile(r"\bdata\.lib\.(\w+)")
#: What may name any of them.
_ANY = re.compile(r"\bdata\b(?!\.\w)|\bdata\.lib\b(?!\.\w)")
_PACKAGE = re.compile(r"^package lib\.(\w+)", re.MULTILINE)


def compile_only_named_libraries() -> None:
    """Have the embedded engine leave out, of the libraries lent to a bundle, those that it cannot reach."""
    whole: Callable[[Bundle], list[Module]] = embedded.modules_of
    embedded.modules_of = lambda bundle: whole(replace(bundle, modules=_reached(bundle)))


def _reached(bundle: Bundle) -> tuple[tuple[str, str], ...]:
    lent = {path: text for path, text in bundle.modules if "lib" in bundle.lent and path.startswith("lib/")}
    wanted = {path for path, _ in bundle.modules if path not in lent}
    waiting = [text for path, text in bundle.modules if path in wanted]
    while waiting:
        text = waiting.pop()
        if _ANY.search(text):
            return tuple(bundle.modules)
        names = set(_NAMED.findall(text))
        for path, library in lent.items():
            if path not in wanted and names & set(_PACKAGE.findall(library)):
                wanted.add(path)
                waiting.append(library)
    return tuple((path, text) for path, text in bundle.modules if path in wanted)
