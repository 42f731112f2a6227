"""Whether the server is alive and whether it can decide, and its metrics."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from policyeng.errors import PolicyengError
from policyeng.server import openapi
from policyeng.server.problems import problem_response
from policyeng.server.routes.handling import caller_of
from policyeng.server.service import Service, ServiceMetrics
from policyeng.server.tokens import TokenScope

_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"

#: The header of readiness that names what is in force of an earlier reading, for the last is bad.
DEGRADED = "X-Policyeng-Degraded"


def add(app: FastAPI, service: Service) -> None:
    """Add the routes that everybody may ask."""

    @app.get("/healthz", **openapi.healthz())
    async def healthz(_: Request) -> Response:
        return JSONResponse({"status": "alive"})

    @app.get("/readyz", **openapi.readyz())
    async def readyz(_: Request) -> Response:
        reasons = service.unready()
        status = HTTPStatus.SERVICE_UNAVAILABLE if reasons else HTTPStatus.OK
        faults = [each.what for each in service.watched() if each.fault]
        degraded = {DEGRADED: ", ".join(faults)} if faults else {}
        return JSONResponse({"ready": not reasons, "reasons": reasons, "faults": service.faults()}, status, degraded)


def add_metrics(app: FastAPI, service: Service, metrics: ServiceMetrics) -> None:
    """Add the route of the metrics."""

    @app.get("/metrics", **openapi.metrics(service))
    async def exposition(request: Request) -> Response:
        try:
            caller_of(service, request, TokenScope.METRICS)
        except PolicyengError as error:
            return problem_response(error, request.state.request_id)
        return Response(metrics.exposition(), media_type=_PROMETHEUS)
