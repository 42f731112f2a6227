"""Nodes whose VM size Azure has withdrawn, or is about to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from policyeng.facts.catalogue import Facts, Retirement
from policyeng.facts.computes import NodeSize
from policyeng.models import JsonObject
from policyeng.named import NamedTuple


class RetiringNode(NamedTuple):
    """A place that states a VM size, the size, and its retirement, which has come or comes within a notice."""

    path: str
    size: str
    retirement: Retirement

    @property
    def shown(self) -> JsonObject:
        """The size and the day from which on it is not offered, as a denial states them."""
        return {"size": self.size, "retires": self.retirement.date.isoformat()}


def retiring_nodes(
    nodes: Iterable[NodeSize], facts: Facts, notice_days: int, as_of: datetime
) -> Iterator[RetiringNode]:
    """Yield the nodes whose size is retired at an aware moment, or retires within some days (the last one counts).

    A size that the catalogue does not know, and what is no text, is passed over.
    """
    for node in nodes:
        retirement = facts.retirement(node.size) if isinstance(node.size, str) else None
        if retirement is not None and retirement.comes_within(notice_days, as_of):
            yield RetiringNode(node.path, str(node.size), retirement)
