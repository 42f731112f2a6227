"""`policyeng.facts.serving`: how much room a model needs, and which machine serves it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import orjson
import pytest

from policyeng.facts import Facts
from policyeng.facts.serving import has_room, serving_machine

FOLDER = Path(__file__).resolve().parents[1] / "policies" / "facts"
FACTS = Facts.from_document({"vm_sizes": orjson.loads((FOLDER / "vm_sizes" / "data.json").read_bytes())})
MEMORIES = sorted({row["memory_gib"] for row in FACTS.document["vm_sizes"].values()})


@pytest.mark.parametrize("memory", MEMORIES)
def test_exactly_half_again_is_enough_whatever_the_fraction(memory: float) -> None:
    """Two thirds of the memory, worked out either way, fit; the next number that a document can state does not."""
    need = memory / 1.5
    assert has_room(memory, need)
    assert not has_room(memory, math.nextafter(need, math.inf))
    assert has_room(memory, round(need, 4) - 0.0001)
    assert not has_room(memory, round(need, 4) + 0.0001)


@pytest.mark.parametrize("machines", [["Standard_D2_v3", "Standard_D8_v3", "Standard_D4_v3"], ["Standard_D8_v3"]])
def test_the_largest_node_of_a_cluster_serves(machines: list[str]) -> None:
    """The order of the pools plays no part."""
    pools = [{"vmSize": size} for size in machines]
    cluster = {"type": "Microsoft.ContainerService/managedClusters", "properties": {"agentPoolProfiles": pools}}
    workload = {"sourceId": "/D", "computeId": "/C", "target": "kubernetes"}
    machine = serving_machine(workload, {"/d": {"type": "x"}, "/c": cluster}, FACTS)
    assert machine.size is not None
    assert machine.size.name == "Standard_D8_v3"


@pytest.mark.parametrize(
    "workload", [{}, {"sourceId": None}, {"sourceId": "/gone"}, {"sourceId": "/d", "computeId": 7}]
)
def test_what_is_unknown_is_explained(workload: dict[str, Any]) -> None:
    """No shape of a workload raises."""
    machine = serving_machine(workload, {"/d": {"id": "/d", "type": "x"}}, FACTS)
    assert machine.size is None
    assert machine.reason
