"""Real servers for tests of notifications: one that takes HTTP requests, and one that takes mail by SMTP."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import NamedTuple, TypeVar

import orjson

from policyeng.models import JsonObject


class Taken(NamedTuple):
    """A request: its path with the query, its headers in lower case, and its body as JSON."""

    path: str
    headers: dict[str, str]
    body: JsonObject


class WebServer(ThreadingHTTPServer):
    """Responds to every POST with `status` and keeps it; `statuses` are those of the first requests.

    While `released` is clear it does not respond.
    """

    daemon_threads = True

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Posts)
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.released = threading.Event()
        self.released.set()
        self.came = threading.Event()
        self.taken: list[Taken] = []
        self.status = 200
        self.statuses: list[int] = []

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing of those who hang up."""

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self.server_port}"

    @property
    def bodies(self) -> list[JsonObject]:
        """The bodies of all requests, in their order."""
        return [taken.body for taken in self.taken]


class _Posts(BaseHTTPRequestHandler):
    server: WebServer

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.taken.append(Taken(self.path, headers, orjson.loads(body)))
        self.server.came.set()
        self.server.released.wait(60)
        self.send_response(self.server.statuses.pop(0) if self.server.statuses else self.server.status)
        self.send_header("Content-Length", "2")
        self.send_header("Location", f"http://{self.server.address}/elsewhere")
        self.end_headers()
        self.wfile.write(b"ok")

    def handle(self) -> None:
        with suppress(OSError):  # of those who hang up, as a client does that is killed or trusts no server
            super().handle()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # as the library calls it
        """Print nothing."""


class MailServer(ThreadingTCPServer):
    """Speaks SMTP (RFC 5321) as far as sending takes it, and keeps each mail; `refusal` is the reply to RCPT."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Session)
        self.mails: list[EmailMessage] = []
        self.recipients: list[str] = []
        self.refusal = ""

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self.server_address[1]}"


class _Session(StreamRequestHandler):
    server: MailServer

    def handle(self) -> None:
        self._send("220 mail.test ready")
        while line := self.rfile.readline():
            word = line.decode().strip()
            if word.upper() == "QUIT":
                self._send("221 bye")
                return
            self._send(self._reply(word))

    def _reply(self, word: str) -> str:
        if word.upper().startswith("RCPT"):
            self.server.recipients.append(word.partition("<")[2].rstrip(">"))
            return self.server.refusal or "250 ok"
        if word.upper() != "DATA":
            return "250 mail.test"
        self._send("354 go on")
        self.server.mails.append(message_from_bytes(b"".join(self._content()), EmailMessage, policy=policy.default))
        return "250 taken"

    def _content(self) -> Iterator[bytes]:
        while (line := self.rfile.readline()) not in (b".\r\n", b""):
            yield line[1:] if line.startswith(b"..") else line

    def _send(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


_Server = TypeVar("_Server", WebServer, MailServer)


@contextmanager
def listening(server: _Server) -> Iterator[_Server]:
    """A server at work, until the end."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
