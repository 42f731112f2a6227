"""Authentication: bearer tokens with scopes, of which the server stores hashes, and TLS certificates."""

from __future__ import annotations

import hashlib
import hmac
import re
import ssl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from pathlib import Path
from typing import Any, NoReturn

from policyeng.errors import UsageError, suggest_nearest
from policyeng.server.file_watcher import Watched
from policyeng.server.request_body import RequestRefusedError

_REALM = 'Bearer realm="policyeng"'
_REMEDY = "write `NAME SCOPE,SCOPE sha256:HEX`, the hash of the token in 64 hexadecimal digits"
_HASH = re.compile(r"sha256:([0-9a-f]{64})", re.IGNORECASE)


class TokenScope(StrEnum):
    """What a token permits."""

    CHECK = "check"
    ADMIT = "admit"
    METRICS = "metrics"
    HISTORY = "history"


@dataclass(frozen=True, slots=True)
class ApiToken:
    """A token: its owner, its scopes, and its SHA-256."""

    name: str
    scopes: frozenset[TokenScope]
    digest: bytes


class Tokens:
    """The known tokens; without any, every request is refused."""

    def __init__(self, known: Sequence[ApiToken] = ()) -> None:
        self._known = tuple(known)

    def holder(self, authorization: str, scope: TokenScope) -> str:
        """Return the name of the token owner.

        Compares every hash, each in constant time, so that the time reveals nothing about a token.

        Args:
            authorization: the header as it came; empty when there is none.
            scope: the scope that the request needs.

        Raises:
            RefusedError: there is no token, or none that is known (401), or it is not for this (403).
        """
        scheme, _, given = authorization.partition(" ")
        if scheme.lower() != "bearer" or not given.strip():
            raise _refuse(HTTPStatus.UNAUTHORIZED, "the request has no token", "send `Authorization: Bearer TOKEN`")
        holders = self._holders(digest_of(given.strip()))
        if not holders:
            what = 'error="invalid_token"'
            raise _refuse(HTTPStatus.UNAUTHORIZED, "unknown token", "send a token from the server's token file", what)
        if scope not in holders[0].scopes:
            what = f'error="insufficient_scope", scope="{scope}"'
            message = f"the token of `{holders[0].name}` lacks the scope `{scope}`"
            raise _refuse(HTTPStatus.FORBIDDEN, message, f"send one with the scope `{scope}`", what)
        return holders[0].name

    def name_of(self, digest: bytes, scope: TokenScope) -> str | None:
        """Return the name of the token with this hash; None if it is unknown or lacks the scope."""
        return next((token.name for token in self._holders(digest) if scope in token.scopes), None)

    def _holders(self, digest: bytes) -> list[ApiToken]:
        return [token for token in self._known if hmac.compare_digest(token.digest, digest)]


def digest_of(token: str) -> bytes:
    """Return the hash that identifies a token."""
    return hashlib.sha256(token.encode("latin-1", "replace")).digest()


def _refuse(status: int, message: str, remedy: str, what: str = "") -> RequestRefusedError:
    challenge = ", ".join(part for part in (_REALM, what) if part)
    return RequestRefusedError(status, message, remedy=remedy, headers={"WWW-Authenticate": challenge})


def read_tokens(path: Path) -> Tokens:
    """Read a file of tokens: in each line a name, scopes with commas between them, and the hash of a token.

    Empty lines and those that start with `#` are ignored.

    Raises:
        UsageError: it cannot be read, has none, or a line of it is not well formed.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = (getattr(error, "strerror", None) or "not UTF-8").lower()
        message = f"cannot read the tokens ({reason})"
        raise UsageError(message, place=(str(path),), remedy="name a text file that exists") from None
    known = list(_tokens(text, str(path)))
    if not known:
        raise UsageError("the file has no tokens", place=(str(path),), remedy=_REMEDY)
    return Tokens(known)


def _tokens(text: str, file: str) -> Iterator[ApiToken]:
    names: set[str] = set()
    digests: set[bytes] = set()
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        token = _token(line.split(), f"{file}:{number}")
        if token.name in names or token.digest in digests:
            message = f"the {'name' if token.name in names else 'token'} of `{token.name}` is duplicated"
            raise UsageError(message, place=(f"{file}:{number}",), remedy="use a unique name and token per owner")
        names.add(token.name)
        digests.add(token.digest)
        yield token


def _token(words: Sequence[str], place: str) -> ApiToken:
    if len(words) != 3 or not (
        found := _HASH.fullmatch(words[2])
    ):  # the message omits the line: it may contain a token
        raise UsageError("invalid line", place=(place,), remedy=_REMEDY)
    scopes = words[1].lower().split(",")
    known = [str(scope) for scope in TokenScope]
    if wrong := next((scope for scope in scopes if scope not in known), None):
        remedy = f"the scopes are {', '.join(known)}"
        raise UsageError(f"unknown scope `{wrong}`{suggest_nearest(wrong, known)}", place=(place,), remedy=remedy)
    if "" in scopes:
        raise UsageError("a scope is empty", place=(place,), remedy=_REMEDY)
    return ApiToken(words[0], frozenset(map(TokenScope, scopes)), bytes.fromhex(found[1]))


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

    A client needs no certificate to request whether the server is alive; one that it has must be valid.

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
