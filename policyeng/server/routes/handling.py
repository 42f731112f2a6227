"""Handle requests of any route, and the routes of health."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from http import HTTPStatus
from time import perf_counter
from typing import TypeVar

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from policyeng.context import EvaluationSetup
from policyeng.errors import PolicyengError
from policyeng.models import Decision, Evaluation, JsonObject
from policyeng.parsing.json_pointer import escaped
from policyeng.parsing.json_text import shortened
from policyeng.server import openapi
from policyeng.server.authentication import TokenScope
from policyeng.server.metrics import ServerMetrics
from policyeng.server.options import Route
from policyeng.server.request_body import JSON, RequestRefusedError, media_type_of, new_id, problem_response
from policyeng.server.schemas import Alive, Readiness
from policyeng.server.service import Answered, Service, get_time


class DirectRoute(APIRoute):
    """One that is described as every other, and called without FastAPI looking for what its function may want.

    Source: FastAPI's documentation, "Custom Request and APIRoute class".
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[object, object, Response]]:
        """Return the function itself."""
        function: Callable[[Request], Coroutine[object, object, Response]] = self.endpoint
        return function


_T = TypeVar("_T")
#: Seconds of work after which it is cancelled when the client disconnects.
_UNWATCHED = 0.05

DECISION_ID = "X-Decision-Id"


@dataclass(frozen=True, slots=True)
class RouteRequest:
    """A request as passed to the handler.

    Attributes:
        at: the evaluation time.
        query: the query parameters.
    """

    content: bytes
    media_type: str
    decision_id: str
    at: datetime
    query: Mapping[str, str]

    @property
    def standing(self) -> bool:
        """Return whether the decision lists failures that existed before the change.

        Raises:
            RefusedError: it is neither true nor false, or there is another parameter.
        """
        for name, value in self.query.items():
            if name != "standing" or value not in ("true", "false"):
                raise RequestRefusedError(
                    HTTPStatus.UNPROCESSABLE_ENTITY,
                    "`standing` is not true or false"
                    if name == "standing"
                    else f"unknown parameter `{shortened(name)}`",
                    place=("query", f"/{escaped(shortened(name))}"),
                    remedy="give `standing=true`, `standing=false` or nothing",
                )
        return self.query.get("standing") == "true"


