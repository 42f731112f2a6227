"""The schedule as a process: audits at their times, signals, and what goes wrong."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import orjson
import pytest

from policyeng.audit.records import AuditRun
from policyeng.audit.scheduler import Auditing, Schedule
from policyeng.audit.store import open_store
from policyeng.audit.store.connection import run_lock
from policyeng.configuration import resolve
from policyeng.engines import OpaOptions
from tests.audits import POLICIES
from tests.bundles import workspace, write
from tests.command import ROOT, policyeng
from tests.receiving import WebServer, listening

#: Seconds after which something that should have come does not.
_PATIENCE = 60


class Folder:
    """A folder with policies, two parts and a configuration; its store is `audits.db`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.url = f"sqlite:///{path}/audits.db"
        write(path / "policies", dict(POLICIES))
        for name, x in (("a", 1), ("b", 0)):
            self.part(name, x)

    def part(self, name: str, x: int) -> None:
        """Write a part with one workspace."""
        content = orjson.dumps({"snapshotVersion": 1, "resources": [workspace(name, x=x, owner="o")]})
        (self.path / f"{name}.json").write_bytes(content)

    def configure(self, *tables: str) -> None:
        """Write the configuration."""
        text = "\n".join(['store = "sqlite:///audits.db"', *tables])
        (self.path / "policyeng.toml").write_text(text, encoding="utf-8")

    def runs(self, estate: str) -> list[AuditRun]:
        """The runs of an estate."""
        with open_store(self.url) as store:
            return list(store.runs(estate))


def estate(name: str, what: str, **more: str) -> str:
    """An `[[estates]]` table."""
    lines = "".join(f'{key} = "{value}"\n' for key, value in more.items())
    return f'[[estates]]\nname = "{name}"\ninputs = ["{what}"]\n{lines}'


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """A folder to schedule in."""
    return Folder(tmp_path)


class Scheduled:
    """A schedule in a process of its own, whose lines are read as they come."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        self._coming: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._coming.put(line.rstrip("\n"))

    def until(self, message: str) -> str:
        """The next line with a message."""
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            with suppress(queue.Empty):
                self.lines.append(self._coming.get(timeout=1))
                if message in self.lines[-1]:
                    return self.lines[-1]
        pytest.fail(f"no line has {message!r}: {self.lines}")

    def once(self, message: str) -> None:
        """Wait for a line with a message, if there is none already: audits side by side end in any order."""
        if not any(message in line for line in self.lines):
            self.until(message)

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def ended(self) -> int:
        """The exit, once it has ended; `lines` has all of its output."""
        code = self.process.wait(_PATIENCE)
        self._reader.join()
        while not self._coming.empty():
            self.lines.append(self._coming.get())
        return code


@contextmanager
def scheduled(folder: Folder, *more: str, **environ: str) -> Iterator[Scheduled]:
    """Start a schedule; it is killed in the end where it still is."""
    line = [sys.executable, "-m", "policyeng", "audit", "schedule", "--policy", "policies", *more]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **environ}
    with subprocess.Popen(line, cwd=folder.path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        started = Scheduled(process)
        try:
            yield started
        finally:
            process.kill()
            started.ended()


class SlowServer(ThreadingHTTPServer):
    """A snapshot at a URL that is served when `released` is set; `requested` is set by a request."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Slow)
        self.requested = threading.Event()
        self.released = threading.Event()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.server_port}/snapshot.json"


class _Slow(BaseHTTPRequestHandler):
    server: SlowServer

    def do_GET(self) -> None:
        """Respond when it is time."""
        self.server.requested.set()
        self.server.released.wait(_PATIENCE)
        content = orjson.dumps({"snapshotVersion": 1, "resources": [workspace("slow", x=0, owner="o")]})
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # as the library calls it
        """Print nothing."""


@pytest.fixture
def slow() -> Iterator[SlowServer]:
    """A snapshot that takes as long as the test wants."""
    server = SlowServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.released.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.slow
