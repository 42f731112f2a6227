"""The server as a process, operated: reloaded, stopped, killed, restarted under load."""

from __future__ import annotations

import asyncio
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
import uvicorn

from policyeng.models import JsonObject
from policyeng.server.app import application
from policyeng.server.decision_log import NAME
from policyeng.server.run import BoundedProtocol, DrainingServer
from tests.bundles import deny_when, rego, workspace, write
from tests.certificates import Root
from tests.servers import service_of, setup_of
from tests.test_cli_serve import running

DENIED, ALLOWED = workspace("there", x=2), workspace("there", x=1)


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Wait for a condition, and fail when it does not come about in time, which is long on a busy machine."""
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, "it did not come about in time"
        time.sleep(0.02)


def refuses(address: str) -> bool:
    """Return whether a server takes no new connections."""
    try:
        httpx.get(f"{address}/healthz")
    except httpx.ConnectError:
        return True
    return False


def entries_in(folder: Path) -> list[JsonObject]:
    """The entries of a decision log; each line has to be one."""
    paths = (*sorted(folder.glob("decisions-*.jsonl")), folder / NAME)
    return [orjson.loads(line) for path in paths for line in path.read_bytes().splitlines()]


def errors_of(server: subprocess.Popen[str]) -> str:
    """The standard error of a server that ended."""
    assert server.stderr is not None
    return server.stderr.read()


class Load:
    """Clients that send requests again and again, each on a connection that it keeps, to the current server.

    As a load balancer does, they go to the other address when the first reports that it is not ready.

    Attributes:
        addresses: of servers, the first of which is preferred.
        seen: how many responses there were of each kind.
    """

    def __init__(self, *addresses: str, clients: int = 4) -> None:
        self.addresses = list(addresses)
        self.seen: Counter[str] = Counter()
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._request) for _ in range(clients)]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Stop requesting."""
        self._ended.set()
        for thread in self._threads:
            thread.join(30)

    def _request(self) -> None:
        with httpx.Client(timeout=30) as client:
            while not self._ended.is_set():
                self.seen[self._one(client)] += 1

    def _one(self, client: httpx.Client) -> str:
        address = self.addresses[0] if self._is_ready(client) else self.addresses[-1]
        try:
            response = client.post(f"{address}/v1/admit", json=DENIED)
            return f"{response.status_code} {response.json().get('allowed')}"
        except httpx.HTTPError as error:
            return type(error).__name__

    def _is_ready(self, client: httpx.Client) -> bool:
        """Whether the first reports that it is."""
        try:
            return bool(client.get(f"{self.addresses[0]}/readyz").json()["ready"])
        except httpx.TransportError:
            return False


@pytest.mark.slow
def test_a_reload_is_requested_and_a_bad_one_is_reported(folder: Path) -> None:
    """By SIGHUP or a change, under load; the log, the metrics and readiness report why nothing changed."""
    bad, good = "package area.limit\n\ndeny contains {", rego("limit", deny_when("input.resource.properties.x > 5"))
    with running(folder, "--snapshot", "state.json", "--decision-log", "log") as (server, address):
        load = Load(address, clients=2)
        wait_for(lambda: load.seen.total() > 10)
        write(folder, {"bundle/area/limit.rego": bad})
        server.send_signal(signal.SIGHUP)
        wait_for(lambda: "x-policyeng-degraded" in httpx.get(f"{address}/readyz").headers)
        assert "limit.rego" in httpx.get(f"{address}/readyz").json()["faults"][0]
        assert "policyeng_bundle_load_failures_total 1.0" in httpx.get(f"{address}/metrics").text
        assert httpx.post(f"{address}/v1/admit", json=DENIED).json()["allowed"] is False
        write(folder, {"bundle/area/limit.rego": good})
        wait_for(lambda: load.seen["200 True"] > 10)
        load.end()
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) == 0
        logged = errors_of(server).splitlines()

    assert load.seen.keys() == {"200 False", "200 True"}
    assert [line.partition(" server: policies:")[2][:25] for line in logged] == [
        " reload failed, the last ",
        " reloaded; the current fi",
    ]
    entries = entries_in(folder / "log")
    assert len({entry["policyset_digest"] for entry in entries}) == 2
    assert Counter(entry["result"]["allowed"] for entry in entries) == {
        True: load.seen["200 True"],
        False: load.seen["200 False"] + 1,
    }


