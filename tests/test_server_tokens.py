"""Tokens with scopes: who is let in, to what, and which files of tokens are refused."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path

import pytest

from policyeng.errors import UsageError
from policyeng.server.authentication import Tokens, TokenScope, digest_of, read_tokens
from policyeng.server.options import ServerOptions
from policyeng.server.request_body import RequestRefusedError
from policyeng.server.service import Service
from tests.bundles import workspace
from tests.servers import get_from, send_to, service_of, setup_of


def line(name: str, scopes: str, token: str) -> str:
    """A line of the file."""
    return f"{name} {scopes} sha256:{hashlib.sha256(token.encode()).hexdigest()}"


@pytest.fixture
def service(tmp_path: Path) -> Service:
    """A server that knows two holders."""
    file = tmp_path / "tokens"
    lines = ["# who", "", "  ", "  # more", line("ci", "check,admit", "one"), line("prom", "METRICS", "two")]
    file.write_text("\n".join(lines), encoding="utf-8")
    return service_of(setup_of(tmp_path), tokens=file)


@pytest.mark.parametrize(
    ("given", "status", "challenge"),
    [
        ("Bearer one", 200, None),
        ("bearer  one ", 200, None),
        ("", 401, 'Bearer realm="policyeng"'),
        ("Basic b25l", 401, 'Bearer realm="policyeng"'),
        ("Bearer ", 401, 'Bearer realm="policyeng"'),
        ("Bearer   ", 401, 'Bearer realm="policyeng"'),
        ("Bearer on", 401, 'Bearer realm="policyeng", error="invalid_token"'),
        ("Bearer onee", 401, 'Bearer realm="policyeng", error="invalid_token"'),
        ("Bearer two", 403, 'Bearer realm="policyeng", error="insufficient_scope", scope="check"'),
    ],
)
def test_a_token_lets_in_to_its_scopes(service: Service, given: str, status: int, challenge: str | None) -> None:
    """The refusal states what is missing, as RFC 6750 has it."""
    response = send_to(service, "/v1/check", workspace("w"), authorization=given)

    assert response.status_code == status
    assert response.headers.get("www-authenticate") == challenge
    if status == 403:
        assert response.json()["detail"] == "the token of `prom` lacks the scope `check`"


def test_a_holder_is_named_for_a_scope_of_the_token(tmp_path: Path) -> None:
    """By the header and by the hash; a token is of bytes, whatever letters the header has."""
    file = tmp_path / "tokens"
    file.write_text("\n".join([line("ci", "check,admit", "one"), line("prom", "metrics", "two")]), encoding="utf-8")
    tokens = read_tokens(file)

    assert tokens.holder("Bearer one", TokenScope.ADMIT) == "ci"
    assert tokens.holder("Bearer two", TokenScope.METRICS) == "prom"
    assert tokens.name_of(digest_of("two"), TokenScope.METRICS) == "prom"
    assert tokens.name_of(digest_of("two"), TokenScope.CHECK) is None
    assert tokens.name_of(digest_of("three"), TokenScope.CHECK) is None
    with pytest.raises(RequestRefusedError, match="unknown token"):
        tokens.holder("Bearer \u20ac", TokenScope.CHECK)


def test_refused_requests_are_not_read(service: Service) -> None:
    """Neither the type of the body nor the body."""
    assert send_to(service, "/v1/check", b"{", content_type="text/html").status_code == 401


def test_health_needs_no_token(service: Service) -> None:
    """The description of the interface is, too."""
    assert [response.status_code for response in get_from(service, "/healthz", "/readyz", "/openapi.json")] == [200] * 3


def test_every_hash_is_compared_in_constant_time(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after one that fits."""
    compared: list[bytes] = []

    def compare(known: bytes, given: bytes) -> bool:
        compared.append(known)
        return known == given

    monkeypatch.setattr(hmac, "compare_digest", compare)
    assert send_to(service, "/v1/check", workspace("w"), authorization="Bearer one").status_code == 200
    assert len(compared) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no tokens"),
        ("# none\n", "has no tokens"),
        ("ci check plain-token", ":1: invalid line"),
        ("ci sha256:00", ":1: invalid line"),
        ("\nci chek sha256:" + "0" * 64, ":2: unknown scope `chek`; did you mean `check`"),
        ("ci check,, sha256:" + "0" * 64, "a scope is empty"),
        (line("a", "check", "x") + "\n" + line("a", "check", "y"), ":2: the name of `a` is duplicated"),
        (line("a", "check", "x") + "\n" + line("b", "admit", "x"), ":2: the token of `b` is duplicated"),
    ],
)
def test_a_file_that_is_not_well_formed_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """With its line, of which nothing is repeated that may be a token."""
    file = tmp_path / "tokens"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as refused:
        read_tokens(file)

    assert message in str(refused.value)
    assert refused.value.place[0].startswith(str(file))
    assert refused.value.remedy
    assert "plain-token" not in str(refused.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """A file that is not text is refused, too."""
    with pytest.raises(UsageError, match="no such file") as refused:
        read_tokens(tmp_path / "tokens")
    assert refused.value.place == (str(tmp_path / "tokens"),)
    (tmp_path / "tokens").write_bytes(b"\xff")
    with pytest.raises(UsageError, match="not utf-8"):
        read_tokens(tmp_path / "tokens")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "policyeng.example", ""])  # noqa: S104  # to be refused
def test_beyond_loopback_callers_have_to_identify_themselves(host: str, tmp_path: Path) -> None:
    """Unless it is insisted on."""
    with pytest.raises(UsageError, match="is reachable from other machines"):
        ServerOptions(host=host)
    assert ServerOptions(host=host, insecure_listen=True).host == host
    assert ServerOptions(host=host, tokens=tmp_path).host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost", "LocalHost"])
def test_on_loopback_no_one_has_to(host: str) -> None:
    """Only this machine reaches it."""
    assert ServerOptions(host=host).tokens is None


def test_without_any_token_no_one_is_let_in() -> None:
    """A server whose callers need not identify themselves has no tokens at all, and not an empty list of them."""
    for given in ("", "Bearer x"):
        with pytest.raises(RequestRefusedError):
            Tokens().holder(given, TokenScope.CHECK)
