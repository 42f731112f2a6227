"""Servers that are down, slow, broken or not ours: could not decide, with a reason and a remedy, and never a pass."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from http.server import BaseHTTPRequestHandler
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from policyeng import evaluate
from policyeng.bundle import load_bundle
from policyeng.engines import OpaOptions
from policyeng.engines import opa as engine
from policyeng.engines.opa_server import OpaConnection
from policyeng.errors import EngineError, UsageError
from policyeng.models import Evaluation
from tests.bundles import deny_when, rego, snapshot, workspace, write
from tests.command import policyeng
from tests.opa_servers import Reply, free_port, lying, reply, responding, running

pytestmark = pytest.mark.slow

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
TOKEN = "s3cr3t-t0k3n-of-the-test"  # noqa: S105  # made up
AUTHORIZATION = f"""\
package system.authz

default allow := false

allow if input.identity == "{TOKEN}"
"""


@pytest.fixture(autouse=True)
def _left() -> Iterator[None]:
    """No connection outlives its test."""
    yield
    engine.close()


def evaluated(folder: Path, options: OpaOptions, count: int = 3) -> Evaluation:
    """Workspaces that fail, by OPA."""
    bundle = load_bundle(write(folder / "policies", {"area/p.rego": rego("p", deny_when("true"))}))
    shot = snapshot(*(workspace(f"w{n}") for n in range(count)))
    return evaluate(bundle, shot, as_of=AS_OF, engine="opa", opa=options)


def hanging(_: BaseHTTPRequestHandler, __: bytes) -> None:
    """Never respond."""
    threading.Event().wait()


def cut(handler: BaseHTTPRequestHandler, body: bytes) -> None:
    """End the connection in the middle of the body."""
    reply(200, b'{"result": {', Content_Length="1000")(handler, body)
    handler.close_connection = True


def dropped(handler: BaseHTTPRequestHandler, _: bytes) -> None:
    """End the connection without a response."""
    handler.close_connection = True


def stalled(handler: BaseHTTPRequestHandler, body: bytes) -> None:
    """Fall silent in the middle of the body."""
    reply(200, b'{"result": {', Content_Length="1000")(handler, body)
    threading.Event().wait()


FAULTS: dict[str, tuple[Reply, str]] = {
    "slow": (hanging, "it does not respond in time; check whether it is overloaded"),
    "500": (reply(500, {"code": "internal_error", "message": "boom"}), "it responds with 500: boom; see the log"),
    "500 as text": (reply(500, b"<html>boom</html>"), "it responds with 500; see the log of the server"),
    "503": (reply(503, b""), "it responds with 503; see the log of the server"),
    "401": (reply(401, {"code": "unauthorized", "message": "x"}), "it denies access (401); use a token"),
    "403": (reply(403, b"no"), "it denies access (403); use a token"),
    "404": (reply(404, {"error": "x"}), "it responds with 404"),
    "no JSON": (reply(200, b"<html>welcome</html>"), "its response is not JSON; check that the URL is that of an OPA"),
    "nothing": (reply(200, b""), "its response is not JSON"),
    "a list": (reply(200, []), "its response is not a JSON object"),
    "NaN": (reply(200, b'{"result": {"x": NaN}'), "its response is not JSON"),
    "no result": (reply(200, {}), "its response is not from an OPA server; check that the URL is that of an OPA"),
    "no OPA": (reply(200, {"result": {}}), "its response is not from an OPA server; check that the URL is that of an"),
    "stalled": (stalled, "it sent nothing for 0.3 s during its response; check whether it is overloaded, or increase"),
    "truncated": (cut, "the connection fails: "),
    "dropped": (dropped, "the connection fails: "),
    "redirect": (reply(302, b"", Location="http://elsewhere.example/v1"), "a redirect to `elsewhere.example`; use"),
    "redirect with the body": (reply(307, b"", Location="https://elsewhere.example/"), "redirect to `elsewhere"),
}


@pytest.mark.parametrize(("respond", "message"), FAULTS.values(), ids=FAULTS.keys())
def test_a_server_that_does_not_respond_as_opa_does(tmp_path: Path, respond: Reply, message: str) -> None:
    """Every fault has its own words."""
    with responding(respond) as url, pytest.raises(EngineError) as caught:
        evaluated(tmp_path, OpaOptions(url=url, timeout=0.3 if respond in (hanging, stalled) else 10))

    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{url}: could not decide")


def test_a_server_that_speaks_no_tls(tmp_path: Path, opa: Path) -> None:
    """It has no certificate that could be trusted or not."""
    with running(opa) as server, responding(reply(200, {})) as other:
        for url in (server.url, other):
            with pytest.raises(EngineError, match="it does not use TLS; use `http://127") as caught:
                evaluated(tmp_path, OpaOptions(url=url.replace("http", "https")))
            assert url in caught.value.remedy


def test_a_server_that_is_down(tmp_path: Path) -> None:
    """Nothing listens there."""
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(
        EngineError, match=r"could not decide .*: the connection fails: connection refused; check that it"
    ):
        evaluated(tmp_path, OpaOptions(url=url))


Verdicts = Callable[[dict[str, list[object]]], object]
LIES: dict[str, tuple[Verdicts, str]] = {
    "fewer": (lambda pairs: {key: [["{}"]] * (len(of) - 1) for key, of in pairs.items()}, "2 verdicts for 3 pairs"),
    "more": (lambda pairs: {key: [["{}"]] * (len(of) + 1) for key, of in pairs.items()}, "4 verdicts for 3 pairs"),
    "none": (lambda _: {}, "0 verdicts for 3 pairs"),
    "of another policy": (
        lambda pairs: {"7": [[] for of in pairs.values() for _ in of]},
        "3 verdicts for 3 pairs, but for other pairs",
    ),
    "a surplus policy": (lambda pairs: {**{key: [[]] * len(of) for key, of in pairs.items()}, "9": [[]]}, "4 verdicts"),
    "no lists": (lambda _: {"0": 3}, "not a list of verdicts per policy"),
    "no object": (lambda _: [], "not a list of verdicts per policy"),
    "two texts": (lambda pairs: {key: [["{}", "{}"]] * len(of) for key, of in pairs.items()}, "not one string"),
    "no text": (lambda pairs: {key: [[1]] * len(of) for key, of in pairs.items()}, "not one string"),
    "other text": (lambda pairs: {key: [["[]"]] * len(of) for key, of in pairs.items()}, "has an unexpected form"),
    "no roles": (lambda pairs: {key: [["{}"]] * len(of) for key, of in pairs.items()}, "has an unexpected form"),
}


@pytest.mark.parametrize(("verdicts", "message"), LIES.values(), ids=LIES.keys())
def test_a_response_that_is_not_one_verdict_for_each_pair(tmp_path: Path, verdicts: Verdicts, message: str) -> None:
    """Nothing of it is used."""
    digest = load_bundle(write(tmp_path / "policies", {"area/p.rego": rego("p", deny_when("true"))})).digest
    with responding(lying(verdicts, {"digest": digest})) as url, pytest.raises(EngineError) as caught:
        evaluated(tmp_path, OpaOptions(url=url))

    assert "could not decide" in str(caught.value)
    assert message in str(caught.value)


@pytest.mark.parametrize("marked", [None, {}, {"digest": "0"}, True])
def test_a_response_without_our_bundle_in_place(tmp_path: Path, marked: object) -> None:
    """The verdicts may be of anything."""
    passing = '{"deny":[],"exception":[],"unknown":[]}'
    with (
        responding(lying(lambda pairs: {key: [[passing]] * len(pairs[key]) for key in pairs}, marked)) as url,
        pytest.raises(EngineError, match="lost the mark of this run; run it again"),
    ):
        evaluated(tmp_path, OpaOptions(url=url))


def test_the_token_is_sent_and_never_shown(tmp_path: Path, opa: Path) -> None:
    """A server that requires it takes it, and nothing else; neither messages nor a printed option carry it."""
    (tmp_path / "authz.rego").write_text(AUTHORIZATION, encoding="utf-8")
    options = ("--authentication=token", "--authorization=basic", str(tmp_path / "authz.rego"))
    with running(opa, *options) as server:
        assert evaluated(tmp_path, OpaOptions(url=server.url, token=TOKEN)).summary.fail == 3
        for token in ("", f"{TOKEN}-wrong"):
            with pytest.raises(EngineError, match=r"it denies access \(40[13]\); use a token") as caught:
                evaluated(tmp_path, OpaOptions(url=server.url, token=token))
            assert TOKEN not in f"{caught.value}{caught.value.__cause__}"

    assert TOKEN not in repr(OpaOptions(token=TOKEN))


@pytest.mark.parametrize("token", ["two words", "line\nbreak", "tökén", "\x00"])
def test_a_token_that_no_header_takes(tmp_path: Path, token: str) -> None:
    """It could smuggle a header in; it is not repeated in the message."""
    with pytest.raises(UsageError, match="the token for the OPA server has invalid characters") as caught:
        evaluated(tmp_path, OpaOptions(url="http://127.0.0.1:1", token=token))

    assert token not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("opa.example.com:8181", "not an http or https URL; write"),
        ("ftp://opa.example.com", "not an http or https URL; write"),
        ("http://", "not an http or https URL"),
        ("http://h:notaport", "no valid host and port"),
        ("http://h:99999", "no valid host and port"),
        ("http://user:pass@h:1", "parts other than a host, a port and a path; pass the token in"),
        ("http://h:1/?token=x", "parts other than a host, a port and a path"),
    ],
)
def test_a_url_that_is_none(tmp_path: Path, url: str, message: str) -> None:
    """Refused as usage, before anything is sent; passwords in it are not repeated."""
    with pytest.raises(UsageError) as caught:
        evaluated(tmp_path, OpaOptions(url=url))

    assert message in str(caught.value)
    assert "pass@" not in str(caught.value)


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_a_timeout_that_is_none(tmp_path: Path, timeout: float) -> None:
    """Zero would mean for ever to some."""
    with pytest.raises(UsageError, match="is not a timeout"):
        evaluated(tmp_path, OpaOptions(url="http://127.0.0.1:1", timeout=timeout))


def test_a_server_below_a_path(tmp_path: Path) -> None:
    """Behind a gateway, every request keeps the path of the URL."""
    seen: list[str] = []

    def noted(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        seen.append(handler.path)
        lying(lambda pairs: {key: [[]] * len(pairs[key]) for key in pairs})(handler, body)

    with responding(noted) as url, pytest.raises(EngineError):
        evaluated(tmp_path, OpaOptions(url=f"{url}/gate/opa/"))

    assert seen
    assert all(path.startswith("/gate/opa/v1/") for path in seen)


def certificate(folder: Path, name: str, signer: tuple[x509.Certificate, ec.EllipticCurvePrivateKey] | None) -> Path:
    """A PEM file `name.pem` with a certificate for loopback, or of an authority without a signer, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(signer[0].subject if signer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=signer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    if signer is None:
        usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
        builder = builder.add_extension(usage, critical=True)
    else:
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer[1].public_key()), critical=False
        )
    signed = builder.sign(signer[1] if signer else key, hashes.SHA256())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / f"{name}.pem"
    path.write_bytes(signed.public_bytes(serialization.Encoding.PEM) + private)
    return path


