"""OPA servers for tests: real ones that can be killed, and servers that respond as no OPA should."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

DEADLINE = 60.0


@dataclass
class Server:
    """A running OPA."""

    url: str
    process: subprocess.Popen[bytes]

    def kill(self) -> None:
        """End it as a crash would."""
        self.process.kill()
        self.process.wait()


def free_port() -> int:
    """A loopback port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that has to come."""
    last = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < last, "waited in vain"
        time.sleep(0.01)


def listens(port: int) -> bool:
    """Whether a connection can be made."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def running(opa: Path, *arguments: str, port: int = 0, scheme: str = "http") -> Iterator[Server]:
    """A real OPA server on loopback, ended in the end."""
    port = port or free_port()
    command = [str(opa), "run", "--server", f"--addr=127.0.0.1:{port}", "--skip-version-check", "--log-level=error"]
    with subprocess.Popen([*command, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            until(lambda: listens(port) or process.poll() is not None)
            assert process.poll() is None, "OPA ended"
            yield Server(f"{scheme}://127.0.0.1:{port}", process)
        finally:
            process.kill()


Reply = Callable[[BaseHTTPRequestHandler, bytes], None]


def reply(status: int, body: object, **headers: str) -> Reply:
    """A reply with a status, a body (JSON, or bytes as they are) and headers."""
    text = body if isinstance(body, bytes) else json.dumps(body).encode()

    def respond(handler: BaseHTTPRequestHandler, _: bytes) -> None:
        handler.send_response(status)
        for name, value in {"Content_Length": str(len(text)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(text)

    return respond


@contextmanager
def responding(respond: Reply) -> Iterator[str]:
    """A server that responds to every request so; its URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except ConnectionError:
                self.close_connection = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            respond(self, body)

        do_GET = do_PUT = do_DELETE = do_POST  # noqa: N815  # the names that http.server calls

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def lying(verdicts: Callable[[dict[str, list[object]]], object], marked: object = None) -> Reply:
    """An OPA that takes everything and responds to a batch with made-up verdicts for its pairs."""

    def respond(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        if handler.command != "POST":
            reply(204 if "/data/" in handler.path else 200, b"" if "/data/" in handler.path else {})(handler, body)
            return
        given = json.loads(body)["input"]
        if "/batch_" not in handler.path:
            reply(200, {"result": {}})(handler, body)
            return
        result = {"verdicts": verdicts(given["pairs"])}
        reply(200, {"result": {"standing": marked, **result}})(handler, body)

    return respond
