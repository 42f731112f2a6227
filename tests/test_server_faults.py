"""The server as a process under faults: hostile requests, slow clients, and its own death under load."""

from __future__ import annotations

import gzip
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import orjson
import pytest

from policyeng.models import JsonObject
from tests.bundles import workspace, write
from tests.servers import JSON, POLICY
from tests.test_cli_serve import SERVE, running
from tests.test_server_running import ALLOWED, DENIED, entries_in, entries_in_whole_lines, wait_for

HEAD = b"POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
#: A request of its own, which is answered only where a body is taken for shorter than it is.
HIDDEN = b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Request-Id: hidden\r\n\r\n"
LONGEST = 200_000
#: Bounds that a test can wait for, and responses that no buffer of the system takes.
QUICK = f"""
import sys
from policyeng import cli
from policyeng.server import run
run.HEAD_SECONDS, run.TAKE_SECONDS = 1.0, 0.5
cli.run(["serve", "--port", "0", "--policy", "bundle", "--snapshot", "state.json", "--deadline", "2",
         "--max-body-bytes", "{LONGEST}", "--workers", "2"])
"""


def filled(folder: Path) -> Path:
    """A folder with a bundle of one policy and a snapshot."""
    write(folder, {"bundle/area/limit.rego": POLICY})
    (folder / "state.json").write_bytes(orjson.dumps({"snapshotVersion": 1, "resources": [workspace("there")]}))
    return folder


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One server for all that must not end it; it responds after each, and at once."""
    with running(filled(tmp_path_factory.mktemp("faults")), command=[sys.executable, "-c", QUICK]) as (_, url):
        yield url


@pytest.fixture(autouse=True)
def still_responds(request: pytest.FixtureRequest) -> Iterator[None]:
    """After each fault the next request gets its verdict."""
    yield
    if "address" in request.fixturenames:
        url = request.getfixturevalue("address")
        assert httpx.post(f"{url}/v1/admit", json=DENIED, timeout=30).json()["allowed"] is False


def connected(address: str, receive: int = 0) -> socket.socket:
    """A connection to it."""
    host, _, port = address.removeprefix("http://").partition(":")
    connection = socket.socket()
    if receive:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
    connection.settimeout(60)
    connection.connect((host, int(port)))
    return connection


def exchange(address: str, sent: bytes, *, until: bytes = b"") -> bytes:
    """The response, until the server ends the connection or sends `until`."""
    with connected(address) as connection:
        connection.sendall(sent)
        response = b""
        while part := connection.recv(65536):
            response += part
            if until and until in response:
                break
        return response


@pytest.mark.parametrize(
    "framing",
    [
        b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n[]",
        b"Content-Length: 2, 2\r\n\r\n[]",
        b"Content-Length: +2\r\n\r\n[]",
        b"Content-Length: 0x2\r\n\r\n[]",
        b"X: a\r\n Content-Length: 0\r\nContent-Length: 2\r\n\r\n[]",
        b"X: a\rContent-Length: 0\r\nContent-Length: 2\r\n\r\n[]",
        b"X: a\0b\r\nContent-Length: 2\r\n\r\n[]",
        b"Transfer-Encoding: chunked\r\n\r\n-1\r\n[]\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n0x2\r\n[]\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n[]\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n2\n[]\n0\n\n",
        b"Transfer-Encoding: chunked\r\n\r\n2\r\n[]x\r\n0\r\n\r\n",
    ],
)
def test_a_body_whose_end_two_could_see_in_two_places_is_refused(address: str, framing: bytes) -> None:
    """The connection ends, so that nothing after the body is taken for a request (request smuggling)."""
    response = exchange(address, HEAD + framing + HIDDEN)

    assert response.startswith(b"HTTP/1.1 400 ")
    assert response.count(b"HTTP/1.1 ") == 1
    assert b"hidden" not in response


def test_a_refused_body_is_no_request(address: str) -> None:
    """Where it is not read, as on a path that there is not, or beyond the limit."""
    nowhere = b"POST /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(HIDDEN)
    for sent, status in ((nowhere + HIDDEN, b"404"), (HEAD + b"Content-Length: 300000\r\n\r\n" + HIDDEN, b"413")):
        response = exchange(address, sent)
        assert response.startswith(b"HTTP/1.1 " + status)
        assert b"hidden" not in response


def test_pipelined_requests_are_answered_in_their_order(address: str) -> None:
    """Each with its own verdict, although the client did not wait for the one before."""
    requests = b""
    for number, change in enumerate((DENIED, ALLOWED, DENIED, ALLOWED)):
        body = orjson.dumps(change)
        last = b"Connection: close\r\n" if number == 3 else b""
        requests += HEAD.replace(b"check", b"admit") + last
        requests += b"X-Request-Id: r%d\r\nContent-Length: %d\r\n\r\n" % (number, len(body)) + body
    parts = exchange(address, requests).split(b"HTTP/1.1 200 OK")[1:]

    assert [b"x-request-id: r%d" % number in part for number, part in enumerate(parts)] == [True] * 4
    assert [b'"allowed":true' in part for part in parts] == [False, True, False, True]


def chunked(size: int) -> Iterator[bytes]:
    """A JSON text of so many bytes in pieces, without a stated length."""
    yield b'"'
    for _ in range(size // 50_000):
        yield b"a" * 50_000
    yield b'"'


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (b'"' + b"a" * LONGEST + b'"', JSON, 413),
        (None, JSON, 413),
        (gzip.compress(b"[" * 50_000_000), {**JSON, "content-encoding": "gzip"}, 415),
        (b"[" * 100_000, JSON, 400),
        (b'{"a":' * 30_000, JSON, 400),
        (b'{"id": "x", "id": "y"}', JSON, 400),
        (b'"\xff\xfe"', JSON, 400),
        ("[]".encode("utf-16"), JSON, 400),
        (b"\0" * 1000, JSON, 400),
        (b"[]", {"content-type": "text/html"}, 415),
        (b"[]", {"content-type": "multipart/form-data; boundary=x"}, 415),
        (b"[]", {}, 415),
        (b"&a [*a]", {"content-type": "application/yaml"}, 200),
        (b"a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n" * 50, {"content-type": "application/yaml"}, 200),
    ],
)
def test_a_body_that_is_none_gets_a_problem(
    address: str, content: bytes | None, headers: dict[str, str], status: int
) -> None:
    """Or, for YAML, a report with the problem; never as a pass."""
    response = httpx.post(f"{address}/v1/check", content=content or chunked(2 * LONGEST), headers=headers)

    assert response.status_code == status
    if status == 200:
        assert response.json()["exitCode"] == 2
    else:
        assert response.headers["content-type"] == "application/problem+json"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("begin", "drip", "ends"),
    [
        (b"", b"", b""),
        (b"GET /healthz HTTP/1.1\r\nX: ", b"a", b""),
        (HEAD + b"Content-Length: 5000\r\n\r\n[", b" ", b"HTTP/1.1 408 "),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n", b"HTTP/1.1 408 "),
    ],
    ids=["silent", "headers", "body", "chunks"],
)
def test_slow_clients_block_no_one_and_are_ended(address: str, begin: bytes, drip: bytes, ends: bytes) -> None:
    """Fifty of them at a time; others get their responses meanwhile."""
    slow = [connected(address) for _ in range(50)]
    for connection in slow:
        connection.sendall(begin)
    given_up = time.monotonic() + 60
    waiting = list(slow)
    while waiting and time.monotonic() < given_up:
        # One after the other, the slow ones would take more than the 30 seconds.
        assert httpx.post(f"{address}/v1/admit", json=ALLOWED, timeout=30).json()["allowed"] is True
        waiting = [connection for connection in waiting if goes_on(connection, drip)]
        time.sleep(0.05)
    last = [rest_of(connection) for connection in slow]

    assert not waiting
    assert all(response.startswith(ends) and bool(response) == bool(ends) for response in last), Counter(last)


def goes_on(connection: socket.socket, drip: bytes) -> bool:
    """Whether the server still waits for more, of which it gets a little."""
    connection.setblocking(False)
    try:
        if drip:
            connection.sendall(drip)
        connection.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def rest_of(connection: socket.socket) -> bytes:
    """The bytes that the server sent before it ended a connection."""
    with connection:
        try:
            return connection.recv(65536)
        except OSError:
            return b""


@pytest.mark.slow
def test_responses_that_are_not_read_are_dropped(tmp_path: Path) -> None:
    """The connection is broken off, and what waited for it is released."""
    command = [sys.executable, "-c", QUICK.replace(f'"{LONGEST}"', '"9000000"').replace('"2",', '"20",')]
    body = orjson.dumps([workspace(f"w{number}", x=2) for number in range(9000)])
    with running(filled(tmp_path), command=command) as (server, address):
        sockets = Path(f"/proc/{server.pid}/fd")

        def open_ones() -> int:
            return sum("socket" in str(each.readlink()) for each in sockets.iterdir())

        before = open_ones()
        with connected(address, receive=4096) as connection:
            connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            assert connection.recv(12) == b"HTTP/1.1 200"
            wait_for(lambda: open_ones() <= before)
        assert httpx.get(f"{address}/healthz").status_code == 200


class Verdicts:
    """Clients that request verdicts that they know, and note what they get."""

    def __init__(self, address: str) -> None:
        self.wrong: list[str] = []
        self.right = 0
        self.broken = 0
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._request, args=(address, number)) for number in range(4)]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Stop requesting."""
        self._ended.set()
        for thread in self._threads:
            thread.join(30)

    def _request(self, address: str, number: int) -> None:
        with httpx.Client(timeout=30, base_url=address) as client:
            while not self._ended.is_set():
                number += 1
                try:
                    response = client.post("/v1/admit", json=DENIED if number % 2 else ALLOWED)
                except httpx.HTTPError:
                    self.broken += 1
                    time.sleep(0.02)
                    continue
                if response.status_code == 200 and response.json()["allowed"] is (number % 2 == 0):
                    self.right += 1
                else:
                    self.wrong.append(response.text)


