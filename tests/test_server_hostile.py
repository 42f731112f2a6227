"""No request makes the server fail: hostile numbers, text and headers on every route get a response of 1xx to 4xx."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import cycle, product
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from policyeng.audit.store import open_store
from policyeng.errors import UsageError
from policyeng.server.app import application
from policyeng.server.history_site import Reports
from policyeng.server.metrics import ServerMetrics
from policyeng.server.service import Service
from tests.audits import Audited
from tests.command import policyeng
from tests.servers import service_of, setup_of
from tests.test_server_history import audited, token_file  # noqa: F401  # `audited` is a fixture

NUMBERS = (
    "0", "-1", "1e9", "2147483647", "2147483648", "9999999999999999999", "9" * 5000, "1.0", "0x1", "١", "²",
    "%31", "NaN", "", "1;x", "%00", "%ff", "\u202e1", "😀",
)  # fmt: skip
SIGNED = ((b"host", b"127.0.0.1"), (b"authorization", b"Bearer open"))
HEADERS: tuple[tuple[tuple[bytes, bytes], ...], ...] = (
    (),
    SIGNED,
    (*SIGNED, (b"content-type", b"application/json")),
    (*SIGNED, (b"content-type", b"application/yaml")),
    ((b"origin", b"http://evil"),),
    ((b"origin", b"null"), (b"host", b"")),
    ((b"origin", b"http://["), (b"host", b"127.0.0.1")),
    ((b"host", b"[::1"),),
    ((b"host", b"\xff\xfe"), (b"cookie", b"policyeng=\xff; =;;")),
    ((b"host", b"127.0.0.1"), (b"content-length", b"9" * 30), (b"content-type", b"\xff/;;=")),
    ((b"host", b"127.0.0.1"), (b"content-type", b"application/x-www-form-urlencoded")),
    ((b"host", b"127.0.0.1"), (b"content-type", b"application/json"), (b"authorization", b"Bearer \xff")),
    ((b"host", b"127.0.0.1"), (b"sec-fetch-site", b"\x80"), (b"x-request-id", b"\xff" * 300)),
)
BODIES = (b"", b"{", b"\xff", b"&".join([b"a=1"] * 20), b'{"snapshot": {"a": 1e999}}', b"9" * 5000, b"null", b"[[]]")


@pytest.fixture(params=[True, False], ids=["tokens", "open"])
def app(request: pytest.FixtureRequest, audited: Audited, tmp_path: Path) -> Iterator[FastAPI]:  # noqa: F811
    """A server with every route, with and without tokens."""
    service: Service = service_of(setup_of(tmp_path), tokens=token_file(tmp_path) if request.param else None)
    with open_store(audited.url) as store:
        service.reports, service.metrics = Reports(store), ServerMetrics()
        service.start()
        yield application(service)
        service.stop()


def status(app: FastAPI, method: str, path: str, headers: tuple[tuple[bytes, bytes], ...], body: bytes) -> int:
    """The status of a response, as a server calls an application; what it raises is raised here."""
    sent: list[dict[str, Any]] = []
    left = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if left:
            return left.pop()
        await asyncio.sleep(60)
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.0", "method": method, "scheme": "http",
        "path": path, "raw_path": path.encode("utf-8", "surrogatepass"), "query_string": b"", "root_path": "",
        "headers": list(headers), "client": None, "server": None,
    }  # fmt: skip
    asyncio.run(app(scope, receive, send))  # type: ignore[arg-type]  # dictionaries, as they come from a server
    return int(sent[0]["status"])


@pytest.mark.slow
def test_every_route_responds_to_hostile_requests(app: FastAPI) -> None:
    """Any number, name, headers and body get a response."""
    paths = {route.path for route in app.routes if hasattr(route, "path")}
    assert {"/runs/{number}", "/estates/{estate}", "/sign-out", "/v1/check", "/v1/admission-review"} <= paths
    requests = [
        (method, path.replace("{number}", number).replace("{estate}", number), headers, body)
        for path in sorted(paths)
        for number in (NUMBERS if "{" in path else NUMBERS[:1])
        for method in ("GET", "POST")
        for headers, body in (
            zip(HEADERS, cycle(BODIES)) if method == "GET" or "{" in path else product(HEADERS, BODIES)
        )
    ]
    failed = [(*request, code) for request in requests if (code := status(app, *request)) >= 500 and code != 503]

    assert failed == []


@pytest.mark.attack
def test_a_number_that_no_run_can_have_is_not_found(app: FastAPI) -> None:
    """Also where the database would refuse to compare with it."""
    for number in ("9999999999999999999", "2147483648", "0", "99"):
        assert status(app, "GET", f"/runs/{number}", SIGNED, b"") == 404
    assert status(app, "GET", "/runs/1", SIGNED, b"") == 200


@pytest.mark.attack
@pytest.mark.parametrize("origin", [b"http://evil", b"null", b"http://["])
@pytest.mark.parametrize("host", [(), ((b"host", b""),)])
def test_a_form_without_a_host_is_refused(app: FastAPI, origin: bytes, host: tuple[tuple[bytes, bytes], ...]) -> None:
    """As it cannot be known whether it comes from here."""
    assert status(app, "POST", "/sign-out", ((b"origin", origin), *host), b"") == 403


@pytest.mark.attack
@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:geheim@[::1/x",
        "postgresql://u:geheim@h:x/y",
        "postgresql://u:geheim@h/x?statement_timeout=0",
        "postgresql://u:geheim@h/x?statement_timeout=soon",
        "postgresql://u:geheim@h/x?connect_timeout=soon",
        "postgresql://u:geheim@h:99999999/x",
        "postgresql://u:geheim@h/\udcff",
        "postgresql://u:geheim@h/%00",
        "sqlite:///a\0b",
        "sqlite:///" + "a" * 5000,
        "http://[::1",
    ],
)
@pytest.mark.parametrize("command", [("runs",), ("run", "--input", "x.json", "--estate", "e")])
def test_a_url_that_is_none_of_a_store_is_refused(tmp_path: Path, url: str, command: tuple[str, ...]) -> None:
    """With a message and without its password."""
    ran = policyeng("audit", *command, "--store", url, folder=tmp_path)

    assert ran.returncode in (2, 3)
    assert "internal error" not in ran.stderr
    assert "geheim" not in ran.stderr
    if "[" in url or "statement_timeout" in url:
        assert ran.returncode == 3


@pytest.mark.parametrize("entry", ["json=\0", "json=" + "a" * 5000, "json=/", "json=.", "json=a/b/c", "=x", "json"])
def test_a_place_where_no_report_can_be_written_is_refused(tmp_path: Path, entry: str, root: Path) -> None:
    """With exit 3 and a message."""
    snapshot = str(root / "samples" / "workspaces" / "compliant.json")
    ran = policyeng("check", snapshot, "--output", entry, folder=tmp_path)

    assert ran.returncode == 3
    assert "internal error" not in ran.stderr


@pytest.mark.parametrize("option", [("--port", "99999999999999999999"), ("--port", "-1"), ("--port", "x")])
def test_a_port_that_is_none_is_refused(option: tuple[str, ...]) -> None:
    """Before anything is read."""
    assert policyeng("serve", *option).returncode == 3


def test_a_store_has_no_run_of_a_number_that_is_too_large(audited: Audited) -> None:  # noqa: F811
    """It reports it as for any other number."""
    with open_store(audited.url) as store, pytest.raises(UsageError, match="there is no run 9999999999999999999"):
        store.run(9999999999999999999)
