"""The log of `serve` and of `audit schedule`: one form, a line for each request, and nothing that a caller sent."""

from __future__ import annotations

import logging
import signal
from pathlib import Path

import httpx
import orjson
import pytest

from policyeng.cli.logs import LogOptions
from policyeng.errors import UsageError
from policyeng.models import JsonObject
from policyeng.server.authentication import digest_of
from tests.bundles import workspace, write
from tests.command import policyeng
from tests.servers import POLICY
from tests.test_cli_serve import running

_TOKEN = "the-secret-of-the-pipeline"  # noqa: S105  # of this test alone
_ALL = frozenset({"time", "level", "component", "message"})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a bundle, a state and a token."""
    write(tmp_path, {"bundle/area/limit.rego": POLICY})
    (tmp_path / "state.json").write_bytes(orjson.dumps({"snapshotVersion": 1, "resources": [workspace("there")]}))
    (tmp_path / "tokens.txt").write_text(f"ci check,admit sha256:{digest_of(_TOKEN).hex()}\n")
    return tmp_path


def log_of(folder: Path, level: str, *options: str) -> str:
    """The log of a server after requests for health, a decision without and with its token, and what does not exist."""
    given = ("--snapshot", "state.json", "--tokens", "tokens.txt", *options)
    with running(folder, *given, log_level=level) as (server, address):
        httpx.get(f"{address}/healthz")
        httpx.post(f"{address}/v1/admit", json=workspace("there", x=2))
        headers = {"Authorization": f"Bearer {_TOKEN}", "X-Request-Id": "build-7"}
        httpx.post(f"{address}/v1/admit?standing=true", json=workspace("private-name", x=2), headers=headers)
        httpx.get(f"{address}/password-in-a-path")
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
        assert server.stderr is not None
        return server.stderr.read()


@pytest.mark.slow
def test_each_request_has_a_line(folder: Path) -> None:
    """Method, route, status, duration and request id; neither tokens nor bodies nor paths that are no routes."""
    log = log_of(folder, "info", "--log-format", "json")

    lines: list[JsonObject] = [orjson.loads(line) for line in log.splitlines()]
    assert [(line["method"], line["route"], line["status"]) for line in lines] == [
        ("POST", "/v1/admit", 401),
        ("POST", "/v1/admit", 200),
        ("GET", "-", 404),
    ]
    assert {frozenset(line) for line in lines} == {
        _ALL.union(("method", "route", "status", "duration_ms", "request_id"))
    }
    assert (lines[1]["component"], lines[1]["level"], lines[1]["request_id"]) == ("access", "info", "build-7")
    assert 0 < lines[1]["duration_ms"] < 60_000
    for secret in (_TOKEN, "private-name", "password-in-a-path", "standing"):
        assert secret not in log


@pytest.mark.slow
def test_the_text_has_the_same(folder: Path) -> None:
    """And probes are there at the level of debugging."""
    first, *_, last = log_of(folder, "debug").splitlines()

    time, level, component, *message = first.split()
    assert (time[-1], level, component) == ("Z", "DEBUG", "access:")
    assert message[:3] == ["GET", "/healthz", "200"]
    assert "INFO access: GET - 404 " in last


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_fault_is_logged_in_the_same_form(folder: Path, workers: str) -> None:
    """A changed file that cannot be read, whatever process notices it."""
    options = ("--snapshot", "state.json", "--workers", workers, "--log-format", "json")
    with running(folder, *options) as (server, address):
        (folder / "state.json").write_text("{")
        server.send_signal(signal.SIGHUP)
        while not httpx.get(f"{address}/readyz").json()["faults"]:
            pass
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
        assert server.stderr is not None
        lines = [orjson.loads(line) for line in server.stderr.read().splitlines()]

    assert lines
    for entry in lines:  # one for each attempt to read it
        assert (entry.keys(), entry["level"], entry["component"]) == (_ALL, "warning", "server")
        assert entry["message"].startswith("state: reload failed, the last good version stays active: ")


def test_the_schedule_logs_its_audits(folder: Path) -> None:
    """With the numbers of the run as fields."""
    (folder / "policyeng.toml").write_text('[[estates]]\nname = "e"\ninputs = ["state.json"]\nevery = "PT1H"\n')
    ran = policyeng("audit", "schedule", "--once", "--policy", "bundle", "--log-format", "json", folder=folder)

    assert ran.returncode == 0, ran.stderr
    entry = orjson.loads(ran.stderr)
    assert (entry["component"], entry["estate"], entry["run"], entry["parts"], entry["failures"]) == (
        "schedule",
        "e",
        1,
        1,
        0,
    )
    assert entry["message"].startswith("e: run 1: 1 part, 0 failures ")


@pytest.mark.usefixtures("root_logger")
def test_internal_errors_keep_their_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    """As lines of text or as one field; what a message quotes cannot begin a line of its own."""
    for format_ in ("text", "json"):
        LogOptions(log_format=format_).start_logging()
        try:
            int("x")
        except ValueError:
            logging.getLogger("policyeng.server").exception("request %s", "a\nINFO access: forged")
    first, *_, last = capsys.readouterr().err.splitlines()

    assert first.endswith("ERROR server: request a\\nINFO access: forged")
    assert orjson.loads(last)["exception"].endswith("literal for int() with base 10: 'x'")


@pytest.mark.usefixtures("root_logger")
def test_libraries_log_warnings_in_the_same_form(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing below, and no level of ours can change that."""
    LogOptions(log_level="debug").start_logging()
    logging.getLogger("uvicorn.error").info("started")
    logging.getLogger("uvicorn.error").warning("invalid request")

    assert capsys.readouterr().err.endswith("WARNING uvicorn.error: invalid request\n")


@pytest.fixture
def root_logger(monkeypatch: pytest.MonkeyPatch) -> None:
    """The root logger and ours as they were before."""
    monkeypatch.setattr(logging.root, "handlers", [])
    monkeypatch.setattr(logging.root, "level", logging.root.level)
    ours = logging.getLogger("policyeng")
    monkeypatch.setattr(ours, "level", ours.level)


def test_what_is_unknown_is_refused() -> None:
    """With what is known."""
    with pytest.raises(UsageError, match="choose from debug, info, warning, error"):
        LogOptions(log_level="loud").start_logging()
    with pytest.raises(UsageError, match="choose from text, json"):
        LogOptions(log_format="xml").start_logging()