def authority(folder: Path, name: str) -> tuple[Path, tuple[x509.Certificate, ec.EllipticCurvePrivateKey]]:
    """An authority: its PEM file, and what signs for it."""
    path = certificate(folder, name, None)
    key = serialization.load_pem_private_key(path.read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return path, (x509.load_pem_x509_certificate(path.read_bytes()), key)


def test_a_certificate_is_verified_with_the_given_authority(
    tmp_path: Path, opa: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The right one is trusted; another, and the public ones, are not, whatever the environment has."""
    ours, signer = authority(tmp_path, "ours")
    other, _ = authority(tmp_path, "other")
    server_file = str(certificate(tmp_path, "server", signer))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(ours))
    with running(opa, f"--tls-cert-file={server_file}", f"--tls-private-key-file={server_file}", scheme="https") as it:
        assert evaluated(tmp_path, OpaOptions(url=it.url, ca_file=ours)).summary.fail == 3
        for ca_file in (other, None):
            with pytest.raises(EngineError, match=r"its certificate is not trusted: .*certificate verify failed"):
                evaluated(tmp_path, OpaOptions(url=it.url, ca_file=ca_file))
        with pytest.raises(EngineError, match="could not decide"):
            evaluated(tmp_path, OpaOptions(url=it.url.replace("https", "http")))


def test_a_server_that_requires_our_certificate(tmp_path: Path, opa: Path) -> None:
    """With it, it evaluates; without it, nothing does."""
    ours, signer = authority(tmp_path, "ours")
    server_file, client = (certificate(tmp_path, name, signer) for name in ("server", "client"))
    tls = (f"--tls-cert-file={server_file}", f"--tls-private-key-file={server_file}", f"--tls-ca-cert-file={ours}")
    with running(opa, *tls, "--authentication=tls", scheme="https") as it:
        assert evaluated(tmp_path, OpaOptions(url=it.url, ca_file=ours, client_cert=client)).summary.fail == 3
        with pytest.raises(EngineError, match="could not decide"):
            evaluated(tmp_path, OpaOptions(url=it.url, ca_file=ours))


@pytest.mark.parametrize("name", ["ca_file", "client_cert"])
def test_files_of_tls_have_to_be_there_and_of_use(tmp_path: Path, name: str) -> None:
    """A file that is missing, or that a plain connection would not look at, is a mistake."""
    with pytest.raises(UsageError, match=r"no\.pem: no such file; name a PEM file"):
        evaluated(tmp_path, OpaOptions(url="https://127.0.0.1:1", **{name: tmp_path / "no.pem"}))  # type: ignore[arg-type]  # one of the options
    with pytest.raises(UsageError, match="applies only to an https URL"):
        evaluated(tmp_path, OpaOptions(url="http://127.0.0.1:1", **{name: tmp_path / "no.pem"}))  # type: ignore[arg-type]  # one of the options


def test_a_ca_file_that_is_no_certificate(tmp_path: Path) -> None:
    """Nothing is trusted then."""
    (tmp_path / "empty.pem").write_text("", encoding="utf-8")
    with pytest.raises(EngineError, match="could not decide"):
        evaluated(tmp_path, OpaOptions(url="https://127.0.0.1:1", ca_file=tmp_path / "empty.pem"))


@pytest.mark.parametrize(("variable", "value"), [("HTTP_PROXY", "http://127.0.0.1:1"), ("NETRC", "netrc")])
def test_the_environment_does_not_lead_astray(
    tmp_path: Path, opa: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    """No proxy on the way to this machine, and no password in place of our token."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login a password b\n", encoding="utf-8")
    monkeypatch.setenv(variable, str(netrc) if variable == "NETRC" else value)
    (tmp_path / "authz.rego").write_text(AUTHORIZATION, encoding="utf-8")
    with running(opa, "--authentication=token", "--authorization=basic", str(tmp_path / "authz.rego")) as server:
        assert evaluated(tmp_path, OpaOptions(url=server.url, token=TOKEN)).summary.fail == 3


@pytest.mark.parametrize("name", ["500", "401", "truncated", "no JSON", "redirect", "slow"])
def test_what_a_user_sees_of_a_fault(root: Path, name: str) -> None:
    """One line on standard error, exit 2, no traceback, no report."""
    respond, message = FAULTS[name]
    sample = str(root / "samples/workspaces/compliant.json")
    with responding(respond) as url:
        ran = policyeng(
            "check", sample, "--engine", "opa", "--opa-url", url, "--opa-timeout", "2", POLICYENG_OPA_TOKEN=TOKEN
        )

    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"policyeng: {url}: could not decide with the OPA server: ")
    assert message in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert TOKEN not in ran.stderr


