"""The options for OPA, in a module that is fast to import."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson

from policyeng.bundle import Policy
from policyeng.engines.embedded import convert_result
from policyeng.engines.request import EvaluationRequest, Judgement, Pair
from policyeng.errors import EngineError
from policyeng.frozen import field, frozen
from policyeng.models import JsonObject, lowered


@frozen
class OpaOptions:
    """The OPA server that evaluates, and how to reach it.

    Attributes:
        url: an OPA server, such as `https://opa.example.com:8181`; empty for a private server of this process.
        token: the bearer token for `url`; it is never printed.
        ca_file: PEM file of the authorities to trust for the server's certificate, instead of the public ones.
        client_cert: PEM file of our certificate and its key, for a server that requires one.
        timeout: seconds to connect, at most 10, and between bytes of a response.
        binary: the `opa` program for a private server; by default `opa` from the `PATH`, or `.tools/bin` of a checkout.
        bundle: the name under which the server at `url` has loaded the bundle itself; empty to search for it.
        push: whether to push the bundle to the server at `url`; None to push if the server has not loaded a policyeng
            bundle itself.
    """

    url: str = ""
    token: str = field(default="", repr=False)
    ca_file: Path | None = None
    client_cert: Path | None = None
    timeout: float = 300.0
    binary: Path | None = None
    bundle: str = ""
    push: bool | None = None


_HEAD = """\
package {package}

# The data on the server is read in the same transaction as the verdicts, so it cannot change between them.
answer := {{"standing": standing, "verdicts": verdicts}}

standing := {standing}

# A snapshot that is used more than once is stored on the server.
given := input if not input.stored

given := data.policyeng.snapshots[input.stored] if input.stored

subjects := array.concat(
	array.concat(given.snapshot.resources, object.get(given.snapshot, "workloads", [])),
	array.concat(
		object.get(given.snapshot, "approvals", []),
		array.concat(object.get(given.snapshot, "documents", []), [null]),
	),
)

snapshot := object.union(given.snapshot, {{"by_id": by_id, "by_type": by_type}})

by_id[key] := given.snapshot.resources[position] if some key, position in given.ids

