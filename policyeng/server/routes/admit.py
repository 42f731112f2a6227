"""`POST /v1/admit`: decide on a change before it is made."""

from __future__ import annotations

from http import HTTPStatus

import orjson
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from policyeng.admission import changes_of
from policyeng.admission.decision import with_problems
from policyeng.context import EvaluationSetup
from policyeng.errors import InputError
from policyeng.models import Blame, Decision, JsonObject
from policyeng.parsing.json_pointer import escaped
from policyeng.server import openapi
from policyeng.server.options import Route
from policyeng.server.request_body import BODY, RequestRefusedError, json_of
from policyeng.server.routes.handling import Endpoint, RouteRequest, RouteResponse, answer
from policyeng.server.service import Service, SnapshotState, decide
from policyeng.server.tokens import TokenScope
from policyeng.sources import ChangesRead, parse_changes, read_inputs
from policyeng.sources.parsed import raise_errors

ADMIT = Endpoint(Route.ADMIT, TokenScope.ADMIT)

_REMEDY = (
    'send a resource, an id, `{"operation": ...}`, a list of them, what-if output, a plan, or any of that as '
    '`{"change": ..., "state": ...}`'
)


def add(app: FastAPI, service: Service) -> None:
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
    """Return the decision as JSON, with its id and the age of the state in seconds first."""
    begun = orjson.dumps({"decisionId": decision_id, "stateAgeSeconds": age})
    return begun[:-1] + b"," + decision.model_dump_json(by_alias=True, fallback=str).encode()[1:]


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