def test_the_command_evaluates_with_a_server(root: Path, tmp_path: Path, opa: Path) -> None:
    """The options, by flag and by environment, reach the server; its version is in the report."""
    ours, signer = authority(tmp_path, "ours")
    server_file = str(certificate(tmp_path, "server", signer))
    (tmp_path / "authz.rego").write_text(AUTHORIZATION, encoding="utf-8")
    (tmp_path / "token").write_text(f"{TOKEN}\n", encoding="utf-8")
    options = ("--authentication=token", "--authorization=basic", str(tmp_path / "authz.rego"))
    policies = write(tmp_path / "policies", {"area/p.rego": rego("p", deny_when("true"))})
    sample = (str(root / "samples/workspaces/regulated.json"), "--policy", str(policies))
    with running(
        opa, f"--tls-cert-file={server_file}", f"--tls-private-key-file={server_file}", *options, scheme="https"
    ) as server:
        flags = ("--opa-url", server.url, "--opa-ca-file", str(ours), "--opa-token-file", str(tmp_path / "token"))
        ran = policyeng("check", *sample, "--engine", "opa", "--format", "json", *flags)
        by_environment = policyeng(
            "check",
            *sample,
            "--format=json",
            POLICYENG_ENGINE="opa",
            POLICYENG_OPA_URL=server.url,
            POLICYENG_OPA_CA_FILE=str(ours),
            POLICYENG_OPA_TOKEN=TOKEN,
            POLICYENG_OPA_TIMEOUT="60",
            POLICYENG_OPA_PUSH="1",
        )

    assert (ran.returncode, ran.stderr) == (1, "")
    assert json.loads(ran.stdout)["engine"] == {"name": "opa", "version": "1.22.0"}
    assert json.loads(by_environment.stdout)["findings"] == json.loads(ran.stdout)["findings"] != []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--opa-url", "http://h:1"), "OPA server options without `--engine opa`; add it"),
        (("--engine", "opa", "--opa-token-file", "/nonexistent"), "path `/nonexistent` does not exist"),
        (("--engine", "opa", "--opa-token-file", os.curdir), "cannot read the token; pass a text file"),
        (("--engine", "opa", "--opa-token-file", os.devnull), "the token file is empty"),
        (("--engine", "opa", "--opa-url", "nonsense"), "not an http or https URL"),
        (("--engine", "opa", "--opa-timeout", "0"), "`0.0` is not a timeout"),
    ],
)
def test_wrong_options_are_usage_errors(root: Path, arguments: tuple[str, ...], message: str) -> None:
    """Exit 3, and the way out."""
    ran = policyeng("check", str(root / "samples/workspaces/compliant.json"), *arguments)

    assert (ran.returncode, ran.stdout) == (3, "")
    assert message in ran.stderr


@pytest.mark.parametrize("value", [Decimal("1.5"), {1, 2}, object()])
def test_a_fault_before_anything_is_sent_is_not_blamed_on_the_server(value: object) -> None:
    """The request cannot be written: nothing reaches the server, and its response is not named."""
    received: list[bytes] = []

    def record(_: BaseHTTPRequestHandler, body: bytes) -> None:
        received.append(body)

    with responding(record) as url:
        connection = OpaConnection(OpaOptions(url=url))
        for send in (lambda: connection.query("a", {"x": value}), lambda: connection.put_document("a", {"x": value})):
            with pytest.raises(EngineError, match="the request for the OPA server cannot be written: ") as caught:
                send()
            assert "response" not in str(caught.value)
        connection.close()

    assert not received


@pytest.mark.parametrize("fault", [AttributeError("_session"), TypeError("unexpected argument"), ImportError("x")])
def test_a_client_of_another_version_is_named(fault: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message, and no traceback."""

    def refuse(*_: object, **__: object) -> None:
        raise fault

    monkeypatch.setattr("opa_client.OpaClient", refuse)

    with pytest.raises(EngineError, match="the Python client of OPA cannot be used: "):
        OpaConnection(OpaOptions(url="http://127.0.0.1:1"))
