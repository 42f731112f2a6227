"""Ten times as many requests at once as a server has places for, sent to a real one, again and again."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import httpx
import orjson
import pytest

from benchmarks.worker import resident_of
from tests.bundles import workspace, write
from tests.servers import POLICY
from tests.test_cli_serve import running
from tests.test_server_running import wait_for
from tests.test_server_workers import metrics_of

WAITING = 8
PLACES = 2 + WAITING
#: MB that a server may use more after the last flood than after the first. What its allocator keeps levels off at 15
#: more, for any number of floods; the bodies alone of all requests would be 30.
GROWTH = 24


class Response(NamedTuple):
    """The response on a connection."""

    status: int
    headers: str
    body: bytes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a bundle of one policy."""
    write(tmp_path, {"bundle/area/limit.rego": POLICY})
    return tmp_path


def document(failing: bool) -> bytes:
    """A snapshot that takes long enough for the places to be taken; the last of its workspaces fails or not."""
    resources = [workspace(f"w{number}", x=1) for number in range(200)]
    return orjson.dumps({"snapshotVersion": 1, "resources": [*resources, workspace("last", x=2 if failing else 1)]})


def request(body: bytes) -> bytes:
    """The bytes of a request to evaluate, after which the server ends the connection."""
    head = "POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def flood(address: str, requests: Sequence[bytes]) -> list[Response]:
    """The responses to requests that are sent at the same moment, each on a connection of its own."""
    host, _, port = address.removeprefix("http://").partition(":")
    connections = [await asyncio.open_connection(host, int(port)) for _ in requests]

    async def exchange(content: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Response:
        writer.write(content)
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        first, _, headers = head.decode().partition("\r\n")
        return Response(int(first.split()[1]), headers.lower(), body)

    async with asyncio.timeout(30):
        return list(
            await asyncio.gather(*(exchange(one, *ends) for one, ends in zip(requests, connections, strict=True)))
        )


@pytest.mark.slow
def test_a_flood_is_served_or_refused_and_leaves_nothing_behind(folder: Path) -> None:
    """Each request has a response, none is wrong, the places are used, memory stays, and then all is as before."""
    bodies = [document(failing=False), document(failing=True)]
    requests = [request(bodies[number % 2]) for number in range(10 * PLACES)]
    seen: Counter[int] = Counter()
    resident: list[float] = []
    with running(folder, "--workers", "2", "--waiting", str(WAITING)) as (server, address):
        for _ in range(10):
            responses = asyncio.run(flood(address, requests))
            for number, response in enumerate(responses):
                result = orjson.loads(response.body)
                if response.status == 200:
                    assert result["exitCode"] == number % 2
                else:
                    assert (response.status, result["detail"]) == (429, "too many requests at a time")
                    assert "retry-after: 1" in response.headers
            statuses = Counter(response.status for response in responses)
            assert statuses[200] >= PLACES
            assert statuses[429] > 0
            seen += statuses
            resident.append(resident_of(server.pid))

        after = [httpx.post(f"{address}/v1/check", json=orjson.loads(body)) for body in bodies * 2]
        assert [response.json()["exitCode"] for response in after] == [0, 1, 0, 1]
        assert all(response.elapsed.total_seconds() < 2 for response in after)
        assert httpx.get(f"{address}/readyz").json() == {"ready": True, "reasons": [], "faults": []}
        # The numbers of the other worker are up to 0.1 s old.
        settled = {("policyeng_queue_requests",): 0, ("policyeng_queue_overdue",): 0, ("policyeng_body_bytes",): 0}
        wait_for(lambda: settled.items() <= metrics_of(address).items())
        refused = metrics_of(address)["policyeng_refused_requests_total", "check", "429"]

    assert seen.total() == 10 * len(requests)
    assert refused == seen[429]
    assert resident[-1] - resident[0] < GROWTH, resident
