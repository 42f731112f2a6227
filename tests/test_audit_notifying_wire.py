"""What arrives at the services: mail by SMTP, and the requests of chats and webhooks as apprise makes them.

Slack and Discord have one address each, which is turned to a server of the test; all else is sent as in earnest.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path

import pytest
from apprise.plugins.discord import NotifyDiscord
from apprise.plugins.slack import NotifySlack
from pydantic import SecretStr

from policyeng.audit.notifications import address_of, send
from policyeng.configuration.settings import Notifying
from policyeng.errors import UsageError
from policyeng.models import JsonObject
from tests.certificates import Root
from tests.receiving import MailServer, WebServer, listening

TITLE = "policyeng: production: 1 new, 0 fixed for team-a"
BODY = "Run 2 of production:\n\n1 new: 1 high.\n\n- high T-A-1 fails on one (a_b.json)\n- & more"


@pytest.fixture
def web() -> Iterator[WebServer]:
    """A server that takes messages."""
    with listening(WebServer()) as server:
        yield server


@pytest.fixture
def mail() -> Iterator[MailServer]:
    """A server that takes mail."""
    with listening(MailServer()) as server:
        yield server


def target(url: str) -> Notifying:
    """A target of a URL."""
    return Notifying(name="ops", url=SecretStr(url))


def mailed(server: MailServer, **more: str) -> str:
    """A URL of mail to the server."""
    given = "".join(f"&{name}={value}" for name, value in more.items())
    return f"mailto://{server.address}?from=audits@policyeng.example&to=owner@team.example&mode=insecure{given}"


def test_mail_is_plain_text(mail: MailServer) -> None:
    """With the title as its subject."""
    assert send(target(mailed(mail)), TITLE, BODY, {}) == ""

    [message] = mail.mails
    assert isinstance(message, EmailMessage)
    assert (message["subject"], message["to"]) == (TITLE, "owner@team.example")
    assert message["from"].endswith("audits@policyeng.example")
    assert message.get_content_type() == "text/plain"
    assert message.get_content().replace("\r\n", "\n").strip() == BODY
    assert mail.recipients == ["owner@team.example"]


def test_mail_that_is_refused_is_a_fault(mail: MailServer) -> None:
    """With the reason of the server, but for the address."""
    mail.refusal = "550 no such owner here"

    fault = send(target(mailed(mail)), TITLE, BODY, {})

    assert fault
    assert "owner@team.example" not in fault
    assert mail.mails == []


def test_a_webhook_gets_json(web: WebServer) -> None:
    """With the header that it requires, whose value comes from the environment."""
    url = f"json://{web.address}/hook?+X-Token=${{TOKEN}}"

    assert send(target(url), TITLE, BODY, {"TOKEN": "s3cret/+ value"}) == ""

    [taken] = web.taken
    assert (taken.path, taken.headers["x-token"]) == ("/hook", "s3cret/+ value")
    assert (taken.body["title"], taken.body["message"], taken.body["type"]) == (TITLE, BODY, "info")


def test_teams_gets_an_adaptive_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over TLS to a server that is trusted, as a workflow of Power Automate takes it."""
    root, context = Root(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*root.issue(tmp_path, "teams"))
    with listening(WebServer(context)) as web:
        teams = target(f"workflows://{web.address}/abc-123/signed")
        refused = send(teams, TITLE, BODY, {})
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(root.write(tmp_path / "root.pem")))
        taken = send(teams, TITLE, BODY, {})

    assert (bool(refused), taken) == (True, "")
    [request] = web.taken
    assert request.path.startswith("/workflows/abc-123/triggers/manual/paths/invoke?")
    assert "sig=signed" in request.path
    texts = _texts(request.body["attachments"][0]["content"])
    assert request.body["attachments"][0]["contentType"] == "application/vnd.microsoft.card.adaptive"
    assert texts[0] == TITLE
    assert re.sub(r"\\([\W_])", r"\1", texts[1]) == BODY  # apprise escapes what CommonMark would obey


def _texts(card: JsonObject) -> list[str]:
    return [block["text"] for block in card["body"] if block["type"] == "TextBlock"]


def test_slack_gets_text_without_markup(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what Slack would obey escaped once more."""
    monkeypatch.setattr(NotifySlack, "webhook_url", f"http://{web.address}/services")

    assert send(target("slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#audits"), TITLE, BODY, {}) == ""

    [taken] = web.taken
    assert taken.path == "/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ"
    assert (taken.body["channel"], taken.body["mrkdwn"]) == ("#audits", False)
    [attachment] = taken.body["attachments"]
    assert (attachment["title"], attachment["text"]) == (TITLE, BODY.replace("&", "&amp;"))


def test_discord_and_mattermost_get_the_text(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Title and body in one; Discord has an address of its own, Mattermost that of whoever runs it."""
    monkeypatch.setattr(NotifyDiscord, "notify_url", f"http://{web.address}/discord")

    assert send(target("discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js"), TITLE, BODY, {}) == ""
    assert send(target(f"mmost://{web.address}/3ccdd113474722377935511fc85d3dd4"), TITLE, BODY, {}) == ""

    discord, mattermost = web.bodies
    assert discord["content"].replace("\r\n", "\n") == f"{TITLE}\n{BODY}"
    assert mattermost["text"].replace("\r\n", "\n") == f"{TITLE}\n{BODY}"


@pytest.mark.parametrize(
    ("url", "environ"),
    [
        ("json://127.0.0.1:1/s3cretpath?+X-Token=s3crettoken", {}),
        ("json://user:s3cretpass@127.0.0.1:1/", {}),
        ("nonsense://s3cretpath", {}),
        ("mailto://s3cretuser:s3cretpass@", {}),
        ("${WHOLE}", {"WHOLE": "json://127.0.0.1:1/s3cretpath"}),
        ("json://127.0.0.1:1/${PART}", {"PART": "s3cret part/x"}),
        ("mailto://user:s3cret@127.0.0.1:1?to=s3cretaddressee&from=x@policyeng.example&mode=insecure", {}),
    ],
)
def test_a_fault_shows_nothing_that_is_secret(
    url: str, environ: dict[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    """Neither in the message nor on the standard streams, where apprise logs."""
    fault = send(target(url), TITLE, BODY, environ)

    printed = capfd.readouterr()
    assert fault
    assert "s3cret" not in f"{fault}{printed.out}{printed.err}"
    assert "s3cret" not in repr(target(url))


def test_what_the_environment_lacks_is_named() -> None:
    """By its name, and with the target that needs it."""
    with pytest.raises(UsageError, match=r"notify ops: the environment has no variable `TOKEN`; set `TOKEN`"):
        address_of(target("json://x/${TOKEN}"), {"OTHER": "x"})

    assert send(target("json://x/${TOKEN}"), TITLE, BODY, {}) == "the environment has no variable `TOKEN`"


def test_no_redirect_is_followed(web: WebServer) -> None:
    """What is secret in a message or a header goes to no other server."""
    web.status = 302

    assert send(target(f"json://{web.address}/hook"), TITLE, BODY, {})
    assert len(web.taken) == 1
