"""Random snapshots, from wild (any JSON under a known type) to nearly compliant (baselines with a few edits)."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

from policyeng.models import JsonObject, Snapshot
from policyeng.verify.cases import Baselines

SIZES = [
    "Standard_DS3_v2",
    "STANDARD_NC24RS_V3",
    "Standard_M128ms",
    "Standard_NC6",
    "Standard_ND40rs_v2",
    "No_Such",
    "",
]
WORDS = [
    "Enabled",
    "disabled",
    "LowPriority",
    "Dedicated",
    "production",
    "dev",
    "regulated",
    "AKS",
    "AmlCompute",
    "Managed",
]

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([*SIZES, *WORDS]),
    st.text(max_size=8).filter(lambda text: not any("\ud800" <= letter <= "\udfff" for letter in text)),
)
json_values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["id", "type", "properties", "tags", "vmSize", "subnet", "x"]), inner, max_size=4
        ),
    ),
    max_leaves=8,
)


def paths(document: Any, prefix: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every place in a document below its root."""
    members = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    found: list[tuple[str | int, ...]] = []
    for key, value in members:
        found += [(*prefix, key), *paths(value, (*prefix, key))]
    return found


@st.composite
def edited(draw: st.DrawFn, resource: JsonObject) -> JsonObject:
    """A resource with up to three of its places changed or removed; id and type stay."""
    changed = copy.deepcopy(resource)
    for _ in range(draw(st.integers(0, 3))):
        places = [place for place in paths(changed) if place[0] not in ("id", "type")]
        if not places:
            break
        *above, last = draw(st.sampled_from(places))
        holder: Any = changed
        for step in above:
            holder = holder[step]
        if draw(st.booleans()):
            del holder[last]
        else:
            holder[last] = draw(json_values)
    return changed


@st.composite
def wild(draw: st.DrawFn, types: list[str]) -> JsonObject:
    """A resource of a known type with anything inside."""
    kind = draw(st.sampled_from(types))
    name = draw(st.integers(0, 5))
    body: JsonObject = {"id": f"/subscriptions/s/resourceGroups/g/providers/{kind}/w{name}", "type": kind}
    return body | {
        key: draw(json_values) for key in draw(st.sets(st.sampled_from(["properties", "tags", "sku", "location"])))
    }


@st.composite
def snapshots(draw: st.DrawFn, baselines: Baselines) -> Snapshot:
    """A snapshot of edited baselines and wild resources, each id once."""
    resources = list(baselines.resources.values())
    chosen = draw(st.lists(st.sampled_from(resources), max_size=8, unique_by=lambda resource: resource["id"]))
    made = [draw(edited(resource)) for resource in chosen]
    types = sorted({resource["type"] for resource in resources})
    made += draw(st.lists(wild(types), max_size=2, unique_by=lambda resource: resource["id"].lower()))
    unique = {resource["id"].lower(): resource for resource in made}
    keep = draw(st.booleans())
    stated = {name: baselines.stated.get(name, []) for name in ("approvals", "workloads")} if keep else {}
    return Snapshot.model_validate({"resources": tuple(unique.values()), **stated})
