"""How long a decision on one change takes compared with one query to an OPA server with the same policies and state.

`python -m benchmarks.admission` prints a table. OPA gets the smallest query that a hook could send: policies in Rego
that evaluate the changed resource, with that resource in the query and the state before in the server. It learns
neither what else the change affects nor what was wrong before; the decision states both, by all policies.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

import orjson

from benchmarks import batch, estates
from benchmarks.opa_server import Server
from benchmarks.preparing import AS_OF, MOMENT, Prepared, prepared, selections, whole_bundle
from policyeng.admission import AdmissionOptions, AdmissionSession, changes_of
from policyeng.admission.changes import apply_changes, apply_in_order, index_resources
from policyeng.evaluation.matching import plan
from policyeng.evaluation.prepared_snapshot import estate_of
from policyeng.facts.ids import fold_id, workspace_of
from policyeng.models import JsonObject, Snapshot, lowered
from policyeng.sources import load_snapshot

#: The statements by policy, each as `{role: [part]}`.
QUERY = "bench_admission/statements"

_MODULE = """\
package bench_admission

given(policy) := {
	"resource": input.resource,
	"workspace": input.workspace,
	"snapshot": data.estate.snapshot,
	"parameters": data.estate.parameters[policy],
	"as_of": data.estate.as_of,
}
"""

_OF_POLICY = """\

