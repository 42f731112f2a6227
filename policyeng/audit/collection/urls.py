"""Documents at http(s) URLs, fetched with limits on time and size. Messages do not contain secrets of the URLs."""

from __future__ import annotations

import base64
import socket
import time
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPResponse, HTTPSConnection
from threading import Timer
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit
from urllib.request import HTTPHandler, HTTPRedirectHandler, HTTPSHandler, OpenerDirector, Request, build_opener

from policyeng.errors import InputError
from policyeng.parsing.json_text import DEFAULT_MAX_BYTES, refuse_size

SCHEMES = ("https://", "http://")
#: How long a server may be silent, in seconds.
TIMEOUT = 30.0
#: How long a document may take as a whole, redirects included, in seconds.
DEADLINE = 300.0
_REMEDY = "see that it can be reached, and that it may be read without signing in"


def is_url(given: str) -> bool:
    """Check whether an input is a URL."""
    return given.lower().startswith(SCHEMES)


def hide_secrets(url: str) -> str:
    """Return a URL without user, password, query and fragment, which can be secret."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def fetched(url: str, max_bytes: int = DEFAULT_MAX_BYTES, *, deadline: float = DEADLINE) -> bytes:
    """Fetch the content of a URL. A user and a password in it are sent to its own host only.

    Args:
        url: the URL.
        max_bytes: the largest size.
        deadline: the longest time in seconds, even if bytes still arrive.

    Raises:
        InputError: it cannot be fetched, exceeds a limit, or redirects from https to http.
    """
    place, limit = hide_secrets(url), _Limit(deadline)
    try:
        with limit, _build_opener(limit).open(_request(url), timeout=TIMEOUT) as response:
            content: bytes = response.read(max_bytes + 1)
            left: int | None = response.length
    except (OSError, HTTPException, ValueError) as error:
        if limit.passed:  # the connection was ended for that
            raise _raise_timeout(place, deadline) from None
        raise _failed(place, error) from None
    if limit.passed:
        raise _raise_timeout(place, deadline)
    refuse_size(len(content), place, max_bytes)
    if left:
        raise _refuse(place, f"cut off {left} bytes before its end")
    return content


class _Limit:
    """A limit on the total time of connections; timeouts of sockets start again with every byte."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self._timer = Timer(seconds, self._end)
        self._timer.daemon = True
        self._sockets: list[socket.socket] = []

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    @property
    def passed(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() >= self._until

    def add(self, connected: socket.socket) -> None:
        """Add an open connection."""
        self._sockets.append(connected)
        if self.passed:
            self._end()

    def _end(self) -> None:
        for each in self._sockets:
            with suppress(OSError):  # closed already
                socket.socket.shutdown(each, socket.SHUT_RDWR)  # of TLS too, which another thread is reading


def _failed(place: str, error: Exception) -> InputError:
    if isinstance(error, HTTPError):
        with error:
            return _refuse(place, f"the server answers {error.code}")
    return _refuse(place, _reason(error.reason if isinstance(error, URLError) else error))


def _raise_timeout(place: str, deadline: float) -> InputError:
    remedy = "see that the server is fast enough, or set `deadline` of the estate"
    return InputError(f"is not fetched within {deadline:g} seconds", place=(place,), remedy=remedy)


class _Http(HTTPHandler):
    """A handler of http URLs with a time limit."""

    def __init__(self, limit: _Limit) -> None:
        super().__init__()
        self._limit = limit

    def http_open(self, req: Request) -> HTTPResponse:
        """Open a URL."""
        limit = self._limit

        class PlainConnection(HTTPConnection):
            def connect(self) -> None:
                super().connect()
                limit.add(self.sock)

        return self.do_open(PlainConnection, req)


class _Https(HTTPSHandler):
    """A handler of https URLs with a time limit."""

    def __init__(self, limit: _Limit) -> None:
        super().__init__()
        self._limit = limit

    def https_open(self, req: Request) -> HTTPResponse:
        """Open a URL."""
        limit = self._limit

        class SecureConnection(HTTPSConnection):
            def connect(self) -> None:
                super().connect()
                limit.add(self.sock)

        return self.do_open(SecureConnection, req)


class _OntoNoWorse(HTTPRedirectHandler):
    """Follows to http(s) only, and from https to nothing that anybody on the way could change."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        """Return the request that follows."""
        allowed = SCHEMES[:1] if req.type == "https" else SCHEMES
        if not newurl.lower().startswith(allowed):
            fp.close()
            raise InputError(
                f"leads to `{hide_secrets(newurl)}`",
                place=(hide_secrets(req.full_url),),
                remedy="name that one, if it is right",
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _build_opener(limit: _Limit) -> OpenerDirector:
    return build_opener(_OntoNoWorse, _Http(limit), _Https(limit))


def _request(url: str) -> Request:
    parts = urlsplit(url)
    credentials, _, host = parts.netloc.rpartition("@")
    request = Request(parts._replace(netloc=host, fragment="").geturl(), headers={"User-Agent": "policyeng"})  # noqa: S310  # only http(s) comes here
    if credentials:
        token = base64.b64encode(unquote(credentials).encode()).decode()
        request.add_unredirected_header("Authorization", f"Basic {token}")
    return request


def _reason(error: object) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return f"cannot be fetched ({str(text).lower()})"


def _refuse(place: str, message: str) -> InputError:
    return InputError(message, place=(place,), remedy=_REMEDY)