@pytest.mark.slow
def test_a_restart_under_load_loses_nothing(folder: Path) -> None:
    """One that is stopped is unready first, responds to all requests, half-sent bodies too, and ends with 0."""
    options = ("--snapshot", "state.json", "--deadline", "60", "--drain-seconds")
    with running(folder, *options, "3") as (old, first), running(folder, *options, "60") as (new, second):
        load = Load(first, second)
        wait_for(lambda: load.seen.total() > 20)
        slow = begun(first, DENIED)
        old.send_signal(signal.SIGTERM)
        wait_for(lambda: httpx.get(f"{first}/readyz").status_code == 503)
        wait_for(lambda: refuses(first))
        slow.sendall(orjson.dumps(DENIED)[-1:])
        assert b'"allowed":false' in received(slow)
        assert (old.wait(30), errors_of(old)) == (0, "")
        so_far = load.seen.total()
        wait_for(lambda: load.seen.total() > so_far + 20)
        load.end()
        hanging = begun(second, DENIED)
        new.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        new.send_signal(signal.SIGTERM)
        assert new.wait(30) == 128 + signal.SIGTERM  # neither drains for a minute nor waits for the body
        hanging.close()

    assert load.seen.keys() == {"200 False"}


def test_a_connection_that_is_not_accepted_yet_is_served(tmp_path: Path) -> None:
    """It was made before the end, and the client has sent its request."""
    service = service_of(setup_of(tmp_path))
    config = uvicorn.Config(application(service), http=BoundedProtocol, ws="none", log_config=None)

    async def connected_at_the_end(bound: socket.socket) -> socket.socket:
        config.load()
        server = DrainingServer(config, service, lambda _: None)
        server.lifespan = config.lifespan_class(config)
        await server.startup([bound])
        client = socket.create_connection(bound.getsockname(), timeout=60)
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        await server.shutdown([bound])
        return client

    with socket.create_server(("127.0.0.1", 0)) as bound:
        response = received(asyncio.run(connected_at_the_end(bound)))
    assert response.startswith(b"HTTP/1.1 200 OK")


#: Headers of a request to decide, and the status of the response.
HEADERS = [
    ("Host: x", 200),
    ("Host: x:8181", 200),
    ("Host: [::1]:8181", 200),
    ("Host:", 200),
    ("Host: x\r\nExpect: 100-continue", 200),
    ("Accept: */*", 400),
    ("Host: x\r\nHost: x", 400),
    ("Host: x\r\nHost: y", 400),
    ("Host: a@b/../c", 400),
    ("Host: a b", 400),
    ("Host: x:port", 400),
    ("Host: [::1", 400),
    ("Host: x\r\nContent-Type: text/plain", 400),
    ("Host: x\r\nContent-Type: application/json", 400),
    ("Host: x\r\nExpect: 200-ok", 417),
]


@pytest.mark.attack
def test_headers_that_others_may_understand_differently_are_refused(folder: Path) -> None:
    """The text of the request as it is sent, since a client would not send it; the connection ends with it."""
    body = orjson.dumps({"snapshotVersion": 1, "resources": []})
    with running(folder, "--snapshot", "state.json") as (_, address):
        host, _, port = address.removeprefix("http://").partition(":")
        for headers, status in HEADERS:
            lines = (
                "POST /v1/check HTTP/1.1",
                headers,
                "Content-Type: application/json",
                f"Content-Length: {len(body)}",
            )
            connection = socket.create_connection((host, int(port)), timeout=60)
            connection.sendall("\r\n".join((*lines, "Connection: close", "", "")).encode() + body)
            response = received(connection)
            first = response.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n").split(b"\r\n", 1)[0]
            assert first.split()[1] == str(status).encode(), (headers, response)
        connection = socket.create_connection((host, int(port)), timeout=60)
        connection.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert received(connection).split()[1] == b"200"


