"""`POST /v1/admission-review`: answer the API server of Kubernetes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from http import HTTPStatus
from typing import NoReturn

import orjson
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from policyeng.errors import InputError, PolicyengError
from policyeng.models import Blame, Change, Decision, Problem, Snapshot
from policyeng.server import openapi
from policyeng.server.admission_review import review
from policyeng.server.options import Route
from policyeng.server.problems import RequestRefusedError
from policyeng.server.request_body import BODY, json_of
from policyeng.server.review_request import request_in
from policyeng.server.routes.handling import Endpoint, RouteRequest, RouteResponse, answer
from policyeng.server.service import Service
from policyeng.server.snapshot_state import SnapshotState
from policyeng.server.tokens import TokenScope
from policyeng.sources.kubernetes.objects import get_inner

_UNLISTED = Snapshot(covers=())
_WITHOUT_STATE = Problem(
    level="warning",
    message="the server has no state, so that nothing is known of other resources; start it with `--snapshot`",
)
ADMISSION_REVIEW = Endpoint(Route.ADMISSION_REVIEW, TokenScope.ADMIT)


def add(app: FastAPI, service: Service) -> None:
    """Add the route."""

    def reviewed(service: Service, asked: RouteRequest) -> RouteResponse:
        held, document = service.holding.current, _review_of(asked)
        state = _state(service, asked.at)
        heard: list[tuple[Decision, float]] = []

        def admit(before: Sequence[Change], changes: Sequence[Change]) -> Decision:
            # The state that the objects were read beside, which another may have taken the place of.
            there, age = service.fresh(state, asked.at)
            # Operators update status and finalizers of objects that fail for old reasons.
            decision = service.decided(
                held,
                there,
                changes,
                asked.at,
                Blame.INTRODUCED,
                before,
                is_dry_run=_is_dry_run(document),
            )
            if service.state is None:
                decision = decision.model_copy(update={"problems": (*decision.problems, _WITHOUT_STATE)})
            heard.append((decision, age))
            return decision

        said = review(document, state.beside, admit, decision_id=asked.decision_id)
        decision, age = heard[-1] if heard else (None, None)
        return RouteResponse(orjson.dumps(said.answer), held, document, decision, age, said.refusal)

    def refused(asked: RouteRequest, error: PolicyengError) -> RouteResponse:
        """Return an AdmissionReview for an error, because a webhook that ignores failures would admit the object."""
        document = _review_of(asked)

        def admit(*_: Sequence[Change]) -> NoReturn:
            raise error

        said = review(document, _state(service, asked.at).beside, admit, decision_id=asked.decision_id)
        return RouteResponse(orjson.dumps(said.answer), document=document, refusal=said.refusal)

    @app.post("/v1/admission-review", **openapi.admission_review(service))
    async def admission_review(request: Request) -> Response:
        return await answer(service, request, ADMISSION_REVIEW, reviewed, refused)


def _is_dry_run(document: object) -> bool:
    return get_inner(document, "request", "dryRun") is True


def _state(service: Service, at: datetime) -> SnapshotState:
    """Return the snapshot to evaluate objects against; without a state, an empty one with everything else unknown."""
    return service.state.current if service.state is not None else SnapshotState(_UNLISTED, at)


def _review_of(asked: RouteRequest) -> object:
    """Read the review of a request.

    Raises:
        RefusedError: it is none of the version that is answered.
    """
    document = json_of(asked.content)
    try:
        request_in(document)
    except InputError as error:
        message, place = error.message, (BODY, *error.place)
        raise RequestRefusedError(HTTPStatus.UNPROCESSABLE_ENTITY, message, place=place, remedy=error.remedy) from None
    return document
