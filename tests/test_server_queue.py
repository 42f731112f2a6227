"""Requests at work and waiting are bounded; time and clients that go away give places back."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from policyeng.context import EvaluationSetup
from policyeng.server.app import application
from policyeng.server.file_watcher import Watched
from policyeng.server.service import Queue, Service
from tests.bundles import workspace
from tests.servers import post, service_of, setup_of, with_client


class Gated(Watched[EvaluationSetup]):
    """The active setup, which is available when a gate opens."""

    def __init__(self, setup: EvaluationSetup) -> None:
        super().__init__("policies", lambda: setup, ())
        self.setup = setup
        self.open = threading.Event()
        self.reads = 0

    @property
    def current(self) -> EvaluationSetup:
        """The active setup, once the gate is open."""
        self.reads += 1
        assert self.open.wait(60)
        return self.setup


@pytest.fixture
def gate(tmp_path: Path) -> Gated:
    """A closed one."""
    return Gated(setup_of(tmp_path))


def gated(gate: Gated, **options: Any) -> Service:
    """A server behind it, with two threads."""
    service = service_of(gate.setup, **options)
    service.setup = gate
    return service


async def until(condition: Callable[[], bool]) -> None:
    """Wait for it, not for ever."""
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.005)


def test_requests_beyond_the_limit_are_refused_at_once(gate: Gated) -> None:
    """Of ten requests for two threads and three to wait, five get their verdicts."""
    service = gated(gate, waiting=3)

    async def use(client: httpx.AsyncClient) -> list[httpx.Response]:
        sent = [asyncio.ensure_future(client.send(post("/v1/check", workspace(f"w{x}", x=x % 3)))) for x in range(10)]
        await until(lambda: sum(task.done() for task in sent) == 5)
        gate.open.set()
        return list(await asyncio.gather(*sent))

    responses = with_client(application(service), use)
    assert sorted(response.status_code for response in responses) == [200] * 5 + [429] * 5
    for x, response in enumerate(responses):
        if response.status_code == 200:
            assert response.json()["exitCode"] == int(x % 3 == 2)
        else:
            assert response.headers["retry-after"] == "1"
    assert (service.queue.taken, service.bodies.buffered) == (0, 0)


def test_a_request_that_takes_too_long_is_refused_and_keeps_its_thread(gate: Gated) -> None:
    """Until the work ends; readiness reports when no thread is left."""
    service = gated(gate, deadline=0.2)

    async def use(client: httpx.AsyncClient) -> list[httpx.Response]:
        late = await asyncio.gather(*(client.send(post("/v1/check", workspace())) for _ in range(3)))
        assert (service.queue.taken, service.queue.overdue) == (2, 2)
        ready = await client.get("/readyz")
        gate.open.set()
        await until(lambda: service.queue.taken == 0)
        return [*late, ready, await client.send(post("/v1/check", workspace()))]

    *late, ready, after = with_client(application(service), use)
    assert [response.status_code for response in late] == [503] * 3
    assert sorted("its turn" in response.json()["detail"] for response in late) == [False, False, True]
    assert ready.json()["reasons"] == ["every thread is busy with an abandoned request"]
    assert (after.status_code, service.queue.overdue) == (200, 0)


def test_a_client_that_goes_away_gives_its_place_back(gate: Gated) -> None:
    """At once where it waits; its work is never begun. Where it is at work, when that ends."""
    service = gated(gate, waiting=5)
    app = application(service)
    content = b'{"id": "/x", "type": "a.b/c"}'

    async def request(left: asyncio.Event) -> list[Any]:
        sent: list[Any] = []
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
        scope = {"type": "http", "method": "POST", "path": "/v1/check", "headers": headers, "query_string": b""}
        messages = [{"type": "http.request", "body": content, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if messages:
                return messages.pop()
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        await app(scope, receive, send)
        return sent

    async def run() -> None:
        gone, stays = asyncio.Event(), asyncio.Event()
        working = [asyncio.ensure_future(request(stays)) for _ in range(2)]
        await until(lambda: gate.reads == 2)
        waiting = [asyncio.ensure_future(request(gone)) for _ in range(3)]
        await until(lambda: service.queue.taken == 5)
        gone.set()
        assert await asyncio.gather(*waiting) == [[], [], []]
        assert (service.queue.taken, gate.reads) == (2, 2)
        stays.set()
        assert await asyncio.gather(*working) == [[], []]
        assert service.queue.taken == 2
        gate.open.set()
        await until(lambda: service.queue.taken == 0)
        assert (gate.reads, service.queue.overdue, service.bodies.buffered) == (2, 0, 0)

    asyncio.run(run())


def test_a_closed_queue_completes_its_requests(gate: Gated) -> None:
    """It refuses new requests, which is not the caller's fault."""
    service = gated(gate)

    async def use(client: httpx.AsyncClient) -> list[httpx.Response]:
        first = asyncio.ensure_future(client.send(post("/v1/check", workspace())))
        await until(lambda: gate.reads == 1)
        service.queue.closed = True
        second = await client.send(post("/v1/check", workspace()))
        gate.open.set()
        return [await first, second, await client.get("/readyz")]

    responses = with_client(application(service), use)
    assert [response.status_code for response in responses] == [200, 503, 503]
    assert responses[1].headers["retry-after"] == "1"


def test_an_error_of_the_work_is_raised() -> None:
    """The place of the work is given back."""

    async def run() -> None:
        queue = Queue(1, 0)
        loop = asyncio.get_running_loop()
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                await queue.run(lambda: 1 // 0, loop.time() + 5)
        assert await queue.run(lambda: 7, loop.time() + 5) == 7
        assert queue.taken == 0

    asyncio.run(run())
