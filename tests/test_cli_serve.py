"""`policyeng serve` as a process: it listens, responds, survives what is sent to it, and ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import orjson
import pytest

from policyeng import cli
from policyeng.rego.compiled import Compiled
from policyeng.rego.linked import Linked
from policyeng.server.options import Route
from policyeng.server.service import Service
from tests.bundles import deny_when, rego, workspace, write
from tests.cluster import review_of, workspace_object
from tests.conftest import ROOT
from tests.servers import JSON, send_to
from tests.test_server_tokens import line

SERVE = (sys.executable, "-m", "policyeng", "serve", "--port", "0", "--policy", "bundle")


@contextmanager
def running(
    folder: Path, *options: str, command: Sequence[str] = SERVE, log_level: str = "warning"
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server and its address; whatever it does, it is ended. Tests that read its access log set the level `info`."""
    options = (*options, "--log-level", log_level)
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [*command, *options], cwd=folder, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            message, _, address = server.stdout.readline().strip().rpartition(" ")
            assert message == "policyeng: listening on"
            yield server, address
        finally:
            server.kill()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_responds_until_a_signal_comes(folder: Path, number: signal.Signals) -> None:
    """Then it ends well, and prints nothing."""
    with running(folder, "--snapshot", "state.json", "--max-snapshot-age", "3600") as (server, address):
        assert httpx.get(f"{address}/readyz").json()["ready"] is True
        denied = httpx.post(f"{address}/v1/admit", json=workspace("there", x=2))
        assert denied.json()["allowed"] is False
        assert "server" not in denied.headers
        server.send_signal(number)
        assert server.wait(60) == 0
        assert server.stderr is not None
        assert server.stderr.read() == ""


@pytest.mark.slow
def test_what_is_sent_cannot_end_it(folder: Path) -> None:
    """Half a request, two lengths, no HTTP at all, a body that stays away: it responds to the next one."""
    head = b"POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    raw = {
        b"nothing of HTTP\r\n\r\n": b"400",
        head + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n[1,2]": b"400",
        head + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n": b"400",
        head + b"Content-Length: -5\r\n\r\n": b"400",
        head + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n": b"400",
        head + b"Content-Length: 9999999999\r\n\r\n": b"413",
        head + b"\r\n": b"400",
        b"GET /" + b"a" * 200_000: b"400 Bad Request",
        head + b"X-Long: " + b"a" * 200_000: b"400 Bad Request",
        head + b"X: y\r\n" * 50_000: b"400 Bad Request",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n": b"200",
        head + b"Content-Length: 500\r\n\r\n[": b"408",
        head + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n[]": b"200",
    }
    with running(folder, "--deadline", "0.5") as (_, address):
        host, port = address.removeprefix("http://").split(":")
        for sent, status in raw.items():
            with socket.create_connection((host, int(port)), timeout=60) as connection:
                connection.sendall(sent)
                response = connection.recv(4096)
                while b"HTTP/1.1 100" in response and response.count(b"HTTP/1.1") < 2:
                    response += connection.recv(4096)
                assert status in response, (sent, response)
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(head + b"Content-Length: 500\r\n\r\n[")
        assert httpx.post(f"{address}/v1/check", content=b"[]", headers=JSON).status_code == 200


@pytest.mark.slow
def test_headers_that_do_not_end_are_waited_for_in_vain(folder: Path) -> None:
    """A connection on which nothing comes, or little, is closed; one that is used stays open."""
    script = (
        "import sys; from policyeng.server import run; from policyeng import cli; run.HEAD_SECONDS = 0.5\n"
        "cli.run(['serve', '--port', '0', '--policy', 'bundle'])"
    )
    with running(folder, command=[sys.executable, "-c", script]) as (_, address):
        host, port = address.removeprefix("http://").split(":")
        for sent in (b"", b"GET /healthz HTTP/1.1\r\nHost"):
            with socket.create_connection((host, int(port)), timeout=60) as connection:
                connection.sendall(sent)
                assert connection.recv(100) == b""
        with httpx.Client(base_url=address) as client:
            assert client.get("/healthz").status_code == 200
            time.sleep(1)
            assert client.get("/healthz").status_code == 200


