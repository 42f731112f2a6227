"""A warm OPA server on loopback, queried over connections that stay open."""

from __future__ import annotations

import http.client
import random
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import orjson

from benchmarks import batch
from benchmarks.family import cpu_seconds
from benchmarks.preparing import Prepared
from benchmarks.verdicts import Verdicts, of_statements
from benchmarks.worker import peak_of
from policyeng.engines import Pair

_PATIENCE = 60.0


class Server:
    """OPA with a bundle, its store kept for reading, its log quiet."""

    def __init__(self, opa: Path, bundle: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self._process = subprocess.Popen(
            [
                *(str(opa), "run", "--server", "--addr", f"127.0.0.1:{self.port}", "--bundle", str(bundle)),
                *("--log-level", "error", "--skip-version-check", "--optimize-store-for-read-speed"),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=3600)
        self._wait()

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def _wait(self) -> None:
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                self._connection.request("GET", "/health")
                with self._connection.getresponse() as response:
                    response.read()
                    if response.status == 200:
                        return
            except OSError:
                self._connection.close()
            if time.monotonic() > until or self._process.poll() is not None:
                self.close()
                raise RuntimeError("the OPA server did not start")
            time.sleep(0.05)

    def send(self, method: str, path: str, body: bytes) -> bytes:
        """One request; gives the body of the response.

        Raises:
            RuntimeError: the server answers with an error.
        """
        self._connection.request(method, f"/v1/data/{path}", body, {"Content-Type": "application/json"})
        with self._connection.getresponse() as response:
            answer = response.read()
            if response.status >= 300:
                raise RuntimeError(f"OPA answered {response.status}: {answer[:300]!r}")
            return answer

    def peak_mb(self) -> float:
        """Return the peak memory of the server, in MB."""
        return peak_of(self._process.pid)

    def close(self) -> None:
        """End the server."""
        self._connection.close()
        self._process.terminate()
        self._process.wait(timeout=_PATIENCE)


class Batched:
    """The whole snapshot in one query; the body is made before, reading the answer is timed."""

    name = "OPA server, one batched query"
    sample: int | None = None

    def __init__(self, made: Prepared, server: Server) -> None:
        self._made, self._server = made, server
        self._body = orjson.dumps({"input": batch.document(made)})

    def _answer(self) -> Any:
        return orjson.loads(self._server.send("POST", batch.QUERY, self._body))["result"]

    def verdicts(self) -> Verdicts:
        """Return the verdicts of the batch."""
        answer = self._answer()
        return of_statements(answer["statements"], answer["decided"])

    def expected(self) -> Verdicts:
        """Return the verdicts of policyeng's engine."""
        return self._made.expected()

    def run(self) -> float:
        """Seconds from sending to the answer as values."""
        started = time.perf_counter()
        self._answer()
        return time.perf_counter() - started

    def processor(self) -> float:
        """Seconds of processors of the server."""
        return cpu_seconds(self._server.pid)

    def peak_mb(self) -> float:
        """Return the peak memory of the server."""
        return self._server.peak_mb()

    def close(self) -> None:
        """Do nothing: the caller that started the server stops it."""


class PerPair:
    """One query per pair, of a sample of the pairs when there are many.

    With `pushed`, the snapshot is stored in the server before (not timed), and a query names the pair; without, each
    query carries the policy's input, snapshot included, as anyone would send it for one resource.
    """

    def __init__(self, made: Prepared, server: Server, pushed: bool, most: int) -> None:
        how = "snapshot stored before" if pushed else "snapshot in each"
        self.name = f"OPA server, one query per pair, {how}"
        self._made, self._server = made, server
        count = len(made.work.pairs)
        self.positions = sorted(random.Random(count).sample(range(count), min(count, most)))
        self.sample = len(self.positions) if len(self.positions) < count else None
        self._questions = batch.questions_of(made)
        if pushed:
            server.send("PUT", "estate", orjson.dumps(self._questions.estate))
        self._path = batch.pushed_path if pushed else batch.input_path
        self._bodies = [self._body(made.work.pairs[position], pushed) for position in self.positions]

    def _body(self, pair: Pair, pushed: bool) -> tuple[str, bytes]:
        policy = self._made.ids[pair.policy]
        given = self._questions.naming(policy, pair) if pushed else self._questions.carrying(policy, pair)
        return self._path(policy), orjson.dumps({"input": given})

    def _answers(self) -> list[Any]:
        return [orjson.loads(self._server.send("POST", path, body)) for path, body in self._bodies]

    def verdicts(self) -> Verdicts:
        """Return the verdicts of the queries; no `result` means that the policy does not apply."""
        statements: list[dict[str, str]] = []
        decided = 0
        for position, answer in zip(self.positions, self._answers(), strict=True):
            pair = self._made.work.pairs[position]
            named = {"policy": self._made.ids[pair.policy], "resource": self._reported(pair)}
            decided += "result" in answer
            for role, parts in answer.get("result", {}).items():
                statements += [
                    named | {"role": role, "msg": part["msg"], "path": part.get("path", "")} for part in parts
                ]
        return of_statements(statements, decided)

    def _reported(self, pair: Pair) -> str:
        return self._made.estate.subjects[pair.subject].reported_id

    def expected(self) -> Verdicts:
        """Return the verdicts of policyeng's engine for the pairs of the sample."""
        return self._made.expected(self.positions)

    def run(self) -> float:
        """Seconds for all pairs, reckoned from those of the sample."""
        started = time.perf_counter()
        self._answers()
        return (time.perf_counter() - started) * len(self._made.work.pairs) / len(self.positions)

    def processor(self) -> float:
        """Seconds of processors of the server, reckoned for all pairs."""
        return cpu_seconds(self._server.pid) * len(self._made.work.pairs) / len(self.positions)

    def peak_mb(self) -> float:
        """Return the peak memory of the server."""
        return self._server.peak_mb()

    def close(self) -> None:
        """Do nothing: the caller that started the server stops it."""