def test_estates_are_audited_again_and_again_until_the_end(folder: Folder) -> None:
    """One line for each audit, with what changed; SIGTERM ends it with exit 0."""
    folder.configure(estate("one", "a.json", every="PT1S"), estate("two", "b.json"))
    with scheduled(folder) as schedule:
        first = schedule.until("one: run 1:")
        folder.part("a", 0)
        schedule.until("(0 new, 1 fixed)")
        schedule.send(signal.SIGTERM)
        assert schedule.ended() == 0

    assert "1 part, 1 failure (1 new, 0 fixed), exit 1" in first
    assert datetime.fromisoformat(first.split()[0]) <= datetime.now(UTC)
    numbers = [run.number for run in folder.runs("one")]
    assert numbers == list(range(1, len(numbers) + 1))
    assert folder.runs("two") == []


@pytest.mark.slow
def test_the_audit_under_way_is_ended_before_the_schedule(folder: Folder, slow: SlowServer) -> None:
    """It is kept, as is another that ended before."""
    folder.configure(estate("slow", slow.url, every="PT1H"), estate("then", "b.json", every="PT1H"))
    with scheduled(folder) as schedule:
        assert slow.requested.wait(_PATIENCE)
        schedule.until("then: run ")
        schedule.send(signal.SIGTERM)
        schedule.until("slow: waiting up to")
        slow.released.set()
        schedule.until("slow: run ")
        assert schedule.ended() == 0

    assert [len(folder.runs(name)) for name in ("slow", "then")] == [1, 1]


@pytest.mark.slow
def test_an_audit_that_does_not_end_in_time_is_left(folder: Folder, slow: SlowServer) -> None:
    """The schedule ends with exit 0 all the same, prints it, and the store has no half of it."""
    folder.configure(estate("slow", slow.url, every="PT1H"))
    with scheduled(folder, "--drain-seconds", "0.2") as schedule:
        assert slow.requested.wait(_PATIENCE)
        schedule.send(signal.SIGINT)
        assert schedule.ended() == 0

    assert "slow: not audited: it did not end in time; earlier runs are unchanged" in schedule.lines[-1]
    assert folder.runs("slow") == []


@pytest.mark.slow
def test_a_second_signal_ends_it_at_once(folder: Folder, slow: SlowServer) -> None:
    """With the exit that shells give for it."""
    folder.configure(estate("slow", slow.url, every="PT1H"))
    with scheduled(folder) as schedule:
        assert slow.requested.wait(_PATIENCE)
        schedule.send(signal.SIGTERM)
        schedule.until("slow: waiting up to")
        schedule.send(signal.SIGTERM)
        assert schedule.ended() == 128 + signal.SIGTERM

    assert folder.runs("slow") == []


@pytest.mark.slow
def test_the_configuration_is_read_again(folder: Folder, slow: SlowServer) -> None:
    """A faulty one changes nothing; an estate that waits and is gone then is dropped, and a new one is audited."""
    kept = estate("slow", slow.url, every="PT1H")
    folder.configure(
        kept,
        estate("waiting", "b.json", every="PT1H"),
        estate("later", "b.json", cron=f"0 {(datetime.now(UTC).hour + 12) % 24} * * *"),
    )
    with scheduled(folder) as schedule:
        assert slow.requested.wait(_PATIENCE)
        folder.configure(kept, estate("bad", "b.json", cron="0 3 * * 9"))
        schedule.send(signal.SIGHUP)
        assert "(bad day-of-week)" in schedule.until("the configuration is unchanged")
        folder.configure(kept, "nonsense = 1")
        schedule.send(signal.SIGHUP)
        assert "unknown key `nonsense`" in schedule.until("the configuration is unchanged")

        folder.configure(kept, estate("new", "a.json", every="PT1H"))
        schedule.send(signal.SIGHUP)
        schedule.once("waiting: run ")
        schedule.once("read the configuration again")
        assert {"waiting: no longer audited", "later: no longer audited"} <= {
            line.partition(" schedule: ")[2] for line in schedule.lines
        }
        schedule.once("new: run ")
        slow.released.set()
        schedule.once("slow: run ")
        schedule.send(signal.SIGTERM)
        assert schedule.ended() == 0

    assert [len(folder.runs(name)) for name in ("slow", "waiting", "later", "new")] == [1, 1, 0, 1]


