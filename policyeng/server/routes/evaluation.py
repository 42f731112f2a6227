"""`POST /v1/check` and `POST /v1/admit`: evaluate a document, or decide on a change before it is made."""

from __future__ import annotations

from datetime import UTC
from http import HTTPStatus

import orjson
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from policyeng.admission import changes_of
from policyeng.admission.decision import with_problems
from policyeng.context import EvaluationSetup
from policyeng.errors import InputError
from policyeng.evaluation import evaluate
from policyeng.models import (
    AppliedSettings,
    Blame,
    Decision,
    Exemption,
    JsonObject,
    Problem,
)
from policyeng.parsing.json_pointer import escaped
from policyeng.report.json import render
from policyeng.server import openapi
from policyeng.server.authentication import TokenScope
from policyeng.server.options import Route
from policyeng.server.request_body import BODY, JSON, YAML, RequestRefusedError, json_of
from policyeng.server.routes.handling import Endpoint, RouteRequest, RouteResponse, answer
from policyeng.server.schemas import AdmitAnswer, CheckDocument
from policyeng.server.service import Service, SnapshotState, decide
from policyeng.sources import ChangesRead, exemptions_of, normalize_context, parse_changes, read_inputs
from policyeng.sources.parsed import raise_errors
from policyeng.sources.validation import validated

ADMIT = Endpoint(Route.ADMIT, TokenScope.ADMIT)

_REMEDY = (
    'send a resource, an id, `{"operation": ...}`, a list of them, what-if output, a plan, or any of that as '
    '`{"change": ..., "state": ...}`'
)


def add_admit(app: FastAPI, service: Service) -> None:
    """Add the route."""

    @app.post("/v1/admit", **openapi.admit(service))
    async def admit(request: Request) -> Response:
        return await answer(service, request, ADMIT, decided)


def decided(service: Service, asked: RouteRequest) -> RouteResponse:
    """Decide on a change.

    Raises:
        RefusedError: the body is no JSON (400) or no change, or there is no state (422), or it is too old (503).
        PolicyengError: as `policyeng.admit`.
    """
    held = service.holding.current
    document = json_of(asked.content)
    read, given, is_dry_run = _parts(document)
    state = None if given is None else _state(given, held, asked)
    standing, age = service.standing(state, asked.at)
    if given is not None:
        decision = decide(held, standing, read.changes, asked.at, Blame.TOUCHED, is_standing=asked.standing)
    else:
        # A change that could not be read whole is denied, so that the rest of it is not made either.
        is_dry_run = is_dry_run or any(problem.level == "error" for problem in read.problems)
        decision = service.decided(
            held,
            standing,
            read.changes,
            asked.at,
            Blame.TOUCHED,
            is_dry_run=is_dry_run,
            is_standing=asked.standing,
        )
    decision = with_problems(decision, read.problems)
    return RouteResponse(rendered(decision, asked.decision_id, age), held, document, decision, age)


def rendered(decision: Decision, decision_id: str, age: float) -> bytes:
    """Return the decision as JSON, with its id and the age of the state in seconds."""
    answer = AdmitAnswer(**vars(decision), decision_id=decision_id, state_age_seconds=age)
    return answer.model_dump_json(by_alias=True, fallback=str).encode()


def _parts(document: object) -> tuple[ChangesRead, object, bool]:
    """Return the change and the state that a body brings, and whether it is a dry run; None for a state that it lacks.

    Raises:
        RefusedError: it is none of that.
    """
    if not isinstance(document, dict) or "change" not in document:
        return _change(document), None, False
    if surplus := sorted(document.keys() - {"change", "state", "dryRun"}):
        raise _refuse(f"unknown key `{surplus[0]}` next to `change`", f"/{escaped(surplus[0])}")
    is_dry_run = document.get("dryRun", False)
    if not isinstance(is_dry_run, bool):
        raise _refuse("`dryRun` is not true or false", "/dryRun", "give `true` or `false`")
    return _change(document["change"]), document.get("state"), is_dry_run


