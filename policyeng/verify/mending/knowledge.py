"""What is known of a policy when edits for it are looked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from policyeng.bundle import Bundle, Policy
from policyeng.facts.catalogue import VmSize
from policyeng.models import Evaluation, JsonObject
from policyeng.strict.merge_patch import merged
from policyeng.verify.cases import Baselines, read_cases
from policyeng.verify.drawing.vocabulary import vocabulary_of

#: Longer tables of names, such as that of all VM sizes, are no list of what a policy asks for.
_MOST_NAMES = 64


@dataclass(frozen=True)
class Known:
    """A policy on its own, what it says of the snapshot, and the values that it speaks of.

    Attributes:
        compliant: the baselines, and the resources that its passing cases judge.
        words: the texts and numbers of its code and of what that imports.
        own: those of its own code and header.
        sizes: the VM sizes in the short tables of facts that it reads.
    """

    alone: Bundle
    before: Evaluation
    compliant: Sequence[JsonObject]
    words: Sequence[object]
    own: Sequence[object]
    sizes: Sequence[VmSize]


def known_of(policy: Policy, alone: Bundle, baselines: Baselines, before: Evaluation) -> Known:
    """What is known of a policy; `alone` is the bundle of it, and `before` what that says of the snapshot."""
    file, resources = read_cases(policy), baselines.resources
    passing = [case for verdict, _, case in file.named() if verdict == "pass"] if file else []
    judged = [merged(resources[case.baseline or ""], case.patch) for case in passing if case.baseline in resources]
    words = vocabulary_of(alone, ()).words[policy.id]
    names = [name for table in words.tables if len(table) <= _MOST_NAMES for name in table]
    sizes = [size for name in names if (size := alone.facts.size(name)) is not None]
    return Known(alone, before, [*resources.values(), *judged], [*words.own, *words.borrowed], words.own, sizes)
