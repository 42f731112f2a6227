"""`POST /v1/check`: evaluate a document as `policyeng check` does, and respond with its JSON report."""

from __future__ import annotations

from datetime import UTC
from http import HTTPStatus
from typing import Annotated, Any

import orjson
from fastapi import FastAPI
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from policyeng.context import EvaluationSetup
from policyeng.evaluation import evaluate
from policyeng.frozen import frozen
from policyeng.models import AppliedSettings, AwareDatetime, Exemption, Limited, Model, Problem, Severity
from policyeng.report.json import render
from policyeng.server import openapi
from policyeng.server.options import Route
from policyeng.server.request_body import BODY, GROUP, JSON, WORKSPACE, YAML, RequestRefusedError, json_of
from policyeng.server.routes.handling import Endpoint, RouteRequest, RouteResponse, answer
from policyeng.server.service import Service
from policyeng.server.tokens import TokenScope
from policyeng.sources import FORMATS, exemptions_of, normalize_context, read_inputs
from policyeng.sources.validation import validated

CHECK = Endpoint(Route.CHECK, TokenScope.CHECK, (JSON, *YAML))


@frozen(kw_only=True)
class CheckRequestOptions(Model):
    """The options next to `snapshot` in a check request, with the meaning that they have for `policyeng check`.

    Attributes:
        exemptions: a list as in an exemptions file; default: those of the server.
        as_of: the evaluation time; default: now.
        fail_on: failures at or above this severity make the exit code 1; as the server is set up unless given.
        strict_unknown: what cannot be decided counts as a failure does; as the server is set up unless given.
        from_: insist on an input format.
        scope: the resource group, or subscription, that templates and plans are deployed to.
        workspace: the workspace, by ARM id or name, that Azure CLI files belong to.
    """

    exemptions: list[Any] | None = None
    as_of: AwareDatetime | None = None
    fail_on: Severity | None = None
    strict_unknown: bool | None = None
    from_: Annotated[str | None, Field(json_schema_extra={"enum": [*FORMATS, None]})] = None
    scope: Annotated[str, Limited(pattern=GROUP)] = ""
    workspace: Annotated[str, Limited(pattern=WORKSPACE)] = ""


def add(app: FastAPI, service: Service) -> None:
    """Add the route."""

    @app.post("/v1/check", **openapi.check(service))
    async def check(request: Request) -> Response:
        return await answer(service, request, CHECK, report_on_document)


def report_on_document(service: Service, asked: RouteRequest) -> RouteResponse:
    """Return the report on a document.

    Raises:
        RefusedError: the body is no JSON (400), or its options do not fit (422).
        PolicyengError: as `evaluate`.
    """
    held = service.holding.current
    content, options = _read_request(asked)
    exemptions, problems = _exemptions(options, held)
    read = read_inputs(
        ["-"],
        from_format=options.from_,
        max_bytes=max(len(content), 1),
        stdin=content,
        said=normalize_context(options.scope, options.workspace, {}),
        **held.bundle.wanted,
    )
    settings, strict = held.settings, options.strict_unknown
    evaluation = evaluate(
        held.bundle,
        read.snapshot,
        as_of=options.as_of or asked.at,
        exemptions=exemptions,
        parameters=held.parameters,
        fail_on=options.fail_on or settings.fail_on,
        strict_unknown=settings.strict_unknown if strict is None else strict,
        problems=(*read.problems, *problems),
    )
    evaluation = evaluation.model_copy(update={"settings": _apply_settings(held, options)})
    return RouteResponse(render(evaluation).encode(), held, outcome=evaluation)


def _apply_settings(held: EvaluationSetup, options: CheckRequestOptions) -> AppliedSettings:
    """Return the settings of the server, without those that the request replaces."""
    replaced = {name for name in ("exemptions", "fail_on", "strict_unknown") if getattr(options, name) is not None}
    changes = tuple(change for change in held.applied.changes if change.setting not in replaced)
    return held.applied.model_copy(update={"changes": changes}) if replaced else held.applied


def _read_request(asked: RouteRequest) -> tuple[bytes, CheckRequestOptions]:
    """Read the document to evaluate, and its options."""
    if asked.media_type in YAML:
        return asked.content, CheckRequestOptions()
    document = json_of(asked.content)
    if b'"snapshot"' not in asked.content or not isinstance(document, dict) or "snapshot" not in document:
        return asked.content, CheckRequestOptions()
    snapshot = document.pop("snapshot")
    options, faults = validated(CheckRequestOptions, document, "")
    if options is None:
        raise _refuse(faults[0].message, faults[0].pointer, faults[0].remedy)
    try:
        as_of = options.as_of and options.as_of.astimezone(UTC)
    except OverflowError:
        raise _refuse("`asOf` is out of range", "/asOf", "write a time of the years 1 to 9999") from None
    return orjson.dumps(snapshot), options.model_copy(update={"as_of": as_of})


def _refuse(message: str, pointer: str, remedy: str) -> RequestRefusedError:
    return RequestRefusedError(HTTPStatus.UNPROCESSABLE_ENTITY, message, place=(BODY, pointer), remedy=remedy)


def _exemptions(options: CheckRequestOptions, held: EvaluationSetup) -> tuple[list[Exemption], list[Problem]]:
    """Those of the request, else those in force; as in a file, a faulty one is a problem and hides no other."""
    if options.exemptions is None:
        return list(held.exemptions), list(held.problems)
    document = {"exemptions": options.exemptions}
    exemptions, problems = exemptions_of(document, BODY, max_days=held.settings.max_exemption_days)
    return list(exemptions), list(problems)
