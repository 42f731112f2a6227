"""Each kind of change, alone, with others and after others, is decided as a full evaluation decides it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from benchmarks import estates
from benchmarks.admission import changes
from benchmarks.preparing import whole_bundle
from policyeng.admission import AdmissionOptions, AdmissionSession, changes_of, decided_wholly
from policyeng.facts.ids import fold_id
from policyeng.models import Change, JsonObject, Operation, Snapshot, lowered
from policyeng.sources import load_snapshot

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
#: Days later at which the decisions are made, in this order: approvals end meanwhile, and time goes back.
DAYS = (0, 1, 45, 400, 0)
#: What is known of the estate: everything, some lists, or not some of them.
KNOWN: dict[str, JsonObject] = {
    "everything": {},
    "some lists": {
        "covers": tuple(
            f"Microsoft.MachineLearningServices/{kind} at /"
            for kind in ("workspaces", "workspaces/computes", "workspaces/onlineEndpoints")
        )
    },
    "all but computes": {"incomplete": ("Microsoft.MachineLearningServices/workspaces/computes at /: not allowed",)},
}


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """A small estate with a resource of each kind."""
    file = tmp_path_factory.mktemp("estate") / "estate.json"
    file.write_bytes(estates.document(120))
    return load_snapshot(file)


def moved(state: Snapshot, identity: str, name: str, other: str) -> list[Any]:
    """A resource with all that is below it under another id: what a new name or another subscription comes to."""
    there = [one for one in state.resources if f"{lowered(one['id'])}/".startswith(f"{lowered(identity)}/")]
    written = json.loads(json.dumps(there).replace(name, other))
    return [identity, *written]


def kinds(state: Snapshot) -> Iterator[tuple[str, list[Any]]]:
    """The kinds of change by name, each as a list of changes that are made together."""
    single = changes(state)
    yield from ((name, [change]) for name, change in single.items())
    workspace = next(one for one in state.resources if lowered(one["type"]).endswith("services/workspaces"))
    compute = next(one for one in state.resources if lowered(one["type"]).endswith("workspaces/computes"))
    endpoint = next(one for one in state.resources if lowered(one["type"]).endswith("onlineendpoints"))
    subscription, name = workspace["id"].split("/")[2], workspace["id"].rpartition("/")[2]
    yield "several at once", [change for change in single.values() if not isinstance(change, str)]
    yield "a workspace that goes", [workspace["id"]]
    yield "an endpoint that goes", [endpoint["id"]]
    yield "a workspace with another name", moved(state, workspace["id"], f"workspaces/{name}", f"workspaces/{name}-2")
    yield "a workspace in another subscription", moved(state, workspace["id"], subscription, "f" * len(subscription))
    unread = {"/properties/properties/vmSize": "not known", "/tags": "not known"}
    yield (
        "values that are not known",
        [Change(operation=Operation.REPLACE, id=compute["id"], resource=compute, unreadable=unread)],
    )
    yield (
        "a resource that is not known at all",
        [Change(operation=Operation.REPLACE, id=endpoint["id"], resource=endpoint, unreadable={"": "not known"})],
    )


@pytest.mark.parametrize("known", KNOWN)
def test_each_kind_is_decided_as_by_a_full_evaluation(estate: Snapshot, known: str) -> None:
    """One session decides on all kinds, before and after others, at changing times."""
    state, bundle = estate.model_copy(update=KNOWN[known]), whole_bundle()
    random = Random(3)  # noqa: S311  # not for cryptography
    session, every = AdmissionSession(bundle, state), dict(kinds(state))
    existing = {fold_id(resource["id"]) for resource in state.resources}
    for number, (name, listed) in enumerate(every.items()):
        options = AdmissionOptions(AS_OF + timedelta(days=DAYS[number % len(DAYS)]), standing=number % 3 == 0)
        earlier = every[random.choice([*every])] if number % 2 else []
        made = [change for change in earlier if not isinstance(change, str) or fold_id(change) in existing]
        for before in ([], made) if made else ([],):
            whole = decided_wholly(bundle, state, changes_of(listed), options, changes_of(before))
            decision = session.decide(listed, options, before)
            assert decision.model_dump_json() == whole.model_dump_json(), (name, bool(before))