@pytest.mark.slow
def test_the_state_is_read_again_and_tokens_are_required(folder: Path) -> None:
    """While it serves."""
    (folder / "tokens").write_text(line("all", "admit", "secret"), encoding="utf-8")
    with running(folder, "--snapshot", "state.json", "--tokens", "tokens") as (_, address):
        client = httpx.Client(base_url=address, headers={"Authorization": "Bearer secret"})
        patch = {"operation": "patch", "id": workspace("new")["id"], "patch": {"properties": {"x": 1}}}
        assert httpx.post(f"{address}/v1/admit", json=patch).status_code == 401
        assert client.post("/v1/admit", json=patch).json()["exitCode"] == 2
        content = orjson.dumps({"snapshotVersion": 1, "resources": [workspace("new")]})
        (folder / "next.json").write_bytes(content)
        (folder / "next.json").rename(folder / "state.json")
        ends = time.monotonic() + 60
        while not client.post("/v1/admit", json=patch).json()["allowed"] and time.monotonic() < ends:
            time.sleep(0.1)
        assert client.post("/v1/admit", json=patch).json()["allowed"] is True
        client.close()


def test_only_the_routes_that_are_wanted_are_there(folder: Path) -> None:
    """The server reports it in response to a request for another."""
    with running(folder, "--only", "admit", "--only", "check", "--snapshot", "state.json") as (_, address):
        responses = {route: httpx.post(f"{address}/v1/{route}", json=workspace("there")) for route in Route}
        paths = httpx.get(f"{address}/openapi.json").json()["paths"]

    assert {route for route, response in responses.items() if response.status_code == 200} == {Route.ADMIT, Route.CHECK}
    assert responses[Route.RESTRICTIONS].json()["detail"] == "`POST /v1/check-policy-restrictions` is not answered here"
    assert {path for path in paths if path.startswith("/v1/")} == {"/v1/admit", "/v1/check"}


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--host", "0.0.0.0"], 3, "--host: `0.0.0.0` is reachable from other machines"),  # noqa: S104  # what is refused
        (["--tokens", "nowhere"], 3, "nowhere: cannot read the tokens (no such file or directory)"),
        (["--snapshot", "nowhere.json"], 2, "nowhere.json: cannot be read (no such file or directory)"),
        (["--policy", "nowhere"], 3, "nowhere"),
        (["--exemptions", "nowhere.yaml"], 3, "nowhere.yaml"),
        (["--select", "nothing"], 3, "`nothing` is no policy id"),
        (["--fail-on", "loud"], 3, "invalid value `loud` for `fail_on`"),
        (["--host", "256.0.0.1", "--insecure-listen"], 3, "cannot listen on `256.0.0.1` port 8180"),
        (["--deadline", "0"], 3, "--deadline"),
        (["--only", "verify"], 3, "--only"),
        (["--host", "0.0.0.0", "--only", "check"], 3, "without authentication"),  # noqa: S104  # the same
    ],
)
def test_what_cannot_be_served_is_one_line(
    options: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its exit code."""
    assert cli.run(["serve", *options]) == code
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert message in printed.err


def test_policies_that_do_not_compile_are_not_served(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is reported at the start, not in response to the first request."""
    write(tmp_path, {"area/p.rego": rego("p", deny_when("nowhere(input.resource)"))})

    assert cli.run(["serve", "--policy", str(tmp_path)]) == 2
    assert "does not compile" in capsys.readouterr().err


def test_every_form_is_compiled_before_requests(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the start and with each reload, also what only values that are not known need."""
    compiled: list[object] = []
    compile_handled = Linked.compile_handled
    counts: list[int] = []

    def compile_and_count(linked: Linked) -> Compiled:
        compiled.append(linked)
        return compile_handled(linked)

    monkeypatch.setattr(Linked, "compile_handled", compile_and_count)

    def serve_once(service: Service, _: Callable[[str], None]) -> None:
        for value in ("Failed", "Canceled"):
            # The service sets this value, so that it is not known from a manifest.
            policy = rego("limit", deny_when(f'input.resource.properties.provisioningState == "{value}"'))
            write(folder, {"bundle/area/limit.rego": policy})
            service.setup.reload()
            assert service.setup.fault is None
            counts.append(len(compiled))
            response = send_to(service, "/v1/admission-review", review_of("CREATE", workspace_object())).json()
            assert "provisioningState" in str(response["response"])
            counts.append(len(compiled))

    monkeypatch.setattr("policyeng.server.run.serve", serve_once)
    monkeypatch.setenv("POLICYENG_NO_CACHE", "1")
    monkeypatch.chdir(folder)

    assert cli.run(["serve", "--policy", "bundle", "--snapshot", "state.json"]) == 0
    # The bundle of the fixture is compiled first.
    assert counts == [2, 2, 3, 3]


def test_a_port_that_is_taken_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    """With what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert cli.run(["serve", "--port", str(port)]) == 3
    assert f"`127.0.0.1` port {port} (address already in use); give another" in capsys.readouterr().err


def test_without_the_extra_it_shows_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A usage error."""
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert cli.run(["serve"]) == 3
    assert "pip install 'policyeng[server]'" in capsys.readouterr().err
