"""How policies find other resources by what a subject names, or in the scope that it lies in: `consults` of headers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from policyeng.bundle.header import Consulted
from policyeng.evaluation.estate import Subject
from policyeng.facts.ids import folded_id, scopes_of


def scope_of(subject: Subject, consulted: Consulted) -> str:
    """The scope that counts for a judged subject where what is read has to lie in one."""
    return subject.home if consulted.within == "resource" else next(iter(scopes_of(subject.home)), "")


@lru_cache(maxsize=1 << 14)
def name_below(arm_id: str) -> str:
    """What an id is below its last provider, such as `microsoft.network/virtualnetworks/v/subnets/s`.

    Where a resource that is not deployed yet will lie nobody may say, and ids of roles come with and without a
    subscription: so resources are told apart by this.
    """
    return folded_id(arm_id).rpartition("/providers/")[2]


def last_part(arm_id: str) -> str:
    """The last part of an id, which is how roles are named also."""
    return folded_id(arm_id).rpartition("/")[2]


def with_above(name: str) -> Iterator[str]:
    """A name and those of the resources that it lies in: types and names come in pairs below the provider."""
    parts = name.split("/")
    yield name
    for length in range(3, len(parts), 2):
        yield "/".join(parts[:length])