by_type[kind] := [resource | some position in positions; resource := given.snapshot.resources[position]] if {{
	some kind, positions in given.types
}}
"""
_INPUTS = {
    "policy": """{
		"resource": subjects[pair[0]],
		"workspace": subjects[pair[1]],
		"snapshot": snapshot,
		"parameters": given.parameters["%s"],
		"as_of": given.as_of,
	}""",
    "document": "subjects[pair[0]]",
    "review": """{
		"review": object.union({"object": subjects[pair[0]]}, pair[2]),
		"parameters": given.parameters["%s"],
	}""",
}
_VERDICTS = """
verdicts["{number}"] := [encoded |
	some pair in input.pairs["{number}"]
	encoded := [json.marshal(result) | result := result_{number}] with input as {given}
]
"""
_RESULT = """
result_{number} := {{
	"deny": [result | result := {deny}],
	"unknown": [result | result := {unknown}],
	"exception": [result | {exceptions}],
}}{condition}
"""
#: Exceptions are looked for when something is denied.
_EXCEPTIONS = "{deny} != set(); {deny} != []; result := {exception}"
_NOT_APPLICABLE = """
result_{number} := {{"applies": [applies]}} if {{
	applies := {applies}
	applies != true
}}
"""
_MEMBERS = ["deny", "exception", "unknown"]
_NOTHING = '{"deny":[[]],"exception":[[]],"unknown":[[]]}'


class Batch:
    """A module that evaluates all active Rego policies; its name contains a hash of its content.

    Args:
        policies: the active Rego policies.
        prefix: the dotted path of the bundle's modules below `data`; empty for `data` itself.
        standing: a Rego expression for the identity of the loaded bundle; if it is undefined, there is no result.
    """

    def __init__(self, policies: Sequence[Policy], prefix: str, standing: str) -> None:
        self.numbers = {policy.id: str(number) for number, policy in enumerate(policies)}
        body = "".join(_rules_of(policy, number, prefix) for number, policy in enumerate(policies))
        name = hashlib.sha256(f"{standing}\0{body}".encode()).hexdigest()[:32]
        self.package = f"policyeng.batch_{name}"
        self.source = _HEAD.format(package=self.package, standing=standing) + body

    @property
    def path(self) -> str:
        """The path of the result below `data`."""
        return f"{self.package.replace('.', '/')}/answer"

    def input_of(self, work: EvaluationRequest) -> JsonObject:
        """Return the part of the input that is the same for every query about a snapshot."""
        # OPA makes the indices by id and by type of the positions.
        snapshot = {name: value for name, value in work.document.items() if name not in ("by_id", "by_type")}
        ids: dict[str, int] = {}
        types: dict[str, list[int]] = {}
        for position, resource in enumerate(snapshot["resources"]):
            if isinstance(identity := resource.get("id"), str):
                ids[lowered(identity)] = position
            if isinstance(kind := resource.get("type"), str):
                types.setdefault(lowered(kind), []).append(position)
        return {
            "snapshot": snapshot,
            "ids": ids,
            "types": types,
            "parameters": {
                self.numbers[policy.id]: work.parameters[index]
                for index, policy in enumerate(work.bundle.policies)
                if policy.rules
            },
            "as_of": work.as_of.isoformat().replace("+00:00", "Z"),
        }

    def pairs_of(self, work: EvaluationRequest, pairs: Sequence[Pair]) -> dict[str, list[list[object]]]:
        """Return the pairs by the number of their policy; without a workspace, the position after the last subject.

        For a policy that evaluates reviews, the pair also has the other members of the review.
        """
        grouped: dict[str, list[list[object]]] = {}
        for pair in pairs:
            workspace = pair.workspace if pair.workspace >= 0 else len(work.subjects)
            policy = work.bundle.policies[pair.policy]
            review = [_review(work.documents[pair.subject])] if policy.input_form == "review" else []
            grouped.setdefault(self.numbers[policy.id], []).append([pair.subject, workspace, *review])
        return grouped

    def read(self, work: EvaluationRequest, pairs: Sequence[Pair], verdicts: object) -> list[Judgement]:
        """Return the results in the order of the pairs.

        Raises:
            EngineError: the response does not have one verdict for each pair.
        """
        expected = {number: len(members) for number, members in self.pairs_of(work, pairs).items()}
        if not isinstance(verdicts, dict) or not all(isinstance(result, list) for result in verdicts.values()):
            raise EngineError("could not decide: the response of the OPA server is not a list of verdicts per policy")
        given = {number: len(result) for number, result in verdicts.items() if result}
        if given != expected:
            message = f"the OPA server returned {sum(given.values())} verdicts for {sum(expected.values())} pairs"
            if sum(given.values()) == sum(expected.values()):
                message += ", but for other pairs"
            raise EngineError(f"could not decide: {message}", remedy="see the log of the server")
        rest = {number: iter(result) for number, result in verdicts.items()}
        policies = [work.bundle.policies[pair.policy] for pair in pairs]
        return [_parse_verdict(next(rest[self.numbers[policy.id]]), policy) for policy in policies]


def _review(document: object) -> JsonObject:
    """Return the members of a Gatekeeper review other than its object, as for the creation of a document."""
    stated = _text(document, "apiVersion")
    group, _, version = stated.partition("/") if "/" in stated else ("", "", stated)
    metadata = document.get("metadata") if isinstance(document, dict) else None
    return {
        "kind": {"group": group, "version": version, "kind": _text(document, "kind")},
        "name": _text(metadata, "name"),
        "namespace": _text(metadata, "namespace"),
        "operation": "CREATE",
    }


def _text(document: object, key: str) -> str:
    value = document.get(key) if isinstance(document, dict) else None
    return value if isinstance(value, str) else ""


def _rules_of(policy: Policy, number: int, prefix: str) -> str:
    paths = {role: _below(path, prefix) for role, path in policy.rules}
    given = _INPUTS[policy.input_form]
    text = _VERDICTS.format(number=number, given=given % number if "%s" in given else given)
    applies = f' if {paths["applies"]} == json.unmarshal("true")' if "applies" in paths else ""
    deny, unknown = paths.get("deny", "set()"), paths.get("unknown", "set()")
    exception = paths.get("exception")
    exceptions = _EXCEPTIONS.format(deny=deny, exception=exception) if exception else "result := set()"
    text += _RESULT.format(number=number, deny=deny, unknown=unknown, exceptions=exceptions, condition=applies)
    return text + (_NOT_APPLICABLE.format(number=number, applies=paths["applies"]) if "applies" in paths else "")


def _below(path: str, prefix: str) -> str:
    return f"data.{prefix}.{path.removeprefix('data.')}" if prefix else path


def _parse_verdict(verdict: object, policy: Policy) -> Judgement:
    """Parse a verdict: a list with the policy's result as JSON text, or an empty list if the policy does not apply."""
    if verdict == [_NOTHING]:
        return Judgement()
    if verdict == []:
        return Judgement(applies=False)
    rules: Mapping[str, str] = {str(role): path for role, path in policy.rules}
    if not (isinstance(verdict, list) and len(verdict) == 1 and isinstance(verdict[0], str)):
        raise EngineError("could not decide: a verdict of the OPA server is not one string")
    try:
        result = orjson.loads(verdict[0])
    except ValueError:
        return Judgement(error="evaluation: the result of the policy has a number that JSON readers do not accept")
    if isinstance(result, dict) and list(result) == ["applies"]:
        wrong = result["applies"] != [False]
        return (
            Judgement(error=f"evaluation: {rules['applies']} is not a boolean") if wrong else Judgement(applies=False)
        )
    if (
        not isinstance(result, dict)
        or sorted(result) != _MEMBERS
        or not all(isinstance(of, list) for of in result.values())
    ):
        raise EngineError("could not decide: a verdict of the OPA server has an unexpected form")
    exceptions = result.pop("exception")
    if exceptions not in ([], [[]]):
        result["exception"] = exceptions[0]
    for role in ("deny", "unknown"):
        listed = result[role][0] if result[role] else []
        if not isinstance(listed, list) or not all(isinstance(element, dict | str) for element in listed):
            return Judgement(error=f"evaluation: {rules[role]} is not a set or list of objects or strings")
        result[role] = listed
    return convert_result(result, policy) if result["deny"] or result["unknown"] else Judgement()
