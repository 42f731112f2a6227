"""The application: the routes around a service, and an answer to whatever comes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache, partial

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from policyeng import __version__
from policyeng.models import JsonObject
from policyeng.server import openapi
from policyeng.server.front import Front
from policyeng.server.options import Route
from policyeng.server.problems import RefusedError, problem_response
from policyeng.server.routes import admission_review, admit, check, health, policy_restrictions
from policyeng.server.routes.direct import DirectRoute
from policyeng.server.schemas import schemas
from policyeng.server.service import Service

#: Adds each route that judges to an application.
_ADDING = {
    Route.CHECK: check.add,
    Route.ADMIT: admit.add,
    Route.RESTRICTIONS: policy_restrictions.add,
    Route.ADMISSION_REVIEW: admission_review.add,
}


def application(service: Service) -> FastAPI:
    """The application of a service, which it starts and stops with itself."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.openapi()  # so that who asks for it first holds up nobody
        service.start()
        try:
            yield
        finally:
            service.stop()

    app = FastAPI(
        title="policyeng",
        version=__version__,
        summary="Judge Azure Machine Learning workspaces, and changes of them before they are made.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
    )
    app.router.route_class = DirectRoute
    app.add_exception_handler(HTTPException, _refuse)
    for route, add in _ADDING.items():
        if route in service.options.only:
            add(app, service)
    health.add(app, service)
    if service.metrics is not None:
        health.add_metrics(app, service, service.metrics)
    if service.reports is not None:
        from policyeng.server.routes import history  # it needs the templates of the pages

        history.add(app, service, service.reports)
    routes = {
        (method, each.path): each.endpoint
        for each in app.routes
        if isinstance(each, DirectRoute)
        for method in each.methods or ()
    }
    app.middleware_stack = Front(app.build_middleware_stack(), routes, lambda: service.leaving)
    app.openapi = cache(partial(_document, app, service))  # type: ignore[method-assign]  # as FastAPI's documentation has it
    return app


def _document(app: FastAPI, service: Service) -> JsonObject:
    document = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
    document["components"] = {"schemas": openapi.used(schemas(brings_state=service.state is None), document["paths"])}
    if service.tokens is not None:
        document["components"]["securitySchemes"] = openapi.SECURITY
    return document


async def _refuse(request: Request, error: Exception) -> Response:
    """What Starlette refuses: a path that there is not, or a method."""
    status, headers = (error.status_code, error.headers) if isinstance(error, HTTPException) else (500, None)
    refused = RefusedError(status, f"`{request.method} {request.url.path}` is not answered here", headers=headers)
    return problem_response(refused, request.state.request_id)
