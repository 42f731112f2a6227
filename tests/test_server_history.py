"""The history of audits as the server shows it: who may see it, how they sign in, and what an attacker gets."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from policyeng.audit.records import AuditRun
from policyeng.audit.store import open_store
from policyeng.audit.store.integrity import prune
from policyeng.errors import StoreError, UsageError
from policyeng.server.app import application
from policyeng.server.authentication import Certificates, Tokens, read_tokens
from policyeng.server.history_site import LASTING, Attempts, Reports, Sessions
from policyeng.server.options import ServerOptions
from policyeng.server.request_body import RequestRefusedError
from policyeng.server.service import Service
from tests.audits import START, Audited
from tests.certificates import Root
from tests.command import policyeng
from tests.servers import service_of, with_client

FORM = {"content-type": "application/x-www-form-urlencoded"}
HERE = "http://127.0.0.1"


def token_file(folder: Path) -> Path:
    """One who may see the history, and one who may not."""
    path = folder / "tokens"
    hashes = {
        name: hashlib.sha256(token.encode()).hexdigest() for name, token in (("alice", "open"), ("ci", "reviewer"))
    }
    path.write_text(f"alice history sha256:{hashes['alice']}\nci check sha256:{hashes['ci']}\n", encoding="utf-8")
    return path


@pytest.fixture
def audited(tmp_path: Path) -> Iterator[Audited]:
    """An estate with two runs."""
    audited = Audited(tmp_path)
    audited.audit()
    audited.put("b", {"three": {"x": 1, "owner": "o"}})
    audited.audit()
    yield audited
    audited.close()


@pytest.fixture
def service(audited: Audited, tmp_path: Path) -> Iterator[Service]:
    """A server of it, with tokens."""
    service = service_of(audited.held, tokens=token_file(tmp_path))
    service.reports = Reports(open_store(audited.url))
    yield service
    service.reports.close()


@pytest.fixture
def open_service(audited: Audited) -> Iterator[Service]:
    """A server of it on loopback, where no one has to sign in."""
    service = service_of(audited.held)
    service.reports = Reports(open_store(audited.url))
    yield service
    service.reports.close()


def responses(service: Service, *requests: tuple[str, str, bytes, dict[str, str]]) -> list[httpx.Response]:
    """The responses to requests that one client sends one after the other, keeping its cookies."""

    async def each(client: httpx.AsyncClient) -> list[httpx.Response]:
        client.base_url = httpx.URL(HERE)
        return [await client.request(how, path, content=body, headers=given) for how, path, body, given in requests]

    return with_client(application(service), each)


def sign_in(token: str, **headers: str) -> tuple[str, str, bytes, dict[str, str]]:
    """The form as a browser sends it."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return "POST", "/sign-in", f"token={token}".encode(), {**FORM, **given}


def get(path: str, **headers: str) -> tuple[str, str, bytes, dict[str, str]]:
    """A request for a page."""
    return "GET", path, b"", headers


def test_visitors_who_have_not_signed_in_see_only_the_form(service: Service) -> None:
    """Existing and missing pages lead to the form."""
    for response in responses(service, *map(get, ("/", "/estates/production", "/estates/none", "/runs/1"))):
        assert (response.status_code, response.headers["location"], response.content) == (303, "/sign-in", b"")
    [form] = responses(service, get("/sign-in"))
    assert form.status_code == 200
    assert 'type="password"' in form.text
    assert "production" not in form.text


def test_a_session_shows_all_until_one_signs_out(service: Service) -> None:
    """The cookie is for this server alone, and for no script."""
    signed, index, newest, older, out, after = responses(
        service,
        sign_in("open", origin=HERE),
        get("/"),
        get("/estates/production"),
        get("/runs/1"),
        ("POST", "/sign-out", b"", {"sec-fetch-site": "same-origin"}),
        get("/"),
    )

    assert (signed.status_code, signed.headers["location"]) == (303, "/")
    cookie = signed.headers["set-cookie"]
    assert "open" not in cookie
    assert {"HttpOnly", "Path=/", "SameSite=strict", f"Max-Age={LASTING}"} <= set(cookie.split("; "))
    assert "signed in as alice" in index.text
    assert '<a href="/estates/production">production</a>' in index.text
    assert '<a href="/runs/1">' in index.text
    assert "production: 2 failures" in newest.text
    assert "Run 2 of estate production" in newest.text
    assert "Run 1 of estate production" in older.text
    assert (out.status_code, out.headers["location"]) == (303, "/sign-in")
    assert 'policyeng="";' in out.headers["set-cookie"]
    assert after.headers["location"] == "/sign-in"


