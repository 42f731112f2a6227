"""Messages wait in the store until they were sent, on both databases, whoever is killed."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest

from policyeng.audit.store import open_store
from policyeng.audit.store.integrity import verify
from policyeng.audit.store.outbox import Message, Outbox
from tests.audits import POLICIES, Audited
from tests.bundles import workspace, write
from tests.command import ROOT, policyeng
from tests.receiving import WebServer, listening

NOW = datetime(2026, 6, 10, 3, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def message(title: str, target: str = "ops") -> Message:
    """A message of a title."""
    return Message(target=target, estate="production", title=title, body="b\0\\0 \u202e")


def test_messages_wait_until_they_are_sent(tmp_path: Path, store_url: str) -> None:
    """With all of their content; those that went out together count as one."""
    audited = Audited(tmp_path, store_url)
    outbox = Outbox(audited.store)
    assert (outbox.last_notified("production"), outbox.unsent()) == (None, [])
    assert outbox.put_run("production", None, 1, [message("one"), message("two"), message("three", "other")], NOW)
    assert not outbox.put_run("production", None, 1, [message("again")], NOW)
    assert outbox.put_run("production", 1, 2, [], NOW)
    assert not outbox.put_run("production", 1, 2, [message("again")], NOW)

    due = outbox.due("ops", NOW)
    assert [(each.title, each.body, each.created) for each in due] == [
        ("one", "b\0\\0 \u202e", NOW),
        ("two", "b\0\\0 \u202e", NOW),
    ]
    assert outbox.claim(due, NOW) == due
    assert outbox.claim(due, NOW) == []
    assert outbox.due("ops", NOW) == []
    outbox.sent(due, NOW)
    assert outbox.sent_since("ops", NOW - MINUTE) == 1
    assert outbox.sent_since("ops", NOW) == outbox.sent_since("other", NOW - MINUTE) == 0
    assert [each.title for each in outbox.unsent()] == ["three"]
    audited.close()


def test_what_failed_is_due_ever_later(tmp_path: Path, store_url: str) -> None:
    """Those behind it wait with it; a command makes it due at once."""
    audited = Audited(tmp_path, store_url)
    outbox = Outbox(audited.store)
    outbox.put([message("one"), message("two")], NOW)
    waits = []
    for _ in range(10):
        first, second = outbox.due("ops", NOW)
        at = first.due
        outbox.claim([first], at)
        outbox.failed([first], "no answer", [second])
        left = {each.title: each for each in outbox.unsent()}
        waits.append((left["one"].due - at, left["two"].due - at) if first.title == "one" else None)
        outbox.retry(["ops"], NOW)
    assert waits[0] == (MINUTE, MINUTE)
    assert [each.fault for each in outbox.unsent()] == ["no answer", ""]
    outbox.retry(["others"], NOW - MINUTE)
    assert {each.due for each in outbox.unsent()} == {NOW}
    audited.close()


def test_messages_are_no_part_of_what_is_verified(tmp_path: Path, store_url: str) -> None:
    """The chain of runs is valid whatever is notified."""
    audited = Audited(tmp_path, store_url)
    audited.audit()
    Outbox(audited.store).put_run("production", None, 1, [message("one")], NOW)

    assert not verify(audited.store).faults
    audited.close()


def configured(folder: Path, url: str, store: str, **more: str) -> None:
    """Policies, a part that fails, and a configuration with a target."""
    write(folder / "policies", dict(POLICIES))
    part = {"snapshotVersion": 1, "resources": [workspace("one", x=1, owner="o")]}
    (folder / "part.json").write_bytes(orjson.dumps(part))
    lines = "".join(f"{key} = {value}\n" for key, value in more.items())
    text = f'store = "{store}"\n[[estates]]\nname = "production"\ninputs = ["part.json"]\n'
    (folder / "policyeng.toml").write_text(f'{text}[[notify]]\nname = "ops"\nurl = "{url}"\n{lines}', encoding="utf-8")


@pytest.mark.slow
def test_an_audit_that_is_killed_while_it_notifies_loses_nothing(tmp_path: Path, store_url: str) -> None:
    """Its run is kept, and its message is sent again once it is due: twice rather than never."""
    with listening(WebServer()) as web:
        web.released.clear()
        configured(tmp_path, f"json://{web.address}/hook", store_url)
        line = [sys.executable, "-m", "policyeng", "audit", "run", "--policy", "policies"]
        environ = {**os.environ, "PYTHONPATH": str(ROOT)}
        with subprocess.Popen(line, cwd=tmp_path, env=environ, stdout=subprocess.DEVNULL) as process:
            assert web.came.wait(60)
            process.kill()
        web.released.set()
        with open_store(store_url) as store:
            assert len(store.runs("production")) == 1
            [notice] = Outbox(store).unsent()
            assert notice.attempts == 1
        again = policyeng("audit", "notify", "--retry", folder=tmp_path)

    assert (again.returncode, again.stdout) == (0, "notify ops: 1 message sent\n")
    assert [body["title"] for body in web.bodies] == ["policyeng: production: 1 finding to begin with"] * 2


def test_an_audit_that_is_killed_before_it_notifies_is_notified_by_the_next(tmp_path: Path, store_url: str) -> None:
    """What was not notified is found in the runs."""
    with listening(WebServer()) as web:
        configured(tmp_path, f"json://{web.address}/hook", store_url)
        policyeng("audit", "run", "--policy", "policies", folder=tmp_path)
        (tmp_path / "part.json").write_bytes(b'{"snapshotVersion": 1, "resources": []}')
        text = (tmp_path / "policyeng.toml").read_text(encoding="utf-8")
        (tmp_path / "policyeng.toml").write_text(text.partition("[[notify]]")[0], encoding="utf-8")
        policyeng("audit", "run", "--policy", "policies", folder=tmp_path)  # as if it ended here
        (tmp_path / "policyeng.toml").write_text(text, encoding="utf-8")
        policyeng("audit", "run", "--policy", "policies", folder=tmp_path)

    assert "since run 1" in web.bodies[1]["message"]


def test_a_failed_notification_changes_no_exit_and_is_listed(tmp_path: Path) -> None:
    """It is reported on standard error, and listed until it was sent."""
    with listening(WebServer()) as web:
        web.status = 500
        configured(tmp_path, f"json://{web.address}/hook", "sqlite:///audits.db")
        ran = policyeng("audit", "run", "--policy", "policies", folder=tmp_path)
        listed = policyeng("audit", "notify", "--list", folder=tmp_path)
        document = policyeng("audit", "notify", "--format", "json", folder=tmp_path)
        failed = policyeng("audit", "notify", "--retry", folder=tmp_path)
        web.status = 200
        sent = policyeng("audit", "notify", "--retry", "ops", folder=tmp_path)
        nothing = policyeng("audit", "notify", "--list", folder=tmp_path)

    assert ran.returncode == 1
    assert ran.stderr.startswith("policyeng: notify ops: 1 not sent and tried again later (")
    assert "production: 1 finding to begin with\n  1 attempt, last error: " in listed.stdout
    [notice] = orjson.loads(document.stdout)["notices"]
    assert (notice["target"], notice["attempts"], notice["givenUp"], notice["configured"]) == ("ops", 1, False, True)
    assert (failed.returncode, sent.returncode) == (2, 0)
    assert nothing.stdout == "no pending notifications\n"


def test_a_target_that_is_gone_keeps_its_messages_in_the_list(tmp_path: Path) -> None:
    """Until somebody names one so again."""
    configured(tmp_path, "json://127.0.0.1:1/", "sqlite:///audits.db")
    policyeng("audit", "run", "--policy", "policies", folder=tmp_path)
    path = tmp_path / "policyeng.toml"
    path.write_text(path.read_text(encoding="utf-8").replace('"ops"', '"others"'), encoding="utf-8")

    listed = policyeng("audit", "notify", folder=tmp_path)

    assert "on hold: the target `ops` is no longer configured" in listed.stdout


def test_a_test_is_sent_to_those_who_are_named(tmp_path: Path) -> None:
    """And prints whether it arrived, without the secrets of its URL."""
    with listening(WebServer()) as web:
        configured(tmp_path, f"json://{web.address}/${{HOOK}}", "sqlite:///audits.db")
        sent = policyeng("audit", "notify", "--test", "ops", folder=tmp_path, HOOK="s3cret")
        web.status = 403
        refused = policyeng("audit", "notify", "--test", folder=tmp_path, HOOK="s3cret")
        unset = policyeng("audit", "notify", "--test", folder=tmp_path)

    assert (sent.returncode, sent.stdout) == (0, "ops: sent\n")
    assert (web.taken[0].path, web.bodies[0]["title"]) == ("/s3cret", "policyeng: test")
    assert (refused.returncode, unset.returncode) == (2, 2)
    assert refused.stderr.startswith("ops: not sent: ")
    assert "s3cret" not in refused.stderr
    assert unset.stderr == "ops: not sent: the environment has no variable `HOOK`\n"
    assert not (tmp_path / "audits.db").exists()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--test", "opps"), "unknown notification target `opps`; did you mean `ops`; choose from ops"),
        (("--test", "--retry"), "`--test`, `--retry` and `--list` cannot be combined"),
        (("--list",), "there is no store; `policyeng audit run` makes it"),
    ],
)
def test_invalid_options_are_refused(tmp_path: Path, arguments: tuple[str, ...], expected: str) -> None:
    """With a remedy."""
    configured(tmp_path, "json://127.0.0.1:1/", "sqlite:///audits.db")
    ran = policyeng("audit", "notify", *arguments, folder=tmp_path)

    assert ran.returncode in (2, 3)
    assert expected in ran.stderr
