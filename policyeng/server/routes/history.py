"""`/`: the history of audits for people, who sign in with a token."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from urllib.parse import SplitResult, parse_qs, urlsplit

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from policyeng.errors import PolicyengError, UsageError
from policyeng.report.html import HOME, SIGN_IN, SIGN_OUT, page
from policyeng.server.authentication import TokenScope
from policyeng.server.history_site import LASTING, Attempts, Reports, Sessions
from policyeng.server.options import is_loopback
from policyeng.server.request_body import Bodies, RequestRefusedError, media_type_of, problem_response, status_of
from policyeng.server.routes.handling import caller_of
from policyeng.server.service import Service

#: Bytes of a form, and of all that are being sent.
_FORM, _FORMS = 4096, 256 * 4096
#: Seconds in which a form arrives.
_ARRIVAL = 10
#: What keeps pages out of frames and caches of others; a page states itself what it may load.
_HEADERS = {
    "Content-Security-Policy": "frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_log = logging.getLogger("policyeng.server")


def add(app: FastAPI, service: Service, reports: Reports) -> None:
    """Add the pages; they are for people, and the description of the interface does not have them."""
    pages = _Pages(service, reports)
    for path, show in (
        (HOME, pages.estates),
        ("/estates/{estate}", pages.estate),
        ("/runs/{number}", pages.run),
    ):
        app.add_api_route(path, pages.for_holders(show), methods=["GET"], include_in_schema=False)
    app.add_api_route(SIGN_IN, pages.form, methods=["GET"], include_in_schema=False)
    app.add_api_route(SIGN_IN, pages.sign_in, methods=["POST"], include_in_schema=False)
    app.add_api_route(SIGN_OUT, pages.sign_out, methods=["POST"], include_in_schema=False)


class _Pages:
    def __init__(self, service: Service, reports: Reports) -> None:
        self._service = service
        self._reports = reports
        self._sessions = Sessions()
        self._attempts = Attempts()
        self._bodies = Bodies(_FORM, _FORMS)
        self._secure = service.certificates is not None
        #: A name with this prefix is taken by browsers over TLS alone, from this host alone and for all paths.
        self._cookie = "__Host-policyeng" if self._secure else "policyeng"

    def for_holders(self, show: Callable[[Request, str], Awaitable[bytes]]) -> Callable[[Request], Awaitable[Response]]:
        """Return a page to clients with a session or a token; redirect others to the sign-in form."""

        async def shown(request: Request) -> Response:
            try:
                holder = self._holder(request)
                if holder is None:
                    return RedirectResponse(SIGN_IN, HTTPStatus.SEE_OTHER, _HEADERS)
                return _html(await show(request, holder))
            except UsageError as error:  # retention has taken what the run found
                gone = RequestRefusedError(HTTPStatus.GONE, error.message, remedy=error.remedy)
                return _build_refusal(request, gone)
            except PolicyengError as error:
                return _build_refusal(request, error)

        return shown

    async def estates(self, _: Request, holder: str) -> bytes:
        """Return the page of all estates."""
        return await self._reports.estates(holder)

    async def estate(self, request: Request, _: str) -> bytes:
        """Return the latest run of an estate."""
        name = request.path_params["estate"]
        if (run := await self._reports.newest(name)) is None:
            raise RequestRefusedError(HTTPStatus.NOT_FOUND, f"estate `{name}` has no runs", remedy="see `/`")
        return await self._reports.report(run)

    async def run(self, request: Request, _: str) -> bytes:
        """Return a run by its number."""
        number = request.path_params["number"]
        try:
            found = await self._reports.run(int(number) if number.isascii() and number[:9].isdigit() else 0)
        except (UsageError, ValueError):
            raise RequestRefusedError(
                HTTPStatus.NOT_FOUND, f"run `{number}` does not exist", remedy="see `/`"
            ) from None
        return await self._reports.report(found)

    async def form(self, request: Request) -> Response:
        """Return the page for signing in."""
        try:
            _require_host(self._service, request)
        except PolicyengError as error:
            return _build_refusal(request, error)
        if self._service.tokens is None:
            return RedirectResponse(HOME, HTTPStatus.SEE_OTHER, _HEADERS)
        return _html(page("sign_in.html", refusal="").encode())

    async def sign_in(self, request: Request) -> Response:
        """Take the token of the form, and begin a session."""
        address = request.client.host if request.client else ""
        try:
            _require_host(self._service, request)
            _require_same_site(request)
            self._attempts.require_patience(address)
            token = await self._token(request)
            try:
                holder = self._service.caller(
                    f"Bearer {token}", getattr(request.state, "subject", ""), TokenScope.HISTORY
                )
            except RequestRefusedError:
                self._attempts.refused(address)
                raise
        except RequestRefusedError as error:
            fields = {"request_id": request.state.request_id, "client": address}
            _log.warning("request %s: refused to sign in from %s", *fields.values(), extra={"fields": fields})
            headers = {name: value for name, value in error.headers.items() if name != "WWW-Authenticate"}
            return _html(page("sign_in.html", refusal=str(error)).encode(), status_of(error), headers)
        fields = {"request_id": request.state.request_id, "holder": holder, "client": address}
        _log.info("request %s: `%s` signed in from %s", *fields.values(), extra={"fields": fields})
        response = RedirectResponse(HOME, HTTPStatus.SEE_OTHER, _HEADERS)
        if self._service.tokens is not None:
            key = self._sessions.begin(token)
            response.set_cookie(
                self._cookie, key, LASTING, secure=self._secure, httponly=True, samesite="strict", path="/"
            )
        return response

    async def sign_out(self, request: Request) -> Response:
        """End the session."""
        try:
            _require_same_site(request)
        except PolicyengError as error:
            return _build_refusal(request, error)
        self._sessions.end(request.cookies.get(self._cookie, ""))
        response = RedirectResponse(SIGN_IN, HTTPStatus.SEE_OTHER, _HEADERS)
        response.delete_cookie(self._cookie, path="/", secure=self._secure, httponly=True, samesite="strict")
        return response

    def _holder(self, request: Request) -> str | None:
        """Return the caller; empty if callers do not authenticate, None if not signed in.

        Raises:
            RefusedError: the token has no access to the history, or the host is not one of this server.
        """
        _require_host(self._service, request)
        if self._service.tokens is None or "authorization" in request.headers:
            return caller_of(self._service, request, TokenScope.HISTORY)
        self._service.require_certificate(getattr(request.state, "subject", ""))
        key = request.cookies.get(self._cookie, "")
        return self._sessions.holder(key, self._service.tokens.current)

    async def _token(self, request: Request) -> str:
        media_type_of(request, ("application/x-www-form-urlencoded",))
        until = asyncio.get_running_loop().time() + _ARRIVAL
        async with self._bodies.body_of(request, until) as content:
            try:
                fields = parse_qs(content.decode("latin-1"), max_num_fields=8)
            except ValueError:
                message = "the form has too many fields"
                raise RequestRefusedError(HTTPStatus.BAD_REQUEST, message, remedy="send `token` alone") from None
        return fields.get("token", [""])[0].strip()


def _require_host(service: Service, request: Request) -> None:
    """Refuse foreign host names if callers do not sign in, because of DNS rebinding by other sites.

    Raises:
        RefusedError: the host of the request is not this machine (421).
    """
    host = _split(f"//{request.headers.get('host', '')}").hostname or ""
    if service.tokens is None and not is_loopback(host):
        message = f"`{host}` is not a name of this server"
        raise RequestRefusedError(HTTPStatus.MISDIRECTED_REQUEST, message, remedy="use `127.0.0.1` or `localhost`")


def _require_same_site(request: Request) -> None:
    """Refuse a form that a page of others sent.

    Raises:
        RefusedError: it came from another site (403).
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    host = request.headers.get("host")  # HTTP/1.0 need not send one
    ours = site in ("same-origin", "none") if site else not origin or (bool(host) and _split(origin).netloc == host)
    if not ours:
        message = "the form was sent by another site"
        raise RequestRefusedError(HTTPStatus.FORBIDDEN, message, remedy=f"open `{SIGN_IN}` here")


def _split(url: str) -> SplitResult:
    """Split a URL into its parts; empty ones for an invalid URL."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


def _html(content: bytes, status: int = HTTPStatus.OK, headers: dict[str, str] | None = None) -> Response:
    return Response(content, status, {**_HEADERS, **(headers or {})}, "text/html; charset=utf-8")


def _build_refusal(request: Request, error: PolicyengError) -> Response:
    response = problem_response(error, request.state.request_id)
    response.headers.update(_HEADERS)
    return response