def test_under_tls_the_cookie_never_goes_elsewhere(service: Service, tmp_path: Path) -> None:
    """Browsers take the prefix over TLS alone, from this host alone."""
    service.certificates = Certificates(*Root().issue(tmp_path, "server"))
    [signed] = responses(service, sign_in("open"))

    name, *attributes = signed.headers["set-cookie"].split("; ")
    assert name.startswith("__Host-policyeng=")
    assert {"Secure", "HttpOnly", "Path=/", "SameSite=strict"} <= set(attributes)
    assert not [attribute for attribute in attributes if attribute.startswith("Domain")]


def test_a_required_certificate_is_required_for_every_page(service: Service, tmp_path: Path) -> None:
    """Also with a session, and also to begin one."""
    [signed] = responses(service, sign_in("open"))
    cookie = signed.headers["set-cookie"].partition(";")[0]
    service.options = replace(service.options, tls_client_ca=tmp_path, tls_cert=tmp_path, tls_key=tmp_path)
    page, again = responses(service, get("/", cookie=cookie), sign_in("open"))

    assert (page.status_code, again.status_code) == (403, 403)
    assert "the client sent no certificate" in page.text


def test_every_page_is_kept_out_of_frames_and_caches(service: Service) -> None:
    """The page states what it may load: a stricter policy next to it would block its own script."""
    for response in responses(
        service, get("/"), get("/sign-in"), sign_in("wrong"), sign_in("open"), get("/"), get("/runs/1")
    ):
        headers = response.headers
        assert headers["content-security-policy"] == "frame-ancestors 'none'"
        assert headers["x-frame-options"] == "DENY"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "same-origin"