@dataclass(frozen=True, slots=True)
class RouteResponse:
    """The result of a handler: the JSON body, and details for the log and the metrics; see `Answered`."""

    body: bytes
    setup: EvaluationSetup | None = None
    document: object = None
    outcome: Evaluation | Decision | None = None
    state_age: float | None = None
    refusal: PolicyengError | None = None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A route for evaluations or decisions.

    Attributes:
        scope: the scope that a token needs.
        describe: returns the description for OpenAPI.
        work: handles a request, on a thread.
        refused: handles a request whose work raised an error, without waiting for anything; None for a problem.
        takes: the media types of bodies.
    """

    route: Route
    scope: TokenScope
    describe: Callable[[Service], JsonObject]
    work: Callable[[Service, RouteRequest], RouteResponse]
    refused: Callable[[Service, RouteRequest, PolicyengError], RouteResponse] | None = None
    takes: tuple[str, ...] = (JSON,)

    def add(self, app: FastAPI, service: Service) -> None:
        """Add the route to an application."""

        async def answered(request: Request) -> Response:
            return await answer(service, request, self)

        described = self.describe(service)
        app.add_api_route(
            f"/v1/{self.route}", answered, methods=["POST"], name=self.route.replace("-", "_"), **described
        )


async def answer(service: Service, request: Request, point: Endpoint) -> Response:
    """Respond to a request for an evaluation, within its time limit.

    Args:
        service: the parts of the server.
        request: the request, whose body is not read yet.
        point: the endpoint of the request.

    Raises:
        ClientDisconnect: the client is no longer connected.
    """
    loop = asyncio.get_running_loop()
    began = perf_counter()  # finer than the clock of the loop
    until = loop.time() + service.options.deadline
    decision_id, at = new_id(), get_time()
    requested_by, size, result, refusal = "", 0, RouteResponse(b""), None
    try:
        requested_by = caller_of(service, request, point.scope)
        media_type = media_type_of(request, point.takes)
        if point.refused is None:
            service.queue.require_place()  # before any work is done for it: what is refused must cost next to nothing
        async with service.bodies.body_of(request, until) as content:
            size = len(content)
            routed = RouteRequest(content, media_type, decision_id, at, request.query_params)
            try:
                result = await _unless_gone(request, service.queue.run(partial(point.work, service, routed), until))
            except PolicyengError as error:
                if point.refused is None:
                    raise
                result = point.refused(service, routed, error)
        refusal = result.refusal
        response = Response(result.body, media_type=JSON)
    except PolicyengError as error:
        refusal = error
        response = problem_response(error, request.state.request_id)
    response.headers[DECISION_ID] = decision_id
    service.notify(
        Answered(
            point=point.route,
            decision_id=decision_id,
            request_id=request.state.request_id,
            requested_by=requested_by,
            at=at,
            seconds=perf_counter() - began,
            status=response.status_code,
            document=result.document,
            outcome=result.outcome,
            refusal=refusal,
            setup=result.setup,
            state_age=result.state_age,
            client="{}:{}".format(*request.client or ("", "")).strip(":"),
            traceparent=request.headers.get("traceparent", ""),
            size=size + len(response.body),
        )
    )
    return response


def caller_of(service: Service, request: Request, scope: TokenScope) -> str:
    """Return the name of the client.

    Raises:
        RefusedError: as `Service.caller`.
    """
    subject = getattr(request.state, "subject", "")
    return service.caller(request.headers.get("authorization", ""), subject, scope)


async def _unless_gone(request: Request, work: Coroutine[object, object, _T]) -> _T:
    """Return the result of the work; cancel it if the client disconnects.

    Most work ends before anyone watches the connection, because a task for that costs more than a small decision.

    Raises:
        ClientDisconnect: it did.
    """
    working, watching = asyncio.current_task(), list[asyncio.Task[None]]()

    async def cancel_when_gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        if working is not None:
            working.cancel()

    timer = asyncio.get_running_loop().call_later(
        _UNWATCHED, lambda: watching.append(asyncio.ensure_future(cancel_when_gone()))
    )
    try:
        return await work
    except asyncio.CancelledError:
        if working is None or not (watching and watching[0].done()):
            raise
        working.uncancel()
        raise ClientDisconnect from None
    finally:
        timer.cancel()
        for task in watching:
            task.cancel()


_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"

#: The header of readiness that names what is active from an earlier reading, because the last one failed.
DEGRADED = "X-Policyeng-Degraded"


def add(app: FastAPI, service: Service) -> None:
    """Add the routes that everyone may request."""

    @app.get("/healthz", **openapi.healthz())
    async def healthz(_: Request) -> Response:
        return JSONResponse(Alive(status="alive"))

    @app.get("/readyz", **openapi.readyz())
    async def readyz(_: Request) -> Response:
        reasons = service.unready()
        status = HTTPStatus.SERVICE_UNAVAILABLE if reasons else HTTPStatus.OK
        faults = [each.what for each in service.watched() if each.fault]
        degraded = {DEGRADED: ", ".join(faults)} if faults else {}
        readiness = Readiness(ready=not reasons, reasons=reasons, faults=service.faults())
        return JSONResponse(readiness, status, degraded)


def add_metrics(app: FastAPI, service: Service, metrics: ServerMetrics) -> None:
    """Add the route of the metrics."""

    @app.get("/metrics", **openapi.metrics(service))
    async def exposition(request: Request) -> Response:
        try:
            caller_of(service, request, TokenScope.METRICS)
        except PolicyengError as error:
            return problem_response(error, request.state.request_id)
        return Response(metrics.exposition(), media_type=_PROMETHEUS)