@pytest.mark.slow
def test_an_estate_that_waits_for_a_server_delays_no_other(folder: Folder, slow: SlowServer) -> None:
    """The other is audited again and again meanwhile."""
    folder.configure(estate("slow", slow.url, every="PT1H"), estate("quick", "b.json", every="PT1S"))
    with scheduled(folder) as schedule:
        assert slow.requested.wait(_PATIENCE)
        for number in (1, 2):
            schedule.until(f"quick: run {number}:")
        slow.released.set()
        schedule.until("slow: run ")
        schedule.send(signal.SIGTERM)
        assert schedule.ended() == 0


def test_an_estate_that_was_removed_while_it_waited_is_not_audited(
    folder: Folder, caplog: pytest.LogCaptureFixture
) -> None:
    """Where more are due than are audited at once."""
    folder.configure(estate("one", "a.json", every="PT1H"))
    auditing = Auditing(lambda _: pytest.fail("audited"), "embedded", OpaOptions(), 1, False, {})
    schedule = Schedule(lambda: resolve({}, {}, folder.path), auditing, drain=0)
    caplog.set_level("INFO", "policyeng.schedule")

    schedule._audit("gone", datetime.now(UTC))

    assert caplog.messages == ["gone: dropped while it waited"]


def test_an_audit_that_waited_longer_than_its_grace_period_is_missed(
    folder: Folder, caplog: pytest.LogCaptureFixture
) -> None:
    """The schedule reports the time of the missed audit."""
    folder.configure(estate("one", "a.json", cron="0 3 * * *", grace="PT1M"))
    auditing = Auditing(lambda _: pytest.fail("audited"), "embedded", OpaOptions(), 1, False, {})
    schedule = Schedule(lambda: resolve({}, {}, folder.path), auditing, drain=0)

    schedule._audit("one", datetime(2026, 1, 1, 3, tzinfo=UTC))

    assert caplog.messages == ["one: not audited: missed at 2026-01-01T03:00:00Z, too late to be made up for"]