@pytest.mark.parametrize(
    ("token", "status", "detail"),
    [
        ("wrong", 401, "unknown token"),
        ("", 401, "the request has no token"),
        ("reviewer", 403, "the token of `ci` lacks the scope `history`"),
        ("%3Cscript%3E", 401, "unknown token"),
    ],
)
def test_a_token_that_is_not_for_it_begins_no_session(service: Service, token: str, status: int, detail: str) -> None:
    """The form states why, and never what was sent."""
    refused, after = responses(service, sign_in(token), get("/"))

    assert (refused.status_code, after.headers["location"]) == (status, "/sign-in")
    assert detail in refused.text
    assert "set-cookie" not in refused.headers
    assert "www-authenticate" not in refused.headers
    assert "<script" not in refused.text


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.test"},
        {"origin": "null"},
        {"origin": "http://[", "sec_fetch_site": ""},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site", "origin": HERE},
    ],
)
def test_a_form_of_another_site_is_refused(service: Service, headers: dict[str, str]) -> None:
    """Also with a token that would do, and also to sign out."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    refused, _, out, still = responses(
        service, sign_in("open", **headers), sign_in("open"), ("POST", "/sign-out", b"", given), get("/")
    )

    assert (refused.status_code, out.status_code) == (403, 403)
    assert "set-cookie" not in refused.headers
    assert still.status_code == 200


def test_forms_are_short_and_few_attempts_are_refused_in_a_row(service: Service) -> None:
    """A long body is not read; after ten refusals one has to wait, also with the token that would do."""
    [long] = responses(service, ("POST", "/sign-in", b"token=" + b"x" * 5000, FORM))
    [other] = responses(service, ("POST", "/sign-in", b"{}", {"content-type": "application/json"}))
    *wrong, late = responses(service, *[sign_in(f"wrong{n}") for n in range(10)], sign_in("open"))

    assert (long.status_code, other.status_code) == (413, 415)
    assert {response.status_code for response in wrong} == {401}
    assert late.status_code == 429
    assert 1 <= int(late.headers["retry-after"]) <= 61
    assert "set-cookie" not in late.headers


def test_programs_send_their_token_as_ever(service: Service) -> None:
    """A refusal is the problem that every route responds with."""
    seen, wrong, other, none, odd = responses(
        service,
        get("/estates/production", authorization="Bearer open"),
        get("/", authorization="Bearer wrong"),
        get("/", authorization="Bearer reviewer"),
        get("/estates/none", authorization="Bearer open"),
        get("/runs/1x", authorization="Bearer open"),
    )

    assert "production: 2 failures" in seen.text
    assert (wrong.status_code, other.status_code) == (401, 403)
    assert wrong.headers["content-type"] == "application/problem+json"
    assert (none.status_code, none.json()["detail"]) == (404, "estate `none` has no runs")
    assert (odd.status_code, odd.json()["detail"]) == (404, "run `1x` does not exist")


def test_a_run_states_that_its_findings_are_gone(service: Service, audited: Audited) -> None:
    """The newest still has them."""
    prune(audited.store, now=START, keep_runs=1)
    gone, there = responses(
        service, get("/runs/1", authorization="Bearer open"), get("/runs/2", authorization="Bearer open")
    )

    assert (gone.status_code, there.status_code) == (410, 200)
    assert "deleted by retention" in gone.json()["detail"]


def test_without_tokens_only_names_of_this_machine_are_served(open_service: Service) -> None:
    """A name of another that leads here (DNS rebinding) reads nothing; there is nothing to sign in to."""
    index, rebound, form, signed = responses(
        open_service, get("/"), get("/", host="evil.test"), get("/sign-in"), sign_in("x", host="evil.test")
    )

    assert index.status_code == 200
    assert "Sign out" not in index.text
    assert (rebound.status_code, signed.status_code) == (421, 421)
    assert "production" not in rebound.text
    assert form.headers["location"] == "/"


EVERYWHERE = "0.0.0.0"  # noqa: S104  # refused without tokens


def test_the_history_is_not_shown_to_a_network_that_need_not_sign_in(tmp_path: Path) -> None:
    """Neither an insecure listener nor a certificate of the client is enough."""
    with pytest.raises(UsageError, match="needs no sign-in"):
        ServerOptions(host=EVERYWHERE, store="sqlite:///a.db", insecure_listen=True)
    with pytest.raises(UsageError, match="needs no sign-in"):
        ServerOptions(
            host=EVERYWHERE, store="sqlite:///a.db", tls_client_ca=tmp_path, tls_cert=tmp_path, tls_key=tmp_path
        )
    assert ServerOptions(host=EVERYWHERE, store="sqlite:///a.db", tokens=tmp_path).store
    assert ServerOptions(store="sqlite:///a.db").store


def test_a_missing_store_is_reported_at_once(tmp_path: Path) -> None:
    """Before anything is served."""
    ran = policyeng("serve", "--store", f"sqlite:///{tmp_path}/none.db", "--port", "0")
    assert ran.returncode == StoreError.exit_code
    assert "there is no store" in ran.stderr


def test_routes_exist_with_a_store_only(audited: Audited) -> None:
    """The description of the interface is only about evaluation."""
    service = service_of(audited.held)
    assert [response.status_code for response in responses(service, get("/"), get("/sign-in"))] == [404, 404]


def test_a_session_ends_with_its_time_and_with_its_token(tmp_path: Path) -> None:
    """A token that was taken out of the file signs its holder out."""
    now = [0.0]
    sessions, tokens = Sessions(lambda: now[0]), read_tokens(token_file(tmp_path))
    key = sessions.begin("open")

    assert sessions.holder(key, tokens) == "alice"
    assert sessions.holder(key + "x", tokens) is None
    assert sessions.holder(key, Tokens()) is None
    assert sessions.holder(sessions.begin("reviewer"), tokens) is None
    now[0] = LASTING
    assert sessions.holder(key, tokens) is None


def test_attempts_are_forgotten_after_a_minute_and_counted_over_all_addresses() -> None:
    """So that many addresses together come no further than a few."""
    now = [0.0]
    attempts = Attempts(lambda: now[0])
    for number in range(200):
        attempts.require_patience(f"10.0.0.{number}")
        attempts.refused(f"10.0.0.{number}")
    with pytest.raises(RequestRefusedError, match="too many failed sign-in attempts"):
        attempts.require_patience("192.0.2.1")
    now[0] = 61
    attempts.require_patience("192.0.2.1")


def test_a_report_is_made_once_for_a_run(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests at the same time, or later, get the same; a page that could not be made is tried again."""
    reports = service.reports
    assert reports is not None
    made = []

    def rendered(run: AuditRun) -> bytes:
        made.append(run.number)
        return b"page"

    monkeypatch.setattr(reports, "_render", rendered)

    async def asking() -> list[bytes]:
        run = await reports.run(1)
        return [*await asyncio.gather(*[reports.report(run) for _ in range(5)]), await reports.report(run)]

    assert asyncio.run(asking()) == [b"page"] * 6
    assert made == [1]