@pytest.mark.slow
def test_a_killed_server_leaves_whole_lines(folder: Path) -> None:
    """But for the last one; the next server takes it away and reports it."""
    options = ("--snapshot", "state.json", "--decision-log", "log", "--decision-log-max-bytes", "20000")
    with running(folder, *options) as (server, address):
        load = Load(address)
        wait_for(lambda: load.seen["200 False"] > 60)
        server.kill()
        server.wait(30)
        load.end()
    responses = load.seen["200 False"]
    torn = (folder / "log" / NAME).read_bytes()
    (folder / "log" / NAME).write_bytes(torn[: torn.rfind(b"\n") + 1] + b'{"decision_id": "to')
    kept = len(entries_in_whole_lines(folder / "log"))
    with running(folder, *options) as (_, address):
        assert httpx.post(f"{address}/v1/admit", json=DENIED).json()["allowed"] is False
        wait_for(lambda: len(entries_in(folder / "log")) >= kept + 2)
    entries = entries_in(folder / "log")

    assert entries[kept]["gap"] == {"torn_bytes": 19}
    assert (
        responses - 4 <= kept <= responses + 4
    )  # responses that the clients were waiting for, or the thread of the log had
    assert len({entry["decision_id"] for entry in entries if "decision_id" in entry}) == len(entries) - 1
    assert len(list((folder / "log").iterdir())) > 1


@pytest.mark.slow
def test_certificates_change_without_a_dropped_connection(folder: Path) -> None:
    """Bad ones are not used; callers are identified by their certificates, and need one for verdicts."""
    root = Root()
    trusted = root.write(folder / "root.pem")
    root.issue(folder, "first", "tls")
    own = ssl.create_default_context(cafile=trusted)
    own.load_cert_chain(*root.issue(folder, "pipeline"))
    tls = ("--tls-cert", "tls.pem", "--tls-key", "tls.key", "--tls-client-ca", "root.pem")
    with running(folder, *tls, "--snapshot", "state.json", "--decision-log", "log") as (server, address):
        assert address.startswith("https://")
        with httpx.Client(verify=own, base_url=address) as kept:
            assert kept.post("/v1/admit", json=ALLOWED).json()["allowed"] is True
            assert served(address, own) == "first"
            (folder / "tls.pem").write_text("half", encoding="utf-8")
            server.send_signal(signal.SIGHUP)
            wait_for(lambda: kept.get("/readyz").headers.get("x-policyeng-degraded") == "certificate")
            assert served(address, own) == "first"
            root.issue(folder, "second", "tls")
            wait_for(lambda: served(address, own) == "second")
            assert kept.post("/v1/admit", json=DENIED).json()["allowed"] is False
            anonymous = ssl.create_default_context(cafile=trusted)
            probed = [httpx.get(address + path, verify=anonymous).status_code for path in ("/healthz", "/readyz")]
            assert probed == [200, 200]
            assert httpx.get(f"{address}/metrics", verify=anonymous).status_code == 403
            refused = httpx.post(f"{address}/v1/admit", json=ALLOWED, verify=anonymous)
            assert (refused.status_code, refused.json()["detail"]) == (403, "the client sent no certificate")
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) == 0

    known = [entry["requested_by"] for entry in entries_in(folder / "log")]
    assert known[:2] == ["O=contoso,CN=pipeline"] * 2
    assert known[2].startswith("127.0.0.1:")


def begun(address: str, content: Any) -> socket.socket:
    """A connection on which a request to decide is sent but for its last byte."""
    host, _, port = address.removeprefix("http://").partition(":")
    body = orjson.dumps(content)
    head = (
        f"POST /v1/admit HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    connection = socket.create_connection((host, int(port)), timeout=60)
    connection.sendall(head.encode() + body[:-1])
    time.sleep(0.1)
    return connection


def received(connection: socket.socket) -> bytes:
    """All that comes until the other side ends the connection."""
    with connection:
        return b"".join(iter(lambda: connection.recv(65536), b""))


def served(address: str, context: ssl.SSLContext) -> str:
    """The common name of the certificate that a new connection gets."""
    host, _, port = address.removeprefix("https://").partition(":")
    with (
        socket.create_connection((host, int(port)), timeout=60) as plain,
        context.wrap_socket(plain, server_hostname=host) as connection,
    ):
        shown: Any = connection.getpeercert()
    return str(dict(pair for (pair,) in shown["subject"])["commonName"])


def entries_in_whole_lines(folder: Path) -> list[bytes]:
    """The lines of a decision log that ended."""
    paths = (*sorted(folder.glob("decisions-*.jsonl")), folder / NAME)
    return [line for path in paths for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