def test_jitter_delays_the_next_audit(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a part of the jitter, from the newest of several missed times."""
    folder.configure(estate("one", "a.json", cron="0 3 * * *", jitter="PT10M"))
    monkeypatch.setattr("random.random", lambda: 0.5)
    auditing = Auditing(lambda _: pytest.fail("audited"), "embedded", OpaOptions(), 1, False, {})
    schedule = Schedule(lambda: resolve({}, {}, folder.path), auditing, drain=0)
    schedule._ending.set()

    schedule._submit(schedule._plans["one"], datetime(2026, 6, 8, 3, tzinfo=UTC), datetime(2026, 6, 10, 4, tzinfo=UTC))

    assert schedule._next["one"] == datetime(2026, 6, 11, 3, 5, tzinfo=UTC)


@pytest.mark.slow
def test_no_estate_is_audited_twice_at_once(folder: Folder, slow: SlowServer) -> None:
    """Neither by this schedule, whose next time is passed over, nor next to another process."""
    folder.configure(estate("slow", slow.url, every="PT1S"), estate("taken", "b.json", every="PT1H"))
    with open_store(folder.url, create=True) as store, run_lock(store.engine, "taken"), scheduled(folder) as schedule:
        assert slow.requested.wait(_PATIENCE)
        schedule.until("slow: skipped: its last audit is still waiting or running")
        slow.released.set()
        schedule.once("taken: skipped: another process is auditing it")
        schedule.send(signal.SIGTERM)
        assert schedule.ended() == 0


@pytest.mark.slow
def test_an_estate_that_cannot_be_audited_is_reported_and_delays_no_other(folder: Folder) -> None:
    """Also to the targets that it concerns; policies are read again for each audit."""
    with listening(WebServer()) as web:
        notify = f'[[notify]]\nname = "ops"\nurl = "json://{web.address}/hook"'
        folder.configure(estate("one", "a.json", every="PT1S"), notify)
        write(folder.path / "policies", {"area/x/x.rego": f"{POLICIES['area/x/x.rego']}\nnonsense"})
        with scheduled(folder) as schedule:
            schedule.until("one: not audited: ")
            schedule.until("notify ops: 1 message sent")
            write(folder.path / "policies", dict(POLICIES))
            schedule.until("one: run 1:")
            schedule.until("sent")
            schedule.send(signal.SIGTERM)
            assert schedule.ended() == 0

    titles = [body["title"] for body in web.bodies]
    assert titles[0] == "policyeng: one: could not be audited"
    assert titles[-1] == "policyeng: one: 1 finding to begin with"
    assert not any("Traceback" in line for line in schedule.lines)


def test_once_audits_what_is_due_and_ends(folder: Folder) -> None:
    """What is not due, or was audited since it was, is left; findings are no failure of the schedule."""
    now = datetime.now(UTC)
    past = now - timedelta(minutes=30)
    ahead = now + timedelta(hours=2)
    folder.configure(
        estate("missed", "a.json", cron=f"{past.minute} {past.hour} * * *"),
        estate("late", "a.json", cron=f"{past.minute} {past.hour} * * *", grace="PT10M"),
        estate("ahead", "a.json", cron=f"{ahead.minute} {ahead.hour} * * *"),
        estate("every", "a.json", every="PT1H"),
        estate("never", "a.json"),
    )
    first = policyeng("audit", "schedule", "--once", "--policy", "policies", folder=folder.path)
    second = policyeng("audit", "schedule", "--once", "--policy", "policies", folder=folder.path)

    assert (first.returncode, second.returncode, second.stderr) == (0, 0, "")
    assert [line.split()[3] for line in first.stderr.splitlines()] == ["missed:", "every:"]


def test_once_fails_where_one_cannot_be_audited(folder: Folder) -> None:
    """Exit 2, and the others are audited."""
    folder.configure(estate("one", "a.json", every="PT1H"), estate("two", "b.json", every="PT1H"))
    with open_store(folder.url, create=True) as store, run_lock(store.engine, "one"):
        ran = policyeng("audit", "schedule", "--once", "--policy", "policies", folder=folder.path)

    assert ran.returncode == 2
    assert [len(folder.runs(name)) for name in ("one", "two")] == [0, 1]


def test_the_list_states_when(folder: Folder) -> None:
    """In UTC and in the time zone of the estate; it makes no store."""
    folder.configure(
        estate("night", "a.json", cron="30 2 * * *", timezone="Europe/Berlin", grace="PT0S"),
        estate("due", "a.json", every="PT6H"),
        estate("never", "a.json"),
    )
    ran = policyeng("audit", "schedule", "--list", folder=folder.path)

    night, due, never = ran.stdout.splitlines()
    assert night.startswith("night  next 20")
    assert "T02:30:00+0" in night
    assert night.endswith("Europe/Berlin); never audited")
    assert due == "due  due now; never audited"
    assert never == "never  not scheduled; run `policyeng audit run`"
    assert not (folder.path / "audits.db").exists()


@pytest.mark.parametrize(
    ("table", "arguments", "message"),
    [
        (estate("one", "a.json"), (), "no estate has audit times"),
        (
            estate("one", "a.json", cron="0 3 * * 9"),
            (),
            "estate one: `0 3 * * 9` is not a cron expression (bad day-of-week)",
        ),
        (estate("one", "a.json", every="PT1H"), ("--once", "--list"), "`--once` and `--list` cannot be combined"),
        (estate("one", "a.json", every="PT1H"), ("--store", "mysql://x"), "is no URL of a store"),
    ],
)
def test_what_cannot_be_scheduled_is_refused_at_once(
    folder: Folder, table: str, arguments: tuple[str, ...], message: str
) -> None:
    """With exit 3 and a remedy."""
    folder.configure(table)
    ran = policyeng("audit", "schedule", *arguments, folder=folder.path)

    assert (ran.returncode, ran.stdout) == (3, "")
    assert message in ran.stderr
