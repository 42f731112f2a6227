"""A resource manager of Azure on this machine: it serves bodies, with any faults that a test wants.

It also gives out tokens as the managed identity of an App Service does, so that azure-identity itself is tried.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from policyeng.facts.ids import types_of
from policyeng.models import JsonObject

SUBSCRIPTION = "11111111-1111-1111-1111-111111111111"
ROOT = f"/subscriptions/{SUBSCRIPTION}"
GROUP = f"{ROOT}/resourceGroups/rg-ml"
ML = "Microsoft.MachineLearningServices"
WORKSPACE = f"{GROUP}/providers/{ML}/workspaces/ws"
TOKEN = "a-token-that-nobody-may-see"  # noqa: S105  # it opens nothing


class Response(NamedTuple):
    """What is sent: a status, a body, headers; `cut` after so many bytes of the body, `slow` by so many seconds.

    An `endless` body is sent again and again, in chunks, until the other side hangs up.
    """

    status: int = 200
    body: bytes | JsonObject = b"{}"
    headers: Mapping[str, str] = {}
    cut: int | None = None
    slow: float = 0.0
    endless: bool = False


#: A response for a path, from its query and the number of earlier requests.
Fault = Callable[[dict[str, str], int], Response | None]


def error(status: int, code: str, **headers: str) -> Response:
    """An error as ARM returns it."""
    body = {"error": {"code": code, "message": f"{code}: see the documents"}}
    return Response(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


@dataclass
class Azure:
    """Its resources and its faults.

    Attributes:
        lists: by path, the entries of a list.
        single: by id, one resource.
        metrics: by the id of what they measure, the bodies of Azure Monitor.
        page: the number of entries on a page.
        faults: by the beginning of a path below which it applies, else by `*`.
        requests: how often each path was requested; of its pages each.
        credentials: the credentials that requests carried.
    """

    lists: dict[str, list[JsonObject]] = field(default_factory=dict)
    single: dict[str, JsonObject] = field(default_factory=dict)
    metrics: dict[str, JsonObject] = field(default_factory=dict)
    page: int = 1000
    faults: dict[str, Fault] = field(default_factory=dict)
    requests: Counter[str] = field(default_factory=Counter)
    methods: set[str] = field(default_factory=set)
    credentials: set[str] = field(default_factory=set)
    address: str = ""
    under_way: int = 0
    most_under_way: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, *resources: JsonObject) -> Azure:
        """Add resources to their lists and by their ids."""
        for resource in resources:
            identity: str = resource["id"]
            self.single[identity.lower()] = resource
            self.lists.setdefault(identity.rpartition("/")[0].lower(), []).append(resource)
        return self

    def deny(self, *paths: str) -> Azure:
        """Refuse requests at and below paths, or at the end of one."""
        for path in paths:
            self.faults[path.lower()] = lambda _query, _times: error(403, "AuthorizationFailed")
        return self

    def respond(self, path: str, query: dict[str, str]) -> Response:
        """The response for a path."""
        folded = path.lower()
        with self.lock:
            times = self.requests[folded]
            self.requests[folded] += 1
        for place, fault in self.faults.items():
            if place in ("*", folded) or folded.endswith(place) or folded.startswith(f"{place}/"):
                response = fault(query, times)
                if response is not None:
                    return response
        if folded.endswith("/providers/microsoft.insights/metrics"):
            return Response(
                body=self.metrics.get(folded.removesuffix("/providers/microsoft.insights/metrics"), {"value": []})
            )
        if folded in self.single:
            return Response(body=self.single[folded])
        if types_of(folded):
            return error(404, "ResourceNotFound")
        return self._listed(path, folded, int(query.get("skip", "0")))

    def _listed(self, path: str, folded: str, skip: int) -> Response:
        entries = self.lists.get(folded)
        if entries is None:
            entries = self._below(folded)
        shown = entries[skip : skip + self.page]
        body: JsonObject = {"value": shown}
        if skip + self.page < len(entries):
            body["nextLink"] = f"{self.address}{path}?api-version=x&skip={skip + self.page}"
        return Response(body=body)

    def _below(self, folded: str) -> list[JsonObject]:
        """The entries of a list of a scope: what lies in the groups below, or extends whatever lies below.

        Budgets are those of the scope alone.
        """
        scope, found, kind = folded.rpartition("/providers/")
        if not found or kind.endswith("/budgets") or kind.count("/") != 1:
            return []
        extends = kind.startswith(("microsoft.authorization/", "microsoft.advisor/"))
        if "/providers/" in scope and not extends:
            return []
        depth = scope.count("/providers/") + 1
        lists = [key for key in self.lists if key.startswith(f"{scope}/") and key.endswith(f"/providers/{kind}")]
        if kind in ("microsoft.authorization/policyassignments", "microsoft.authorization/policyexemptions"):
            ends = f"/providers/{kind}"  # they apply below, and their lists contain them
            lists += [
                key for key in self.lists if key.endswith(ends) and f"{scope}/".startswith(key[: -len(ends)] + "/")
            ]
        return [
            entry for key in sorted(lists) if extends or key.count("/providers/") == depth for entry in self.lists[key]
        ]


def _handler(azure: Azure) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else each response waits for the acknowledgement of its head
        wbufsize = -1

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(parts.query).items()}
            azure.methods.add(self.command)
            if parts.path == "/msi/token":
                self._send(Response(body=_token()))
                return
            azure.credentials.add(self.headers.get("Authorization", ""))
            with azure.lock:
                azure.under_way += 1
                azure.most_under_way = max(azure.most_under_way, azure.under_way)
            try:
                response = azure.respond(parts.path, query)
                time.sleep(response.slow)
            finally:
                with azure.lock:
                    azure.under_way -= 1
            self._send(response)

        do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815  # the names of http.server

        def _send(self, response: Response) -> None:
            content = response.body if isinstance(response.body, bytes) else json.dumps(response.body).encode()
            try:
                self.send_response(response.status)
                for name, value in response.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Type", "application/json")
                if response.endless:
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    while True:
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content[: response.cut])
                self.wfile.flush()
                if response.cut is not None:  # as a cable that is pulled out
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    self.close_connection = True
            except OSError:
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    return Handler


def _token() -> JsonObject:
    expires = str(int(time.time()) + 3600)
    return {
        "access_token": TOKEN,
        "expires_on": expires,
        "resource": "https://management.azure.com",
        "token_type": "Bearer",
    }


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


@contextmanager
def served(azure: Azure) -> Iterator[dict[str, str]]:
    """Serve it: the variables of the environment with which the command finds it."""
    server = _Server(("127.0.0.1", 0), _handler(azure))
    azure.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield {
            "AZURE_RESOURCE_MANAGER_ENDPOINT": azure.address,
            "AZURE_TOKEN_CREDENTIALS": "ManagedIdentityCredential",
            "IDENTITY_ENDPOINT": f"{azure.address}/msi/token",
            "IDENTITY_HEADER": "header",
            "NO_PROXY": "127.0.0.1",
        }
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