@pytest.mark.slow
def test_a_server_that_is_killed_under_load_can_be_restarted(tmp_path: Path) -> None:
    """On the same port: every response is right, before and after, and the log has whole entries alone."""
    options = ("--snapshot", "state.json", "--decision-log", "log")
    with running(filled(tmp_path), *options) as (server, address):
        verdicts = Verdicts(address)
        wait_for(lambda: verdicts.right > 40)
        server.kill()
        server.wait(30)
    wait_for(lambda: verdicts.broken > 4)
    so_far = verdicts.right
    whole = [orjson.loads(line) for line in entries_in_whole_lines(tmp_path / "log")]
    port = address.rpartition(":")[2]
    with running(tmp_path, *options, command=[part if part != "0" else port for part in SERVE]) as (server, again):
        assert again == address
        wait_for(lambda: verdicts.right > so_far + 40)
        verdicts.end()
        server.terminate()
        assert server.wait(30) == 0
    entries: list[JsonObject] = entries_in(tmp_path / "log")

    assert not verdicts.wrong
    assert entries[: len(whole)] == whole
    assert all("gap" in entry for entry in entries if "decision_id" not in entry)
    decided = [entry for entry in entries if "decision_id" in entry]
    assert len({entry["decision_id"] for entry in decided}) == len(decided)
    assert all(entry["result"]["allowed"] is (entry["input"] == ALLOWED) for entry in decided)
    assert (
        abs(len(decided) - verdicts.right) <= 8
    )  # what was killed between the response and the log, or before it came
