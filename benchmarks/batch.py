"""The fastest form we know in which OPA and Conftest evaluate a whole snapshot: one document, one query.

The document has the snapshot and per policy the pairs to evaluate, as planned by policyeng; so the others need no
planning. A generated module evaluates each pair with the policy's own rules and its own input, one `with` per pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import orjson

from benchmarks.preparing import MOMENT, Prepared
from policyeng.bundle import Bundle, Policy
from policyeng.engines import Pair
from policyeng.models import JsonObject

#: The answer of the batch: how many pairs were decided, and whatever is not clean.
QUERY = "bench/answer"

# Nothing here is under a `with`, so OPA evaluates it once for all pairs; positions instead of copies keep it small.
_BATCH = """\
package bench

by_id[id] := input.snapshot.resources[position] if some position, id in input.ids

by_type[kind] := [input.snapshot.resources[position] | some position in positions] if {
	some kind, positions in input.kinds
}

snapshot := object.union(input.snapshot, {"by_id": by_id, "by_type": by_type})

subjects := array.concat(
	input.snapshot.resources,
	array.concat(input.snapshot.workloads, input.snapshot.approvals),
)

workspace(position) := null if position < 0

workspace(position) := subjects[position] if position >= 0

given(policy, pair) := {
	"resource": subjects[pair[0]],
	"workspace": workspace(pair[1]),
	"snapshot": snapshot,
	"parameters": input.parameters[policy],
	"as_of": input.as_of,
}

statements := [statement |
	some policy, entries in verdicts
	some entry in entries
	some role, parts in entry[1]
	some part in parts
	resource := input.reported[entry[0]]
	statement := {"policy": policy, "resource": resource, "role": role, "msg": part.msg, "path": path(part)}
]

path(part) := object.get(part, "path", "")

answer := {"decided": sum([count(entries) | some entries in verdicts]), "statements": statements}
"""

_OF_POLICY = """\

verdicts["{id}"] := [[pair[0], verdict] |
	some pair in input.pairs["{id}"]
	one := given("{id}", pair)
	verdict := data.bench_policies["{id}"].verdict with input as one
]
"""

_VERDICT = """\
package bench_policies["{id}"]

verdict := {{{roles}}} if {condition}
"""

# One pair of a snapshot that is in the store, indices and all: a query keeps nothing for the next one.
_PAIR = """\
package bench_pair

workspace := null if input.workspace < 0

workspace := data.estate.subjects[input.workspace] if input.workspace >= 0

given := {
	"resource": data.estate.subjects[input.subject],
	"workspace": workspace,
	"snapshot": data.estate.snapshot,
	"parameters": data.estate.parameters[input.policy],
	"as_of": data.estate.as_of,
}
"""

_PAIR_OF_POLICY = """\

verdict["{id}"] := found if {
	input.policy == "{id}"
	one := given
	found := data.bench_policies["{id}"].verdict with input as one
}
"""

_MAIN = """\
package main

deny contains part if some part in data.bench.statements
"""


@dataclass(frozen=True)
class Questions:
    """Queries about one pair: to a server that has the estate, or with everything in the query."""

    estate: JsonObject

    def naming(self, policy: str, pair: Pair) -> JsonObject:
        """Positions for `bench_pair`."""
        return {"policy": policy, "subject": pair.subject, "workspace": pair.workspace}

    def carrying(self, policy: str, pair: Pair) -> JsonObject:
        """Return the input of a policy in the form that the documentation of policies gives."""
        subjects = self.estate["subjects"]
        return {
            "resource": subjects[pair.subject],
            "workspace": subjects[pair.workspace] if pair.workspace >= 0 else None,
            "snapshot": self.estate["snapshot"],
            "parameters": self.estate["parameters"][policy],
            "as_of": self.estate["as_of"],
        }


def questions_of(made: Prepared) -> Questions:
    """Return the estate of one snapshot with its indices."""
    given = document(made)
    snapshot = given["snapshot"]
    resources = snapshot["resources"]
    by_type = {kind: [resources[position] for position in positions] for kind, positions in given["kinds"].items()}
    indexed = {**snapshot, "by_id": dict(zip(given["ids"], resources, strict=True)), "by_type": by_type}
    subjects = [*resources, *snapshot["workloads"], *snapshot["approvals"]]
    return Questions({"snapshot": indexed, "subjects": subjects, "parameters": given["parameters"], "as_of": MOMENT})


def pushed_path(policy: str) -> str:
    """Where the verdict on a pair is that the input names."""
    return f"bench_pair/verdict/{policy}"


def input_path(policy: str) -> str:
    """Where the verdict on a pair is that the input carries."""
    return f"bench_policies/{policy}/verdict"


def document(made: Prepared) -> JsonObject:
    """Return the one input document; `ids` and `kinds` are the indices of the snapshot, by position of the resource."""
    pairs: dict[str, list[list[int]]] = {policy.id: [] for policy in made.bundle.policies}
    for pair in made.work.pairs:
        pairs[made.bundle.policies[pair.policy].id].append([pair.subject, pair.workspace])
    kinds: dict[str, list[int]] = {}
    for position, resource in enumerate(made.work.snapshot.resources):
        kinds.setdefault(resource["type"].lower(), []).append(position)
    by_policy = zip(made.bundle.policies, made.work.parameters, strict=True)
    return {
        "snapshot": made.work.document,
        "ids": [resource["id"].lower() for resource in made.work.snapshot.resources],
        "kinds": kinds,
        "reported": [subject.reported_id for subject in made.estate.subjects],
        "pairs": pairs,
        "parameters": {policy.id: values for policy, values in by_policy},
        "as_of": MOMENT,
    }


def modules(bundle: Bundle) -> dict[str, str]:
    """Return the generated modules by file name."""
    batch = _BATCH + "".join(_OF_POLICY.replace("{id}", policy.id) for policy in bundle.policies)
    verdicts = {f"bench_policies/{policy.id}.rego": _verdict(policy) for policy in bundle.policies}
    pair = _PAIR + "".join(_PAIR_OF_POLICY.replace("{id}", policy.id) for policy in bundle.policies)
    return {"bench/bench.rego": batch, "bench_pair/pair.rego": pair, "main/main.rego": _MAIN, **verdicts}


def write_bundle(bundle: Bundle, folder: Path) -> Path:
    """Write the policies without their tests, their data and the generated modules, as OPA and Conftest read them."""
    made = {**dict(bundle.modules), **modules(bundle)}
    for name, text in made.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / "data.json").write_bytes(bundle.data_bytes)
    roots = sorted({PurePosixPath(name).parts[0] for name in made} | set(bundle.data))  # all but `estate`
    (folder / ".manifest").write_bytes(orjson.dumps({"roots": roots, "rego_version": 1}))
    return folder


def _verdict(policy: Policy) -> str:
    rules = dict(policy.rules)
    roles = ", ".join(f'"{role}": {path}' for role, path in rules.items() if role != "applies")
    return _VERDICT.format(id=policy.id, roles=roles, condition=rules.get("applies", "true"))
