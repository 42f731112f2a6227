"""Certificates: which files are refused, what connections get after they changed, and who a client is."""

from __future__ import annotations

import ssl
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest

from policyeng.errors import UsageError
from policyeng.server.authentication import Certificates, context_of, subject_of
from policyeng.server.options import ServerOptions
from policyeng.server.service import get_time
from tests.bundles import workspace
from tests.certificates import Root
from tests.servers import get_from, look, send_to, service_of, setup_of, state_of


class Connection:
    """A handshake between a client and a server without a network."""

    def __init__(self, server: ssl.SSLContext, client: ssl.SSLContext) -> None:
        there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.server = server.wrap_bio(there, back, server_side=True)
        self.client = client.wrap_bio(back, there, server_hostname="localhost")
        for _ in range(4):
            for side in (self.client, self.server):
                with suppress(ssl.SSLWantReadError):
                    side.do_handshake()

    @property
    def name(self) -> str:
        """The common name of the server, as the client sees it."""
        shown = self.client.getpeercert() or {}
        return str(dict(pair for (pair,) in cast("tuple[tuple[tuple[str, str]]]", shown["subject"]))["commonName"])


def client_of(root: Path, own: tuple[Path, Path] | None = None) -> ssl.SSLContext:
    """A client that trusts a root, and has a certificate or none."""
    context = ssl.create_default_context(cafile=root)
    if own is not None:
        context.load_cert_chain(*own)
    return context


def test_new_files_are_for_new_connections_and_bad_ones_for_none(tmp_path: Path) -> None:
    """An open connection keeps what it began with; half of a new pair is not taken."""
    root = Root()
    trusting = client_of(root.write(tmp_path / "root.pem"))
    certificates = Certificates(*root.issue(tmp_path, "one", "tls"))
    context = certificates.context()
    first = Connection(context, trusting)
    (tmp_path / "tls.key").write_bytes(root.issue(tmp_path, "other")[1].read_bytes())
    look(certificates)
    assert certificates.fault is not None
    assert "cannot use the certificate and its key (key values mismatch)" in certificates.fault.message
    assert Connection(context, trusting).name == "one"
    root.issue(tmp_path, "two", "tls")
    look(certificates)

    assert certificates.fault is None
    assert Connection(context, trusting).name == "two"
    first.server.write(b"still")
    assert (first.name, first.client.read(5)) == ("one", b"still")


def test_a_client_is_identified_by_its_certificate(tmp_path: Path) -> None:
    """One of another root is refused, one without any is anonymous."""
    root, other = Root(), Root("other")
    trusted = root.write(tmp_path / "root.pem")
    context = Certificates(*root.issue(tmp_path, "server"), trusted).context()
    own = root.issue(tmp_path, "a,b=c")

    known = Connection(context, client_of(trusted, own))
    assert subject_of(known.server) == "O=contoso,CN=a\\,b\\=c"
    assert subject_of(Connection(context, client_of(trusted)).server) == ""
    with pytest.raises(ssl.SSLCertVerificationError):
        Connection(context, client_of(trusted, other.issue(tmp_path, "foreign")))


def test_old_versions_are_refused(tmp_path: Path) -> None:
    """TLS 1.1 is none."""
    root = Root()
    trusting = client_of(root.write(tmp_path / "root.pem"))
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        trusting.minimum_version = ssl.TLSVersion.TLSv1
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        trusting.maximum_version = ssl.TLSVersion.TLSv1_1
    trusting.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises(ssl.SSLError, match=r"(?i)unsupported.protocol|protocol.version"):
        Connection(Certificates(*root.issue(tmp_path, "server")).context(), trusting)


def test_files_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    """With which of them it is."""
    root = Root()
    certificate, key = root.issue(tmp_path, "server")
    empty = tmp_path / "empty.pem"
    empty.write_text("", encoding="utf-8")
    locked = root.issue(tmp_path, "locked", password=b"x")
    for files, message in (
        ((tmp_path / "nowhere", key, None), "nowhere: cannot be read (no such file or directory)"),
        ((empty, key, None), "empty.pem: cannot use the certificate and its key"),
        ((certificate, empty, None), "server.pem: cannot use the certificate and its key"),
        ((*locked, None), "locked.key: the key is encrypted"),
        ((certificate, key, empty), "empty.pem: cannot use the roots of client certificates"),
    ):
        with pytest.raises(UsageError) as error:
            context_of(*files)
        assert message in str(error.value)


def test_options_of_certificates_go_together() -> None:
    """None is left out by mistake; clients' certificates identify the callers."""
    file = Path("x")
    with pytest.raises(UsageError, match="--tls-key: a certificate needs its key, and a key its certificate"):
        ServerOptions(tls_cert=file)
    with pytest.raises(UsageError, match="--tls-client-ca: client certificates need TLS"):
        ServerOptions(tls_client_ca=file)
    beyond = "0.0.0.0"  # noqa: S104  # refused below
    with pytest.raises(UsageError, match="without authentication"):
        ServerOptions(host=beyond, tls_cert=file, tls_key=file)
    assert ServerOptions(host=beyond, tls_cert=file, tls_key=file, tls_client_ca=file).host == beyond


def test_without_a_certificate_there_is_no_verdict(tmp_path: Path) -> None:
    """The health of the server can still be requested."""
    files = {"tls_cert": tmp_path, "tls_key": tmp_path, "tls_client_ca": tmp_path}
    setup = setup_of(tmp_path)
    service = service_of(setup, state_of(since=get_time()), **files)

    refused = send_to(service, "/v1/admit", workspace("there"))
    assert (refused.status_code, refused.json()["detail"]) == (403, "the client sent no certificate")
    alive, ready, document = get_from(service, "/healthz", "/readyz", "/openapi.json")
    assert [each.status_code for each in (alive, ready, document)] == [200, 200, 200]
    assert {"403"} < document.json()["paths"]["/v1/admit"]["post"]["responses"].keys()
