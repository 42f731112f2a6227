"""The application: the routes around a service, and a response to every request."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from functools import cache, partial
from http import HTTPStatus

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from policyeng import __version__
from policyeng.models import JsonObject
from policyeng.server import openapi
from policyeng.server.request_body import RequestRefusedError, new_id, problem_response
from policyeng.server.routes import admission_review, evaluation, handling
from policyeng.server.routes.handling import DirectRoute
from policyeng.server.schemas import describe
from policyeng.server.service import Service

#: The function of a route.
Answering = Callable[[Request], Coroutine[object, object, Response]]
_SANE = re.compile(r"[A-Za-z0-9._:/+=-]{1,128}")
#: A name or an IPv4 address, or an IPv6 address in brackets, and a port.
_HOST = re.compile(rb"(?:[A-Za-z0-9._~!$&'()*+,;=%-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]*)?")
#: Routes that are requested every few seconds; a success is logged at the level of debugging.
_PROBES = frozenset({"/healthz", "/readyz", "/metrics"})
#: The status in the access log of a request whose client disconnected before the response, as in nginx.
_DISCONNECTED = 499
_log = logging.getLogger("policyeng.server")
_access_log = logging.getLogger("policyeng.access")


class Middleware:
    """Give each request and its response an id, and turn unexpected errors into a response without details.

    Each request has a line in the access log. The id is the caller's `X-Request-Id` if valid; it is in the state of
    the request as `request_id`. While the server is `leaving`, each response closes its connection, so that the next
    request goes elsewhere.

    Args:
        app: handles what the routes do not.
        routes: by method and path, functions that answer. The layers of FastAPI before them would cost more than they.
        leaving: whether the server is about to end.
    """

    def __init__(self, app: ASGIApp, routes: Mapping[tuple[str, str], Answering], leaving: Callable[[], bool]) -> None:
        self._app = app
        self._routes = routes
        self._leaving = leaving

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection of ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if _SANE.fullmatch(given) else new_id()
        scope.setdefault("state", {})["request_id"] = request_id
        status, started = 0, time.perf_counter()
        function = self._routes.get((scope["method"], scope["path"]))

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-Id"] = request_id
                headers["Cache-Control"] = "no-store"
                if self._leaving():
                    headers["Connection"] = "close"
            await send(message)

        try:
            if (refused := _refuse_headers(scope)) is not None:
                await problem_response(refused, request_id)(scope, receive, sending)
            elif function is not None:
                response = await function(Request(scope, receive, sending))
                await response(scope, receive, sending)
            else:
                await self._app(scope, receive, sending)
        except ClientDisconnect:
            pass  # the access log has it
        except Exception:
            _log.exception("request %s: internal error", request_id, extra={"fields": {"request_id": request_id}})
            if status:
                raise
            message = "internal error; see the server log for this request id"
            unexpected = RequestRefusedError(HTTPStatus.INTERNAL_SERVER_ERROR, message)
            await problem_response(unexpected, request_id)(scope, receive, sending)
        finally:
            template = getattr(scope.get("route"), "path", "-") if function is None else scope["path"]
            _log_access(scope, template, status or _DISCONNECTED, time.perf_counter() - started)


def _refuse_headers(scope: Scope) -> RequestRefusedError | None:
    """Return why the headers of a request are refused: a proxy before the server could understand them differently.

    Sources: RFC 9112 3.2 (`Host`), RFC 9110 5.3 and 8.3 (`Content-Type`) and 10.1.1 (`Expect`).
    """
    hosts, kinds, expected = 0, 0, b""
    for name, value in scope["headers"]:
        if name == b"host":
            hosts += 1
            if not _HOST.fullmatch(value):
                return _bad_request("the `Host` is not a host with an optional port")
        elif name == b"content-type":
            kinds += 1
        elif name == b"expect":
            expected = value
    if hosts > 1 or (hosts == 0 and scope.get("http_version") == "1.1"):
        return _bad_request("the request has no `Host`" if hosts == 0 else "the request has more than one `Host`")
    if kinds > 1:
        return _bad_request("the request has more than one `Content-Type`")
    if expected and expected.lower() != b"100-continue":
        message, headers = "the request expects something else than `100-continue`", {"Connection": "close"}
        return RequestRefusedError(HTTPStatus.EXPECTATION_FAILED, message, headers=headers)
    return None


def _bad_request(message: str) -> RequestRefusedError:
    return RequestRefusedError(HTTPStatus.BAD_REQUEST, message, headers={"Connection": "close"})


def _log_access(scope: Scope, template: str, status: int, seconds: float) -> None:
    """Log a request: the template of its route, since a path may contain what a caller did not mean to send."""
    level = logging.DEBUG if template in _PROBES and status < HTTPStatus.BAD_REQUEST else logging.INFO
    if not _access_log.isEnabledFor(level):
        return
    request_id, milliseconds = scope["state"]["request_id"], round(seconds * 1000, 1)
    fields = {
        "method": scope["method"],
        "route": template,
        "status": status,
        "duration_ms": milliseconds,
        "request_id": request_id,
    }
    line = (scope["method"], template, status, milliseconds, request_id)
    _access_log.log(level, "%s %s %d %s ms, request %s", *line, extra={"fields": fields})


_ENDPOINTS = (evaluation.CHECK, evaluation.ADMIT, admission_review.RESTRICTIONS, admission_review.ADMISSION_REVIEW)


def application(service: Service) -> FastAPI:
    """Return the application of a service, and start and stop the service with it."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.openapi()  # built now, so that the first request for it does not delay others
        service.start()
        try:
            yield
        finally:
            service.stop()

    app = FastAPI(
        title="policyeng",
        version=__version__,
        summary="Check Azure Machine Learning workspaces, and changes to them before they are made.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
    )
    app.router.route_class = DirectRoute
    app.add_exception_handler(HTTPException, _refuse)
    for endpoint in _ENDPOINTS:
        if endpoint.route in service.options.only:
            endpoint.add(app, service)
    handling.add(app, service)
    if service.metrics is not None:
        handling.add_metrics(app, service, service.metrics)
    if service.reports is not None:
        from policyeng.server.routes import history  # it needs the templates of the pages

        history.add(app, service, service.reports)
    routes = {
        (method, each.path): each.endpoint
        for each in app.routes
        if isinstance(each, DirectRoute)
        for method in each.methods or ()
    }
    app.middleware_stack = Middleware(app.build_middleware_stack(), routes, lambda: service.leaving)
    app.openapi = cache(partial(_document, app, service))  # type: ignore[method-assign]  # as FastAPI's documentation has it
    return app


def _document(app: FastAPI, service: Service) -> JsonObject:
    document = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
    names = openapi.list_schemas(document["paths"])
    document["components"] = {"schemas": describe(names, brings_state=service.state is None)}
    if service.tokens is not None:
        document["components"]["securitySchemes"] = openapi.SECURITY
    return document


async def _refuse(request: Request, error: Exception) -> Response:
    """Return the response for a path or a method that Starlette does not know."""
    status, headers = (error.status_code, error.headers) if isinstance(error, HTTPException) else (500, None)
    refused = RequestRefusedError(
        status, f"`{request.method} {request.url.path}` is not answered here", headers=headers
    )
    return problem_response(refused, request.state.request_id)
