"""Documents at http(s) URLs: fetched with a limit on time and size, and named without what they may hold of secrets."""

from __future__ import annotations

import base64
from http.client import HTTPException, HTTPMessage
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

from policyeng.errors import InputError
from policyeng.strict.json_text import DEFAULT_MAX_BYTES, refuse_size

SCHEMES = ("https://", "http://")
#: How long a server may be silent, in seconds.
TIMEOUT = 30.0
_REMEDY = "see that it can be reached, and that it may be read without signing in"


def is_url(given: str) -> bool:
    """Whether an input is fetched."""
    return given.lower().startswith(SCHEMES)


def shown(url: str) -> str:
    """A URL without user, password, query and fragment, where secrets stand."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def fetched(url: str, max_bytes: int = DEFAULT_MAX_BYTES) -> bytes:
    """What a URL gives; a user and a password in it are sent, to its own host only.

    Raises:
        InputError: it cannot be fetched, is larger than the limit, or leads from https to http.
    """
    place = shown(url)
    try:
        with _opener().open(_request(url), timeout=TIMEOUT) as response:
            content: bytes = response.read(max_bytes + 1)
            left: int | None = response.length
    except HTTPError as error:
        with error:
            raise _refused(place, f"the server answers {error.code}") from None
    except URLError as error:
        raise _refused(place, _reason(error.reason)) from None
    except (OSError, HTTPException, ValueError) as error:
        raise _refused(place, _reason(error)) from None
    refuse_size(len(content), place, max_bytes)
    if left:
        raise _refused(place, f"cut off {left} bytes before its end")
    return content


class _OntoNoWorse(HTTPRedirectHandler):
    """Follows to http(s) only, and from https to nothing that anybody on the way could change."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        """The request that follows."""
        allowed = SCHEMES[:1] if req.type == "https" else SCHEMES
        if not newurl.lower().startswith(allowed):
            fp.close()
            raise InputError(
                f"leads to `{shown(newurl)}`", place=(shown(req.full_url),), remedy="name that one, if it is right"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener() -> OpenerDirector:
    return build_opener(_OntoNoWorse)


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


def _refused(place: str, message: str) -> InputError:
    return InputError(message, place=(place,), remedy=_REMEDY)
