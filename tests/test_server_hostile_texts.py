"""No text in a request, wherever it is read, keeps the server from responding to others.

Python runs one thread at a time, and a regular expression is not interrupted: what counts is how much of the processor
the server takes for a request until its response is sent and logged. Others wait no longer, and the load of the
machine does not change it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.bundles import workspace, write
from tests.servers import POLICY
from tests.test_cli_serve import running

UID = "705ab4f5-6393-11e8-b7cc-42010a800002"
OPERATOR = {"group": "machinelearningservices.azure.com", "version": "v1api20240401", "kind": "Workspace"}
POD = {"group": "", "version": "v1", "kind": "Pod"}
JSON = {"content-type": "application/json"}
#: Seconds of the processor; a quadratic expression takes at least 10 for the shortest text, and a request takes 0.2.
MOST = 1.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, httpx.Client, Path]]:
    """The process of a server that logs every decision, as the manifests for Kubernetes have it, and its log."""
    folder = tmp_path_factory.mktemp("server")
    write(folder, {"bundle/area/limit.rego": POLICY})
    (folder / "state.json").write_text('{"snapshotVersion": 1}')
    options = ("--snapshot", "state.json", "--max-snapshot-age", "3600", "--decision-log", "log")
    with running(folder, *options) as (process, address), httpx.Client(base_url=address, timeout=60) as client:
        yield process.pid, client, folder / "log"


def review(kind: dict[str, str], text: str) -> bytes:
    """An admission review of an object with a hostile text where its users write."""
    version = f"{kind['group']}/{kind['version']}".removeprefix("/")
    metadata = {"name": "w", "namespace": "n", "annotations": {"note": text}}
    spec = {"location": "westeurope", "owner": {"name": "rg"}, "description": text}
    given = {"apiVersion": version, "kind": kind["kind"], "metadata": metadata, "spec": spec}
    request = {"uid": UID, "kind": kind, "operation": "CREATE", "name": "w", "namespace": "n", "object": given}
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()


#: Twice that is the length of bodies; a regular expression of Python reads such a text for seconds.
LONG = 2_000_000
BODIES = {
    "text": json.dumps(
        {"snapshotVersion": 1, "resources": [workspace("w", note="key " + "a-" * (LONG // 2))]}
    ).encode(),
    "names": json.dumps({"key " + "a-" * (LONG // 2): 1}).encode(),
    "lists": b"[" + b"[]," * (LONG * 2 // 3) + b"[]]",
    "numbers": b"[" + b"1," * LONG + b"1]",
}


def busy(process: int) -> float:
    """Seconds of the processor that a process has taken."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def lines(folder: Path) -> int:
    """Decisions that are in the log."""
    return sum(file.read_bytes().count(b"\n") for file in folder.rglob("*.jsonl"))


@pytest.mark.parametrize("kind", [OPERATOR, POD], ids=["evaluated", "not evaluated"])
@pytest.mark.parametrize("part", ["{{", "${", "a-a-", "eyJ", "password", "\n"])
@pytest.mark.parametrize("size", [30_000, 300_000, 700_000])
def test_a_request_is_done_soon(
    kind: dict[str, str], part: str, size: int, server: tuple[int, httpx.Client, Path]
) -> None:
    """It is read, evaluated, masked and logged; the text is in it twice, so that the longest has 1.4 MB."""
    process, client, log = server
    logged, before = lines(log), busy(process)

    response = client.post(
        "/v1/admission-review",
        content=review(kind, part * (size // len(part))),
        headers=JSON,
    )
    assert response.status_code == 200
    assert client.get("/healthz").status_code == 200
    while lines(log) == logged:
        assert busy(process) - before < MOST
        time.sleep(0.05)

    assert busy(process) - before < MOST


@pytest.mark.slow
@pytest.mark.parametrize("route", ["check", "admit"])
@pytest.mark.parametrize("body", BODIES)
def test_health_responds_while_a_request_is_at_work(
    body: str, route: str, server: tuple[int, httpx.Client, Path]
) -> None:
    """The server takes no more of the processor meanwhile than a second, however long the requests take."""
    process, client, _ = server
    sent: dict[str, Any] = {"content": BODIES[body], "headers": JSON, "timeout": 60}
    with ThreadPoolExecutor() as threads:
        attacks = [threads.submit(httpx.post, f"{client.base_url}/v1/{route}", **sent) for _ in range(2)]
        spent = []
        while not all(attack.done() for attack in attacks):
            before = busy(process)
            assert client.get("/healthz").status_code == 200
            spent.append(busy(process) - before)

    assert {attack.result().status_code for attack in attacks} <= {200, 422, 503}
    assert max(spent) < MOST
