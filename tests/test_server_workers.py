"""Several workers behind one port: killed, reloaded, refused together, and stopped, under load."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.bundles import deny_when, rego, workspace, write
from tests.test_cli_serve import running
from tests.test_engines_opa_server import runs
from tests.test_server_running import ALLOWED, DENIED, Load, entries_in, errors_of, refuses, wait_for
from tests.test_server_tokens import line

#: Enough clients that each of the workers gets one with near certainty.
CLIENTS = 8
OPTIONS = ("--workers", "2", "--snapshot", "state.json", "--decision-log", "log")


def workers_of(server: subprocess.Popen[str]) -> list[int]:
    """The processes that a server has started."""
    return [int(process) for process in Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()]


def metrics_of(address: str) -> dict[tuple[str, ...], float]:
    """The metrics, by name and the values of labels in the order of their names."""
    families = text_string_to_metric_families(httpx.get(f"{address}/metrics").text)
    return {(sample.name, *sample.labels.values()): sample.value for family in families for sample in family.samples}


def stopped(server: subprocess.Popen[str]) -> str:
    """End a server, which ends well, and return its standard error."""
    server.send_signal(signal.SIGTERM)
    assert server.wait(60) == 0
    return errors_of(server)


@pytest.mark.slow
def test_all_workers_respond_and_count_together(folder: Path) -> None:
    """There is one log with every decision, and one page of metrics with the sums; nothing is printed."""
    with running(folder, *OPTIONS) as (server, address):
        assert len(workers_of(server)) == 2
        load = Load(address, clients=CLIENTS)
        wait_for(lambda: load.seen.total() > 100)
        load.end()
        responses = load.seen["200 False"]
        settled = {("policyeng_decision_log_entries_total", "written"): responses, ("policyeng_queue_requests",): 0}
        wait_for(lambda: settled.items() <= metrics_of(address).items())
        counted = metrics_of(address)
        assert stopped(server) == ""
    entries = entries_in(folder / "log")

    assert load.seen.keys() == {"200 False"}
    assert len({entry["decision_id"] for entry in entries}) == len(entries) == responses
    assert counted["policyeng_admission_requests_total", "deny", "deny", "admit"] == responses
    assert counted["policyeng_admission_duration_seconds_count", "admit"] == responses
    assert counted["policyeng_evaluations_total", "fail", "T-A-1"] == responses
    assert counted["policyeng_queue_places",] == 68


@pytest.mark.slow
def test_a_worker_that_is_killed_under_load_is_replaced(folder: Path) -> None:
    """Others respond meanwhile; every line of the log is whole, and what was counted stays counted."""
    with running(folder, *OPTIONS) as (server, address):
        load = Load(address, clients=CLIENTS)
        for kills in range(1, 4):
            so_far, before = load.seen["200 False"], workers_of(server)
            wait_for(lambda so_far=so_far: load.seen["200 False"] > so_far + 50)  # type: ignore[misc]
            os.kill(before[kills % 2], signal.SIGKILL)
            wait_for(lambda before=before: len({*workers_of(server)} - {*before}) == 1)  # type: ignore[misc]
        so_far = load.seen["200 False"]
        wait_for(lambda: load.seen["200 False"] > so_far + 50)
        load.end()
        counted = metrics_of(address)["policyeng_admission_requests_total", "deny", "deny", "admit"]
        messages = stopped(server).splitlines()
    entries = entries_in(folder / "log")
    decided = {entry["decision_id"] for entry in entries if "decision_id" in entry}

    assert len(messages) == 3
    assert all(text.endswith("was ended by signal 9; another takes its place") for text in messages)
    broken = sum(count for kind, count in load.seen.items() if not kind.startswith("200"))
    assert set(load.seen) - {"200 False"} <= {"ReadError", "RemoteProtocolError", "WriteError", "ConnectError"}
    # Of each client that was cut off, the decision may be made and its response lost, or its entry still to be written.
    lost = 3 * CLIENTS
    assert broken <= 2 * lost
    assert load.seen["200 False"] - lost <= len(decided) <= load.seen["200 False"] + lost
    assert load.seen["200 False"] <= counted <= load.seen["200 False"] + lost


@pytest.mark.slow
def test_all_workers_have_the_same_in_force(folder: Path) -> None:
    """A bad bundle is active in none, a good one in all; a worker that starts later has what the others have."""
    bad, good = "package area.limit\n\ndeny contains {", rego("limit", deny_when("input.resource.properties.x > 5"))

    def responses_to(path: str) -> list[httpx.Response]:
        """Those to requests on many connections, so that each worker gives some."""
        return [httpx.get(address + path) for _ in range(2 * CLIENTS)]

    def decisions() -> Counter[bool]:
        """The decisions on many connections."""
        return Counter(httpx.post(f"{address}/v1/admit", json=DENIED).json()["allowed"] for _ in range(2 * CLIENTS))

    with running(folder, *OPTIONS) as (server, address):
        write(folder, {"bundle/area/limit.rego": bad})
        server.send_signal(signal.SIGHUP)
        wait_for(lambda: all("x-policyeng-degraded" in each.headers for each in responses_to("/readyz")))
        assert {"limit.rego" in each.json()["faults"][0] for each in responses_to("/readyz")} == {True}
        assert decisions() == {False: 2 * CLIENTS}
        (first, *_) = workers_of(server)
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: first not in workers_of(server) and len(workers_of(server)) == 2)
        wait_for(lambda: all("x-policyeng-degraded" in each.headers for each in responses_to("/readyz")))
        assert decisions() == {False: 2 * CLIENTS}
        assert metrics_of(address)["policyeng_bundle_load_failures_total",] == 1

        write(folder, {"bundle/area/limit.rego": good})
        server.send_signal(signal.SIGHUP)
        wait_for(lambda: not any("x-policyeng-degraded" in each.headers for each in responses_to("/readyz")))
        assert decisions() == {True: 2 * CLIENTS}
        (_, second) = workers_of(server)
        os.kill(second, signal.SIGKILL)
        wait_for(lambda: second not in workers_of(server) and len(workers_of(server)) == 2)
        assert decisions() == {True: 2 * CLIENTS}
        stopped(server)


@pytest.mark.slow
def test_changes_that_one_worker_allows_count_in_all(folder: Path) -> None:
    """So that a violation cannot be split over workers."""
    policy = rego("limit", deny_when("count(input.snapshot.resources) > 3"))
    write(folder, {"bundle/area/limit.rego": policy})
    with running(folder, *OPTIONS) as (server, address):
        allowed = [
            httpx.post(f"{address}/v1/admit", json=workspace(f"new{number}")).json()["allowed"]
            for number in range(2 * CLIENTS)
        ]
        stopped(server)

    assert allowed == [True] * 2 + [False] * (2 * CLIENTS - 2)


@pytest.mark.slow
def test_whoever_signs_in_has_signed_in_with_all(folder: Path) -> None:
    """Signing out ends the session in all workers."""
    (folder / "tokens").write_text(line("alice", "history", "open"), encoding="utf-8")
    command = ("--tokens", "tokens", "--store", "sqlite:///audits.db", "--workers", "2")
    audit = ("audit", "run", "--input", "state.json", "--policy", "bundle", "--estate", "production")
    subprocess.run([sys.executable, "-m", "policyeng", *audit], cwd=folder, check=False, capture_output=True)
    with running(folder, *command) as (server, address):
        response = httpx.post(f"{address}/sign-in", data={"token": "open"})
        cookies = {"policyeng": response.cookies["policyeng"]}
        seen = {httpx.get(f"{address}/", cookies=cookies).status_code for _ in range(2 * CLIENTS)}
        httpx.post(f"{address}/sign-out", cookies=cookies)
        after = {httpx.get(f"{address}/", cookies=cookies).status_code for _ in range(2 * CLIENTS)}
        stopped(server)

    assert (seen, after) == ({200}, {303})


@pytest.mark.slow
def test_all_of_them_end_with_who_started_them(folder: Path) -> None:
    """Stopped, they respond to all requests; when it is killed, they are gone, and another server can begin."""
    with running(folder, *OPTIONS, "--drain-seconds", "1") as (server, address):
        load = Load(address, clients=CLIENTS)
        wait_for(lambda: load.seen.total() > 50)
        started = workers_of(server)
        server.send_signal(signal.SIGTERM)
        wait_for(lambda: refuses(address))
        assert (server.wait(60), errors_of(server)) == (0, "")
        load.end()
        assert not any(Path(f"/proc/{process}").exists() for process in started)
    assert set(load.seen) <= {"200 False", "ConnectError"}
    assert len(entries_in(folder / "log")) == load.seen["200 False"]

    with running(folder, *OPTIONS) as (server, address):
        started = workers_of(server)
        server.kill()
        server.wait(60)
        wait_for(lambda: refuses(address))
        wait_for(lambda: not any(runs(process) for process in started))
    with running(folder, *OPTIONS) as (server, address):
        assert httpx.post(f"{address}/v1/admit", json=ALLOWED).json()["allowed"] is True
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
