"""The names of members that policies look for, as they spell them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from policyeng.bundle.analysis import ModuleAnalysis
from policyeng.bundle.header import PolicyHeader
from policyeng.bundle.header_validators import WORKSPACE
from policyeng.bundle.policy_types import Policy
from policyeng.facts.arm_casing import Spellings
from policyeng.later import lazy_pattern
from policyeng.models import WORKSPACE_TYPE, lowered
from policyeng.parsing.json_pointer import keys_of

#: The name of a member with more than one word, such as `vmSize`, alone and as a text of Python.
_MIXED = lazy_pattern(r"[a-z][a-z0-9]*[A-Z][A-Za-z0-9]*")
_MIXED_TEXT = lazy_pattern(rf"[\"'/]({_MIXED.pattern})(?=[\"'/])")


def spellings_of(policies: Iterable[Policy], modules: Iterable[ModuleAnalysis]) -> Spellings:
    """Return by lower-case type of resources the names of members that policies look for, by themselves in lower case.

    Those of the empty type are for all: a policy does not state what the resource is that another names.

    Args:
        policies: their headers declare names, or the text of those in Python has them.
        modules: those in Rego.

    Of two spellings of one name the first in the alphabet is taken, so that it is the same one every time.
    """
    found: dict[str, set[str]] = {"": {word for module in modules for word in module.words if _MIXED.fullmatch(word)}}
    for policy in policies:
        header = policy.header
        if policy.python is not None:
            found[""].update(_MIXED_TEXT.findall(policy.python.text.decode(errors="replace")))
        for arm_type, pointer in _pointers(header):
            of_workspace = pointer.startswith(WORKSPACE)
            found.setdefault(WORKSPACE_TYPE if of_workspace else lowered(arm_type), set()).update(keys_of(pointer))
    return {
        arm_type: {lowered(name): name for name in sorted(names, reverse=True)} for arm_type, names in found.items()
    }


def _pointers(header: PolicyHeader) -> Iterator[tuple[str, str]]:
    for target in header.judges:
        yield from ((target.type, pointer) for pointer in header.inspects)
        yield from ((target.type, pointer) for one in header.consults for pointer in one.through[:1])
    for one in header.consults:
        yield from ((one.type, pointer) for pointer in (*one.reads, *one.through[1:], *filter(None, [one.naming])))
