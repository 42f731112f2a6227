"""Who serves: policyeng and OPA with the same policies and the same state, each with its requests.

Nothing is measured before the responses were compared: what policyeng states about the changed resource by the
policies that OPA evaluates, and everything that both state about the whole document.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import httpx
import orjson

from benchmarks import admission, batch
from benchmarks.load import Request
from benchmarks.opa_server import Batched, Server
from benchmarks.preparing import MOMENT, Prepared, prepared, selections, whole_bundle
from benchmarks.timing import DifferentVerdictsError
from benchmarks.verdicts import Statement, of_statements
from policyeng.models import JsonObject, Snapshot, lowered
from policyeng.sources import load_snapshot

#: From here on our response is the same each time; before are its id, the age of the state and the clock.
_STEADY = ',"changes":'
_LISTS = ("denied", "warned", "undecided", "standing")


class Policyeng:
    """A `policyeng serve` that logs errors only, as the server of OPA does."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "policyeng", "serve", "--port", "0", "--log-level", "error", *options],
            cwd=folder,  # where there is no configuration
            stdout=subprocess.PIPE,
            text=True,
        )
        first_line = "" if self._process.stdout is None else self._process.stdout.readline()
        self.url = first_line.strip().rpartition(" ")[2]
        if not self.url.startswith("http"):
            self.close()
            raise RuntimeError("policyeng serve did not start")

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def close(self) -> None:
        """End the server."""
        self._process.terminate()
        self._process.wait(timeout=60)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class Contestant:
    """A server, and its requests in turn."""

    name: str
    pid: int
    url: str
    requests: Sequence[Request]


@dataclass(frozen=True, slots=True)
class Servers:
    """Those of both tasks."""

    changes: Sequence[Contestant]
    documents: Sequence[Contestant]


@contextmanager
def serving(opa: Path, folder: Path, file: Path) -> Iterator[Servers]:
    """Start the servers, whose responses agree.

    Raises:
        DifferentVerdictsError: they do not.
    """
    *_, rego = selections().values()
    made, snapshot = prepared(rego, file), load_snapshot(file)
    few = ",".join(made.ids)
    with ExitStack() as stack:
        state = ("--snapshot", str(file))
        every = stack.enter_context(Policyeng(folder, *state))
        same = stack.enter_context(Policyeng(folder, *state, "--select", few))
        server = Server(opa, admission.write_bundle(made, folder / "bundle"))
        stack.callback(server.close)
        state_body = orjson.dumps(
            {**batch.questions_of(made).estate, "as_of": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
        )
        server.send("PUT", "estate", state_body)
        count, total = len(made.ids), len(whole_bundle().policies)
        yield Servers(
            _of_changes(made, snapshot, server, {f"policyeng, all {total} policies": every, _named(count): same}),
            _of_documents(made, server, {_named(count): same}),
        )


def _named(count: int) -> str:
    return f"policyeng, the {count} policies in Rego"


def _of_changes(
    made: Prepared, snapshot: Snapshot, server: Server, ours: Mapping[str, Policyeng]
) -> Sequence[Contestant]:
    """Return changes of each kind except deletions, for which OPA has no answer."""
    given = {name: change for name, change in admission.changes(snapshot).items() if not isinstance(change, str)}
    questions = {name: admission.question(made, snapshot, change) for name, change in given.items()}
    bodies = {name: orjson.dumps({"input": question}) for name, question in questions.items()}
    theirs = {name: server.send("POST", admission.QUERY, body) for name, body in bodies.items()}
    if not any(map(_query_statements, theirs.values())):
        raise DifferentVerdictsError("OPA says nothing of any change, so that saying the same proves nothing")
    contestants = []
    for title, one in ours.items():
        url = f"{one.url}/v1/admit"
        requests = []
        for name, change in given.items():
            # OPA keeps nothing of a query. A dry run is the equivalent: the server keeps nothing, too.
            body = orjson.dumps({"change": change, "dryRun": True})
            answer = _posted(url, body)
            stated, expected = (
                _decision_statements(orjson.loads(answer), questions[name]),
                _query_statements(theirs[name]),
            )
            if stated != expected:
                raise DifferentVerdictsError(f"{title}, {name}: {len(stated)} statements instead of {len(expected)}")
            requests.append(Request(body, answer[answer.index(_STEADY) :]))
        contestants.append(Contestant(title, one.pid, url, requests))
    url = f"http://127.0.0.1:{server.port}/v1/data/{admission.QUERY}"
    requests = [Request(bodies[name], theirs[name].decode().strip()) for name in given]
    return [*contestants, Contestant("OPA server, the policies of the kind", server.pid, url, requests)]


def _of_documents(made: Prepared, server: Server, ours: Mapping[str, Policyeng]) -> Sequence[Contestant]:
    contestants = []
    body = orjson.dumps({"snapshot": orjson.loads(made.file.read_bytes()), "asOf": MOMENT})
    for title, one in ours.items():
        url = f"{one.url}/v1/check"
        answer = _posted(url, body)
        _require(title, made, of_statements(_report_statements(orjson.loads(answer)), None).statements)
        contestants.append(Contestant(title, one.pid, url, [Request(body, answer.strip())]))
    _require("OPA", made, Batched(made, server).verdicts().statements)
    body_of_batch = orjson.dumps({"input": batch.document(made)})
    request = Request(body_of_batch, server.send("POST", batch.QUERY, body_of_batch).decode().strip())
    url = f"http://127.0.0.1:{server.port}/v1/data/{batch.QUERY}"
    return [*contestants, Contestant("OPA server, one batched query", server.pid, url, [request])]


def _posted(url: str, body: bytes) -> str:
    answer = httpx.post(url, content=body, headers={"Content-Type": "application/json"}, timeout=60)
    answer.raise_for_status()
    return answer.text


def _require(name: str, made: Prepared, stated: Mapping[Statement, int]) -> None:
    expected = made.expected().statements
    if stated != expected:
        raise DifferentVerdictsError(f"{name}: {len(stated)} statements on the document instead of {len(expected)}")


def _decision_statements(decision: JsonObject, question: JsonObject) -> set[tuple[str, str, str, str]]:
    """Return the findings of a decision for the changed resource, of the policies that OPA evaluates."""
    changed = lowered(question["resource"]["id"])
    findings = [finding for name in _LISTS for finding in decision[name]]
    own = [one for one in findings if lowered(one["resource"]) == changed and one["policy"] in question["policies"]]
    return {(entry["policy"], entry["role"], entry["msg"], entry["path"]) for entry in _statements(own)}


def _query_statements(answer: bytes) -> set[tuple[str, str, str, str]]:
    stated: Mapping[str, Mapping[str, Any]] = orjson.loads(answer)["result"]
    return {
        (policy, role, part["msg"], part.get("path", ""))
        for policy, verdict in stated.items()
        for role, parts in verdict.items()
        for part in parts
    }


def _report_statements(report: JsonObject) -> Iterator[JsonObject]:
    yield from _statements(report["findings"])


def _statements(findings: Sequence[JsonObject]) -> Iterator[JsonObject]:
    for finding in findings:
        for role, parts in (("deny", finding["denials"]), ("unknown", finding["unknowns"])):
            for part in parts:
                yield {
                    "policy": finding["policy"],
                    "resource": finding["resource"],
                    "role": role,
                    "msg": part["msg"],
                    "path": part["path"],
                }
