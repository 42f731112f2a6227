"""Notifications of audits: what is new and fixed, by owner, within a rate, in text that no service obeys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from policyeng.audit.notifications import (
    find_news,
    lines_of,
    messages,
    plain,
    send_due,
    send_notifications,
    store_failure_messages,
)
from policyeng.audit.store.outbox import ATTEMPTS, Outbox
from policyeng.configuration.settings import Notifying
from policyeng.models import JsonObject, Severity
from tests.audits import Audited, exemption, policies
from tests.bundles import deny_when, rego, workspace
from tests.receiving import WebServer, listening

NOW = datetime(2026, 6, 10, 3, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
FINE: JsonObject = {"x": 0, "owner": "o"}
BAD: JsonObject = {"x": 1, "owner": "o"}


@pytest.fixture
def web() -> Iterator[WebServer]:
    """A server that takes messages."""
    with listening(WebServer()) as server:
        yield server


@pytest.fixture
def audited(tmp_path: Path) -> Iterator[Audited]:
    """An estate that has been audited once, of which one workspace of part `a` fails."""
    estate = Audited(tmp_path)
    estate.audit()
    yield estate
    estate.close()


def target(web: WebServer, **more: object) -> Notifying:
    """A target that the server is."""
    url = SecretStr(f"json://{web.address}/hook")
    return Notifying.model_validate({"name": "ops", "url": url, **more})


def tagged(name: str, whose: str | None, **properties: object) -> JsonObject:
    """A workspace with the tag `Owner`."""
    return {**workspace(name, **properties), **({"tags": {"Owner": whose}} if whose else {})}


def document(*resources: JsonObject) -> bytes:
    """A snapshot of resources, as a file has it."""
    return orjson.dumps({"snapshotVersion": 1, "resources": resources})


def test_the_first_time_it_is_one_summary(audited: Audited, web: WebServer) -> None:
    """However much fails: counts, the worst policies, and no list of findings."""
    audited.put("b", {f"w{number}": {"x": 1} for number in range(300)})
    audited.audit()

    sent = send_notifications(audited.store, [target(web)], {}, NOW)

    assert lines_of(sent) == ["notify ops: 1 message sent"]
    [body] = web.bodies
    assert body["title"] == "policyeng: production: 601 findings to begin with"
    assert "301 high, 300 low" in body["message"]
    assert "- 301 x T-A-1 (high)\n- 300 x T-B-1 (low)" in body["message"]
    assert len(body["message"]) < 600


def test_then_it_is_what_is_new_and_what_is_fixed(audited: Audited, web: WebServer) -> None:
    """And nothing where nothing changed; a run that was not notified is notified with the next."""
    targets = [target(web)]
    send_notifications(audited.store, targets, {}, NOW)
    audited.audit()
    assert send_notifications(audited.store, targets, {}, NOW) == []

    audited.put("a", {"one": FINE, "two": BAD})
    audited.audit()
    audited.put("c", {"four": {"x": 1}})
    audited.audit()
    send_notifications(audited.store, targets, {}, NOW)

    _, body = web.bodies
    assert body["title"] == "policyeng: production: 3 new, 1 fixed for no owner"
    assert body["message"] == (
        "Run 4 of production, as of 2026-06-04T00:00:00Z, since run 2:\n\n"
        "3 new: 2 high, 1 low.\n\n"
        "- high T-A-1 fails on two (a.json)\n- high T-A-1 fails on four (c.json)\n"
        "- low T-B-1 fails on four (c.json)\n\n"
        "1 fixed or gone: 1 high.\n\n"
        "- high T-A-1 no longer fails, or is gone: one (a.json)"
    )


def test_what_came_and_went_between_two_messages_is_not_notified(audited: Audited, web: WebServer) -> None:
    """It is neither new nor fixed any more."""
    targets = [target(web)]
    send_notifications(audited.store, targets, {}, NOW)
    audited.put("c", {"four": BAD})
    audited.audit()
    audited.put("c", {"four": FINE})
    audited.audit()

    assert send_notifications(audited.store, targets, {}, NOW) == []


def test_each_owner_has_a_message(audited: Audited, web: WebServer) -> None:
    """By the tag of the resource in any letter case, else of its workspace, else none; what is gone had an owner."""
    web_targets = [target(web), target(web, name="team", owners=("TEAM-B@x.example",))]
    audited.write("a", document(tagged("one", "team-a"), tagged("two", "team-b@x.example", x=1, owner="o")))
    audited.audit()
    send_notifications(audited.store, web_targets, {}, NOW)
    web.taken.clear()

    audited.write("a", document(tagged("one", "team-a", x=1), tagged("five", None, x=1, owner="o")))
    audited.audit()
    send_notifications(audited.store, web_targets, {}, NOW)

    titles = [body["title"].replace("\u200b", "").partition(": production: ")[2] for body in web.bodies]
    assert sorted(titles) == [
        "0 new, 1 fixed for team-b@x.example",
        "0 new, 1 fixed for team-b@x.example",
        "1 new, 0 fixed for no owner",
        "1 new, 0 fixed for team-a",
    ]


def test_a_target_is_notified_of_what_concerns_it(audited: Audited, web: WebServer) -> None:
    """By severity and by estate."""
    targets = [target(web, severity=Severity.HIGH), target(web, name="others", estates=("staging",))]
    send_notifications(audited.store, targets, {}, NOW)
    audited.put("c", {"four": {"x": 1}})
    audited.audit()
    send_notifications(audited.store, targets, {}, NOW)

    assert [body["title"] for body in web.bodies] == [
        "policyeng: production: 1 finding to begin with",
        "policyeng: production: 1 new, 0 fixed for no owner",
    ]


def test_what_is_exempt_is_neither_new_nor_fixed(audited: Audited) -> None:
    """It is counted as exempt; when the exemption ends, the failure is new."""
    audited.audit(exemptions=[exemption("one")])
    first = find_news(audited.store, "production", 1)
    audited.audit()
    second = find_news(audited.store, "production", 2)

    assert first is not None
    assert (list(first.changes), first.exempted) == ([], 1)
    assert second is not None
    assert [(change.fixed, change.span.policy) for change in second.changes] == [(False, "T-A-1")]


def test_what_cannot_be_decided_any_more_is_not_fixed(tmp_path: Path, audited: Audited) -> None:
    """Another outcome is new, under its own name."""
    undecided = 'unknown contains {"msg": "m", "path": "/properties/x"} if input.resource.properties.x == 2'
    body = f"{deny_when('input.resource.properties.x == 1')}\n\n{undecided}"
    bundle = policies(tmp_path / "other", {"area/x/x.rego": rego("x", body)})
    audited.audit(bundle=bundle)
    audited.put("a", {"one": {"x": 2}, "two": FINE})
    audited.audit(bundle=bundle)
    news = find_news(audited.store, "production", 2)

    assert news is not None
    assert [(change.fixed, change.span.outcome) for change in news.changes] == [(False, "unknown")]
    [message] = messages(news, Notifying(name="ops", url=SecretStr("json://x")))
    assert "T-A-1 is unknown on one" in message.body


def test_a_part_that_cannot_be_read_fixes_nothing(audited: Audited, web: WebServer) -> None:
    """It is notified as a problem, once; read again, it is compared with what it had before."""
    targets = [target(web), target(web, name="team", owners=("a",))]
    send_notifications(audited.store, targets, {}, NOW)
    web.taken.clear()
    audited.write("a", b"{")
    audited.audit()
    audited.audit()
    send_notifications(audited.store, targets, {}, NOW)
    send_notifications(audited.store, targets, {}, NOW)
    [body] = web.bodies
    assert body["title"].endswith("with what is audited")
    assert "a.json" in body["message"]

    audited.put("a", {"one": BAD, "two": BAD})
    audited.audit()
    send_notifications(audited.store, targets, {}, NOW)

    assert web.bodies[-1]["title"] == "policyeng: production: 1 new, 0 fixed for no owner"
    assert "fails on two" in web.bodies[-1]["message"]


def test_a_part_that_cannot_be_evaluated_fully_is_notified(audited: Audited) -> None:
    """Once, by its name; the run before could evaluate all of it."""
    audited.write("b", document(workspace("three", x=0, owner="o"), {"id": "<id>", "type": "x/y"}))
    audited.audit()
    audited.audit()
    first, second = (find_news(audited.store, "production", number) for number in (1, 2))

    assert first is not None
    assert second is not None
    assert [problem.place for problem in first.problems] == ["b.json"]
    assert second.problems == []


def test_a_list_is_as_long_as_chats_take(audited: Audited, web: WebServer) -> None:
    """The worst come first, and the number of further ones is stated with their place."""
    send_notifications(audited.store, [target(web)], {}, NOW)
    names = [f"{number:03}-{'n' * 120}" for number in range(100)]
    audited.put("b", {name: {"x": 1} for name in names})
    audited.audit()
    send_notifications(audited.store, [target(web)], {}, NOW)

    body = web.bodies[-1]
    assert len(body["message"]) + len(body["title"]) < 1900
    assert "200 new: 100 high, 100 low." in body["message"]
    listed = re.findall(r"^- (\w+) T-", body["message"], re.MULTILINE)
    assert set(listed) == {"high"}
    assert body["message"].endswith(f"- and {200 - len(listed)} more; `policyeng audit report`")


def test_what_goes_beyond_the_rate_is_put_together(audited: Audited, web: WebServer) -> None:
    """Nothing is left out: what has no room within the hour waits for it."""
    owners = [f"team-{number:02}" for number in range(12)]
    targets = [target(web, per_hour=5)]
    send_notifications(audited.store, targets, {}, NOW)
    audited.write("b", document(*(tagged(f"w-{owner}", owner, x=1, owner="o") for owner in owners)))
    audited.audit()
    sent = send_notifications(audited.store, targets, {}, NOW)

    assert [(each.sent, each.waiting) for each in sent] == [(4, 0)]
    titles = [body["title"] for body in web.bodies[1:]]
    assert titles[:3] == [f"policyeng: production: 1 new, 0 fixed for team-0{number}" for number in range(3)]
    assert titles[3:] == ["policyeng: 9 notifications in one"]
    for owner in owners[3:]:
        assert f"- production: 1 new, 0 fixed for {owner}\n" in f"{web.bodies[-1]['message']}\n"

    audited.put("b", {"three": FINE})
    audited.audit()
    waiting = send_notifications(audited.store, targets, {}, NOW + MINUTE)
    assert lines_of(waiting) == ["notify ops: 12 held back by its rate"]
    later = send_due(audited.store, targets, {}, NOW + 61 * MINUTE)
    assert [(each.sent, each.waiting) for each in later] == [(5, 0)]


def test_what_does_not_arrive_is_tried_again_ever_later(audited: Audited, web: WebServer) -> None:
    """After a minute, then two, and so on; after three days it waits for a command."""
    targets = [target(web)]
    web.status = 503
    sent = send_notifications(audited.store, targets, {}, NOW)
    assert sent[0].fault
    assert lines_of(sent)[0].startswith("notify ops: 1 not sent and tried again later (")
    assert send_due(audited.store, targets, {}, NOW + 59 * timedelta(seconds=1)) == []
    assert send_due(audited.store, targets, {}, NOW + MINUTE)[0].fault
    assert send_due(audited.store, targets, {}, NOW + 2 * MINUTE) == []

    outbox, at, tries = Outbox(audited.store), NOW + MINUTE, 2
    while not outbox.unsent()[0].given_up:
        at = outbox.unsent()[0].due
        send_due(audited.store, targets, {}, at)
        tries += 1
    assert tries == len(web.taken) == ATTEMPTS
    assert timedelta(days=2) < at - NOW < timedelta(days=4)
    assert send_due(audited.store, targets, {}, at + timedelta(days=9)) == []

    web.status = 200
    outbox.retry(["ops"], at)
    assert send_due(audited.store, targets, {}, at)[0].sent == 1
    assert outbox.unsent() == []


def test_a_message_that_is_refused_for_its_content_keeps_back_no_other(audited: Audited, web: WebServer) -> None:
    """Those behind it wait as long as it does, and are tried before it then."""
    targets = [target(web)]
    web.statuses = [400, 200, 200, 400]
    for reason in ("first", "second", "third"):
        store_failure_messages(audited.store, targets, "production", reason, NOW)
    assert [(each.sent, each.waiting) for each in send_due(audited.store, targets, {}, NOW)] == [(0, 3)]
    assert send_due(audited.store, targets, {}, NOW + timedelta(seconds=59)) == []
    sent = send_due(audited.store, targets, {}, NOW + MINUTE)

    assert [(each.sent, each.waiting) for each in sent] == [(2, 1)]
    matches = [re.search(r"audited: (\w+)", body["message"]) for body in web.bodies]
    assert [found and found[1] for found in matches] == ["first", "second", "third", "first"]


def test_who_is_killed_while_sending_sends_again(audited: Audited, web: WebServer) -> None:
    """What was claimed and never recorded as sent is due again: sent twice rather than never."""
    targets = [target(web)]
    outbox = Outbox(audited.store)
    store_failure_messages(audited.store, targets, "production", "reason", NOW)
    [notice] = outbox.due("ops", NOW)
    assert outbox.claim([notice], NOW) == [notice]
    assert outbox.claim([notice], NOW) == []
    assert send_due(audited.store, targets, {}, NOW) == []

    assert [each.sent for each in send_due(audited.store, targets, {}, NOW + MINUTE)] == [1]


def test_two_that_notify_at_once_send_one_message(audited: Audited) -> None:
    """The second finds that the estate was notified meanwhile, and keeps nothing."""
    outbox = Outbox(audited.store)

    assert outbox.put_run("production", None, 1, [], NOW)
    assert not outbox.put_run("production", None, 1, [], NOW)
    assert outbox.put_run("production", 1, 2, [], NOW)
    assert not outbox.put_run("production", 1, 2, [], NOW)
    assert outbox.last_notified("production") == 2


def test_targets_of_the_whole_estate_are_notified_of_a_failure(audited: Audited, web: WebServer) -> None:
    """Targets of single owners are notified where no other target is."""
    team = target(web, name="team", owners=("a",))
    other = target(web, name="other", estates=("staging",))
    store_failure_messages(audited.store, [target(web), team, other], "production", "no `x`\n@everyone", NOW)
    store_failure_messages(audited.store, [team, other], "production", "again", NOW)

    assert [notice.target for notice in Outbox(audited.store).unsent()] == ["ops", "team"]
    assert "@everyone" not in Outbox(audited.store).unsent()[0].body


def test_hostile_names_are_text(audited: Audited) -> None:
    """Of resources, parts and owners, in titles and bodies."""
    hostile = "**x** [y](http:evil.example) @everyone !channel `z` # \u202e\n- high"
    audited.write(hostile, document(tagged(hostile, f"<!channel> <@U1> http://{hostile}", x=1, owner="o")))
    audited.audit()
    news = find_news(audited.store, "production", 1)
    assert news is not None
    [message] = messages(news, Notifying(name="ops", url=SecretStr("json://x")))

    assert "\n" not in message.title
    assert [line for line in message.body.splitlines() if line][1:2] == ["1 new: 1 high."]
    assert len(message.body.splitlines()) == 5
    for text in (message.title, message.body):
        assert not re.search(r"[*`<>\[\]#\u202e]|@\w|://", text)


@given(st.text())
def test_plain_text_has_nothing_that_is_obeyed(text: str) -> None:
    """Whatever is in it: it is one line, printable but for the spaces of no width, and not long."""
    shown = plain(text)

    assert "\n" not in shown
    assert shown.replace("\u200b", "").isprintable()
    assert not re.search(r"[*`~|<>\[\]&#!$]|@(?!\u200b)|://", shown)
    assert len(shown) <= 12 * 201


@pytest.mark.parametrize("text", ["ws-1", "snapshots/production/ws_1.json", "a b (c)", "Zürich", "T-A-1: 3 of 4"])
def test_names_that_are_harmless_stay_as_they_are(text: str) -> None:
    """There are no escapes without need."""
    assert plain(text) == text
