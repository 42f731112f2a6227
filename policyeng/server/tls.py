"""Certificates: TLS 1.2 or later, the clients' certificates where a CA for them is named, new files while it serves."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from policyeng.errors import UsageError
from policyeng.server.file_watcher import Watched

#: Names of parts of a subject as RFC 4514 writes them.
_SHORT = {
    "commonName": "CN",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "countryName": "C",
    "stateOrProvinceName": "ST",
    "localityName": "L",
}
_ESCAPED = str.maketrans({char: f"\\{char}" for char in ',+"\\<>;='})


class Certificates(Watched[ssl.SSLContext]):
    """The last good certificate and key, and the CA that clients' certificates are signed by.

    Raises:
        UsageError: the first ones cannot be used.
    """

    def __init__(self, certificate: Path, key: Path, client_ca: Path | None = None, *, seconds: float = 2.0) -> None:
        files = (certificate, key, *([client_ca] if client_ca is not None else []))
        super().__init__("certificate", lambda: context_of(certificate, key, client_ca), files, seconds=seconds)

    def context(self) -> ssl.SSLContext:
        """Return a server context; each new connection gets the certificate that is active then."""
        context = _Newest(ssl.PROTOCOL_TLS_SERVER)
        context.certificates = self
        return context


class _Newest(ssl.SSLContext):
    """Delegate to the newest context; reloading a context that is in use could leave it half replaced."""

    certificates: Watched[ssl.SSLContext]

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """Return the context of a new connection."""
        return self.certificates.current.wrap_bio(incoming, outgoing, server_side, server_hostname, session)


def context_of(certificate: Path, key: Path, client_ca: Path | None) -> ssl.SSLContext:
    """Create a server context.

    A client need not have a certificate to ask whether the server is alive; one that it has must be good.

    Args:
        certificate: PEM, with those between it and the root after it.
        key: PEM, not encrypted.
        client_ca: PEM, the roots of clients' certificates.

    Raises:
        UsageError: a file cannot be read, is not what it should be, or the key is that of another certificate.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    for path in (certificate, key, *([client_ca] if client_ca is not None else [])):
        _require_readable(path)
    try:
        context.load_cert_chain(certificate, key, password=lambda: _refuse_encrypted(key))
    except ssl.SSLError as error:
        message = f"cannot use the certificate and its key ({_reason(error)})"
        raise UsageError(message, place=(str(certificate),), remedy=f"set matching PEM files, with `{key}`") from None
    if client_ca is not None:
        context.verify_mode = ssl.CERT_OPTIONAL
        try:
            context.load_verify_locations(client_ca)
        except ssl.SSLError as error:
            message = f"cannot use the roots of client certificates ({_reason(error)})"
            raise UsageError(message, place=(str(client_ca),), remedy="use PEM certificates") from None
    return context


def subject_of(connection: ssl.SSLObject | None) -> str:
    """Return the subject of a client certificate as in RFC 4514, the widest part first; empty without one."""
    shown: Mapping[str, Any] = (connection.getpeercert() if connection is not None else None) or {}
    parts = (pair for group in shown.get("subject", ()) for pair in group)
    return ",".join(f"{_SHORT.get(name, name)}={value.translate(_ESCAPED)}" for name, value in parts)


def _require_readable(path: Path) -> None:
    try:
        path.read_bytes()
    except OSError as error:
        message = f"cannot be read ({(error.strerror or 'unreadable').lower()})"
        raise UsageError(message, place=(str(path),), remedy="name a PEM file that exists") from None


def _refuse_encrypted(key: Path) -> NoReturn:
    raise UsageError(
        "the key is encrypted", place=(str(key),), remedy="use an unencrypted key that only the server can read"
    )


def _reason(error: ssl.SSLError) -> str:
    return (error.reason or error.strerror or "not PEM").lower().replace("_", " ")
