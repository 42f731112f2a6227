"""Around every request: its id, the time it came, and an answer whatever happens."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Coroutine, Mapping
from http import HTTPStatus

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from policyeng.server.ids import new_id
from policyeng.server.problems import RefusedError, problem_response

#: The function of a route.
Answering = Callable[[Request], Coroutine[object, object, Response]]
_SANE = re.compile(r"[A-Za-z0-9._:/+=-]{1,128}")
_log = logging.getLogger("policyeng.server")


class Front:
    """Give each request an id, in the answer too, and turn what nobody foresaw into an answer that says nothing.

    The id is the caller's `X-Request-Id` where that is one; it is in the state of the request as `request_id`.
    While the server is `leaving`, each answer ends its connection, so that the next request goes elsewhere.

    Args:
        app: answers what the routes do not.
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
        began = False

        async def sending(message: Message) -> None:
            nonlocal began
            if message["type"] == "http.response.start":
                began = True
                headers = MutableHeaders(scope=message)
                headers["X-Request-Id"] = request_id
                headers["Cache-Control"] = "no-store"
                if self._leaving():
                    headers["Connection"] = "close"
            await send(message)

        try:
            if function := self._routes.get((scope["method"], scope["path"])):
                response = await function(Request(scope, receive, sending))
                await response(scope, receive, sending)
            else:
                await self._app(scope, receive, sending)
        except ClientDisconnect:
            _log.info("request %s: the client went away", request_id)
        except Exception:
            _log.exception("request %s: internal error", request_id)
            if began:
                raise
            message = "internal error; the log of the server has it by the id of the request"
            refused = RefusedError(HTTPStatus.INTERNAL_SERVER_ERROR, message)
            await problem_response(refused, request_id)(scope, receive, sending)