statements["{id}"] := verdict if {
	"{id}" in input.policies
	one := given("{id}")
	verdict := data.bench_policies["{id}"].verdict with input as one
}
"""


@dataclass(frozen=True)
class Measured:
    """One kind of change: seconds of each repetition.

    Attributes:
        processor: of decisions, processor time.
        wall: of decisions, as they pass.
        opa: of queries, as they pass.
    """

    name: str
    processor: Sequence[float]
    wall: Sequence[float]
    opa: Sequence[float]


def changes(snapshot: Snapshot) -> dict[str, JsonObject | str]:
    """One change of each kind."""

    def first(kind: str) -> JsonObject:
        return next(one for one in snapshot.resources if lowered(one["type"]).endswith(kind))

    compute, deployment = first("workspaces/computes"), first("onlineendpoints/deployments")
    workspace, network = first("machinelearningservices/workspaces"), first("virtualnetworks")
    tags, closed = {"tags": {"environment": "dev"}}, {"properties": {"publicNetworkAccess": "Disabled"}}
    opened = {"properties": {"publicNetworkAccess": "Enabled"}}
    space = {"properties": {"addressSpace": {"addressPrefixes": ["10.9.0.0/16"]}}}
    return {
        "a tag of a compute": {"operation": "patch", "id": compute["id"], "patch": tags},
        "a new deployment": {**deployment, "id": f"{deployment['id']}-new"},
        "a setting of a workspace": {"operation": "patch", "id": workspace["id"], "patch": closed},
        "a workspace that opens": {"operation": "patch", "id": workspace["id"], "patch": opened},
        "the tags of a workspace": {"operation": "patch", "id": workspace["id"], "patch": tags},
        "a network": {"operation": "patch", "id": network["id"], "patch": space},
        "a compute that goes": compute["id"],
    }


def measured(made: Prepared, snapshot: Snapshot, server: Server, rounds: int) -> Iterator[Measured]:
    """Decisions and queries in turns, kind by kind."""
    server.send("PUT", "estate", orjson.dumps(batch.questions_of(made).estate))
    basis, options = AdmissionSession(whole_bundle(), snapshot), AdmissionOptions(AS_OF)
    for name, change in changes(snapshot).items():
        body = orjson.dumps({"input": question(made, snapshot, change)})
        ours: Callable[[], object] = partial(basis.decide, change, options)
        theirs: Callable[[], object] = partial(_answer, server, body)
        for warming in (ours, theirs):
            warming()
        processor, wall, opa = [], [], []
        for _ in range(rounds):
            began = time.process_time()
            wall.append(_seconds(ours))
            processor.append(time.process_time() - began)
            opa.append(_seconds(theirs))
        yield Measured(name, sorted(processor), sorted(wall), sorted(opa))


def _seconds(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def _answer(server: Server, body: bytes) -> object:
    return orjson.loads(server.send("POST", QUERY, body))["result"]


def question(made: Prepared, snapshot: Snapshot, change: JsonObject | str) -> JsonObject:
    """Return the query to OPA about a change: the resource after it, or before it for a deletion.

    The policies are those that evaluate it, as the plan has them, so that OPA need not find them.
    """
    existing = index_resources(snapshot)
    made_of_it = changes_of(change)
    ((key, after),) = apply_in_order(made_of_it, existing, snapshot).becomes.items()
    there = snapshot if after.resource is None else apply_changes(snapshot, made_of_it).snapshot
    estate = estate_of(there, made.bundle.facts)
    planned = [(column.policy, number) for column in plan(made.bundle, estate) for number in column.all()]
    resource = after.resource or existing[key]
    evaluating = {policy for policy, number in planned if estate.subjects[number].document["id"] == resource["id"]}
    return {
        "resource": resource,
        "workspace": existing.get(workspace_of(key) or ""),
        "policies": [made.bundle.policies[number].id for number in sorted(evaluating)],
        "at": MOMENT,
    }


def write_bundle(made: Prepared, folder: Path) -> Path:
    """Write the policies and the query for OPA."""
    batch.write_bundle(made.bundle, folder)
    text = _MODULE + "".join(_OF_POLICY.replace("{id}", policy.id) for policy in made.bundle.policies)
    (folder / "bench_admission.rego").write_text(text, encoding="utf-8")
    manifest = orjson.loads((folder / ".manifest").read_bytes())
    manifest["roots"].append("bench_admission")
    (folder / ".manifest").write_bytes(orjson.dumps(manifest))
    return folder


def other_clock(snapshot: Snapshot, rounds: int) -> Sequence[float]:
    """Processor seconds of a decision at a clock at which nothing was decided yet."""
    basis, change = AdmissionSession(whole_bundle(), snapshot), changes(snapshot)["a network"]
    seconds = []
    for number in range(rounds):
        began = time.process_time()
        basis.decide(change, AdmissionOptions(AS_OF + timedelta(seconds=number)))
        seconds.append(time.process_time() - began)
    return sorted(seconds[1:])


def after_another(snapshot: Snapshot, rounds: int) -> Sequence[float]:
    """Processor seconds of a decision on a tag of a compute, with a compute as a cluster has it in the state."""
    basis, change = AdmissionSession(whole_bundle(), snapshot), changes(snapshot)["a tag of a compute"]
    existing = index_resources(snapshot)[fold_id(changes_of(change)[0].id)]
    seconds = []
    for _ in range(rounds):
        began = time.process_time()
        basis.decide(
            change,
            AdmissionOptions(AS_OF),
            {**existing, "properties": {**existing["properties"], "description": "held"}},
        )
        seconds.append(time.process_time() - began)
    return sorted(seconds[1:])


def rendered(rows: Sequence[Measured], further: Mapping[str, Sequence[float]], size: int) -> str:
    """Return the figures as a table, in milliseconds."""
    lines = [
        f"Decisions on a snapshot of {size} resources with {len(whole_bundle().policies)} policies, milliseconds.",
        "",
        "| change | processor, best | p50 | p99 | wall p50 | OPA query, wall p50 | OPA / ours |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        wall, opa = statistics.median(row.wall), statistics.median(row.opa)
        figures = [row.processor[0], statistics.median(row.processor), row.processor[int(len(row.processor) * 0.99)]]
        cells = [f"{seconds * 1e3:.2f}" for seconds in (*figures, wall, opa)]
        lines.append(f"| {row.name} | {' | '.join(cells)} | {opa / wall:.1f}x |")
    for name, taken in further.items():
        lines += ["", f"{name}, processor: best {taken[0] * 1e3:.2f}, p50 {statistics.median(taken) * 1e3:.2f}."]
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.admission", description=__doc__)
    parser.add_argument("--opa", type=Path, default=estates.ROOT / ".tools/bin/opa")
    parser.add_argument("--size", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=200)
    given: Mapping[str, object] = vars(parser.parse_args())
    size, rounds = int(str(given["size"])), int(str(given["rounds"]))
    with tempfile.TemporaryDirectory(prefix="bench-") as place:
        file = Path(place) / "snapshot.json"
        file.write_bytes(estates.document(size))
        snapshot = load_snapshot(file)
        *_, rego = selections().values()
        made = prepared(rego, file)
        server = Server(Path(str(given["opa"])).resolve(), write_bundle(made, Path(place) / "bundle"))
        try:
            rows = list(measured(made, snapshot, server, rounds))
        finally:
            server.close()
        further = {
            "The first decision at another clock": other_clock(snapshot, max(rounds // 10, 3)),
            "A tag of a compute after another change of it": after_another(snapshot, max(rounds, 3)),
        }
        print(rendered(rows, further, size))


if __name__ == "__main__":
    main()
