"""The routes that Kubernetes and Azure Policy call."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import NoReturn

import orjson
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from policyeng.errors import InputError, PolicyengError
from policyeng.models import (
    Blame,
    Change,
    Decision,
    Denial,
    Finding,
    JsonObject,
    Outcome,
    Problem,
    Snapshot,
    lowered,
)
from policyeng.server import openapi
from policyeng.server.admission_review import request_in, review
from policyeng.server.authentication import TokenScope
from policyeng.server.options import Route
from policyeng.server.request_body import BODY, RequestRefusedError, json_of
from policyeng.server.routes.handling import Endpoint, RouteRequest, RouteResponse, answer
from policyeng.server.schemas import (
    RESOURCE_FORMS,
    PolicyEvaluation,
    ResourceDetails,
    RestrictionsAnswer,
    RestrictionsRequest,
)
from policyeng.server.service import Service, SnapshotState, decide
from policyeng.sources.kubernetes.objects import get_inner
from policyeng.sources.validation import validated

_UNLISTED = Snapshot(covers=())
_WITHOUT_STATE = Problem(
    level="warning",
    message="the server has no state, so that nothing is known of other resources; start it with `--snapshot`",
)
ADMISSION_REVIEW = Endpoint(Route.ADMISSION_REVIEW, TokenScope.ADMIT)


def add_admission_review(app: FastAPI, service: Service) -> None:
    """Add the route."""

    def reviewed(service: Service, asked: RouteRequest) -> RouteResponse:
        held, document = service.holding.current, _review_of(asked)
        state = _state(service, asked.at)
        decisions: list[tuple[Decision, float]] = []

        def admit(before: Sequence[Change], changes: Sequence[Change]) -> Decision:
            # Use the state that the objects were read with; a newer one may have been loaded since.
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
            decisions.append((decision, age))
            return decision

        answered = review(document, state.context, admit, decision_id=asked.decision_id)
        decision, age = decisions[-1] if decisions else (None, None)
        return RouteResponse(orjson.dumps(answered.answer), held, document, decision, age, answered.refusal)

    def refused(asked: RouteRequest, error: PolicyengError) -> RouteResponse:
        """Return an AdmissionReview for an error, because a webhook that ignores failures would admit the object."""
        document = _review_of(asked)

        def admit(*_: Sequence[Change]) -> NoReturn:
            raise error

        answered = review(document, _state(service, asked.at).context, admit, decision_id=asked.decision_id)
        return RouteResponse(orjson.dumps(answered.answer), document=document, refusal=answered.refusal)

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


RESTRICTIONS = Endpoint(Route.RESTRICTIONS, TokenScope.ADMIT)

#: The name of a resource that has none yet.
UNNAMED = "unnamed"


def add_policy_restrictions(app: FastAPI, service: Service) -> None:
    """Add the route."""

    @app.post("/v1/check-policy-restrictions", **openapi.policy_restrictions(service))
    async def check_policy_restrictions(request: Request) -> Response:
        return await answer(service, request, RESTRICTIONS, evaluated)


def evaluated(service: Service, asked: RouteRequest) -> RouteResponse:
    """Return the result of the policies for a resource that does not exist yet, in Azure's format.

    Raises:
        RefusedError: the body is no JSON (400) or not of this form, there is no state (422), or it is too old (503).
        PolicyengError: as `policyeng.admit`.
    """
    held = service.holding.current
    document = json_of(asked.content)
    request, faults = validated(RestrictionsRequest, document, "")
    if request is None:
        raise _refuse(faults[0].message, faults[0].pointer, faults[0].remedy)
    standing, age = service.standing(None, asked.at)
    resource = resource_of(request.resource_details)
    decision = decide(held, standing, resource, asked.at, Blame.TOUCHED)
    if decision.exit_code and not decision.denied:
        raise _refuse(decision.problems[0].message, "/resourceDetails", "correct it there")
    evaluations = list(_evaluations(decision, held.bundle.name, audited=request.include_audit_effect))
    body: RestrictionsAnswer = {"fieldRestrictions": [], "contentEvaluationResult": {"policyEvaluations": evaluations}}
    return RouteResponse(orjson.dumps(body, default=str), held, document, decision, age)


def resource_of(details: ResourceDetails) -> JsonObject:
    """Return the resource with an id: its own, else one from the scope, the type and the name, as ARM builds it.

    Raises:
        RefusedError: its type, its name or its id is none.
    """
    content = details.resource_content
    given: JsonObject = {"name": UNNAMED, "id": f"{details.scope}/{UNNAMED}", **content}
    for key, (pattern, remedy) in RESOURCE_FORMS.items():
        text = given.get(key)
        if not (isinstance(text, str) and re.fullmatch(pattern, text)):
            raise _refuse(f"the `{key}` of the resource is none", f"/resourceDetails/resourceContent/{key}", remedy)
    identity = content.get("id") or _identity(details.scope, given["type"], given["name"])
    return {**content, "name": given["name"], "id": identity}


def _identity(scope: str, kind: str, name: str) -> str:
    provider, *above, last = kind.split("/")
    if lowered(provider) in map(lowered, scope.split("/")):  # the scope is its parent resource
        return f"{scope}/{last}/{name}"
    return "/".join([scope, "providers", provider, *(f"{each}/{UNNAMED}" for each in above), last, name])


def _evaluations(decision: Decision, bundle: str, *, audited: bool) -> Iterator[PolicyEvaluation]:
    yield from (_evaluation(finding, bundle, "Deny") for finding in decision.denied)
    if audited:
        yield from (_evaluation(finding, bundle, "Audit") for finding in (*decision.warned, *decision.undecided))


_SAID = {Outcome.FAIL: "NonCompliant", Outcome.UNKNOWN: "Unknown", Outcome.ERROR: "Error"}


def _evaluation(finding: Finding, bundle: str, effect: str) -> PolicyEvaluation:
    return {
        "policyInfo": {
            "policyDefinitionId": finding.policy,
            "policySetDefinitionId": bundle,
            "policyDefinitionReferenceId": finding.policy,
        },
        "evaluationResult": _SAID[finding.outcome],
        "evaluationDetails": {"reason": finding.title, "evaluatedExpressions": _expressions(finding.denials)},
        "effectDetails": {"policyEffect": effect},
    }


def _expressions(denials: Iterable[Denial]) -> list[JsonObject]:
    """One for each denial, which holds: the field is what it must not be."""
    return [
        {
            "result": "True",
            "expressionKind": "field",
            "expression": denial.msg,
            "path": denial.path.lstrip("/").replace("/", "."),
            "expressionValue": denial.actual,
            "targetValue": denial.expected,
            "operator": "notEquals",
        }
        for denial in denials
    ]


def _refuse(message: str, pointer: str, remedy: str) -> RequestRefusedError:
    return RequestRefusedError(HTTPStatus.UNPROCESSABLE_ENTITY, message, place=(BODY, pointer), remedy=remedy)