def _change(document: object) -> ChangesRead:
    """Read the changes of a request: our own format, or a document of `policyeng admit`, such as what-if output."""
    if isinstance(document, str) or (isinstance(document, dict) and _is_ours(document)):
        return ChangesRead(changes_of(document), (), {})
    if isinstance(document, list) and document and all(isinstance(each, dict | str) for each in document):
        return ChangesRead(changes_of(document), (), {})
    if not isinstance(document, dict):
        raise _refuse("the request has no changes" if document == [] else "this is not a change", "")
    read = parse_changes(orjson.dumps(document), BODY)
    first = next((problem for problem in read.problems if problem.level == "error"), None)
    if first is not None and not read.changes:
        raise RequestRefusedError(HTTPStatus.UNPROCESSABLE_ENTITY, first.message, place=(first.place or BODY,))
    return read


def _is_ours(document: JsonObject) -> bool:
    return not document.keys().isdisjoint({"operation", "id"})


def _state(given: object, held: EvaluationSetup, asked: RouteRequest) -> SnapshotState:
    """Read the state before the change from a request; its time is now unless it has one."""
    read = read_inputs(["-"], stdin=orjson.dumps(given), **held.bundle.wanted)
    try:
        raise_errors(read.problems)
    except InputError as error:
        message = f"the state cannot be read: {error.message}"
        raise _refuse(message, "/state", "send a snapshot that `policyeng check` reads") from None
    return SnapshotState(read.snapshot, read.snapshot.taken_at or asked.at)


def _refuse(message: str, place: str, remedy: str = _REMEDY) -> RequestRefusedError:
    return RequestRefusedError(HTTPStatus.UNPROCESSABLE_ENTITY, message, place=(BODY, place), remedy=remedy)


CHECK = Endpoint(Route.CHECK, TokenScope.CHECK, (JSON, *YAML))


def add_check(app: FastAPI, service: Service) -> None:
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


def _apply_settings(held: EvaluationSetup, options: CheckDocument) -> AppliedSettings:
    """Return the settings of the server, without those that the request replaces."""
    replaced = {name for name in ("exemptions", "fail_on", "strict_unknown") if getattr(options, name) is not None}
    changes = tuple(change for change in held.applied.changes if change.setting not in replaced)
    return held.applied.model_copy(update={"changes": changes}) if replaced else held.applied


def _read_request(asked: RouteRequest) -> tuple[bytes, CheckDocument]:
    """Read the document to evaluate, and its options."""
    if asked.media_type in YAML:
        return asked.content, CheckDocument(snapshot=None)
    document = json_of(asked.content)
    if b'"snapshot"' not in asked.content or not isinstance(document, dict) or "snapshot" not in document:
        return asked.content, CheckDocument(snapshot=None)
    snapshot, document["snapshot"] = document["snapshot"], None
    options, faults = validated(CheckDocument, document, "")
    if options is None:
        raise _refuse_check(faults[0].message, faults[0].pointer, faults[0].remedy)
    try:
        as_of = options.as_of and options.as_of.astimezone(UTC)
    except OverflowError:
        raise _refuse_check("`asOf` is out of range", "/asOf", "write a time of the years 1 to 9999") from None
    return orjson.dumps(snapshot), options.model_copy(update={"as_of": as_of})


def _refuse_check(message: str, pointer: str, remedy: str) -> RequestRefusedError:
    return RequestRefusedError(HTTPStatus.UNPROCESSABLE_ENTITY, message, place=(BODY, pointer), remedy=remedy)


def _exemptions(options: CheckDocument, held: EvaluationSetup) -> tuple[list[Exemption], list[Problem]]:
    """Those of the request, else those in force; as in a file, a faulty one is a problem and hides no other."""
    if options.exemptions is None:
        return list(held.exemptions), list(held.problems)
    document = {"exemptions": options.exemptions}
    exemptions, problems = exemptions_of(document, BODY, max_days=held.settings.max_exemption_days)
    return list(exemptions), list(problems)
