"""Authorization by bearer tokens with scopes; the server stores only their hashes."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from pathlib import Path

from policyeng.errors import UsageError, suggest_nearest
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
            scope: what is asked for.

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
