"""The routes that Kubernetes and Azure Policy call."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import NoReturn

import orjson

from policyeng.errors import InputError, PolicyengError
from policyeng.models import (
    Blame,
    Change,
    Decision,
    Denial,
    Finding,
    JsonObject,
    Operation,
    Outcome,
    Problem,
    Snapshot,
    lowered,
)
from policyeng.server import openapi
from policyeng.server.admission_review import request_in, review
from policyeng.server.authentication import TokenScope
from policyeng.server.options import Route
from policyeng.server.request_body import json_of, refuse_body
from policyeng.server.routes.handling import Endpoint, RouteRequest, RouteResponse
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


def reviewed(service: Service, request: RouteRequest) -> RouteResponse:
    """Return the response to an AdmissionReview.

    Raises:
        RefusedError: the body is no JSON (400) or no review (422).
    """
    setup, document = service.setup.current, _review_of(request)
    state = _state(service, request.at)
    decisions: list[tuple[Decision, float]] = []

    def admit(before: Sequence[Change], changes: Sequence[Change]) -> Decision:
        # Use the state that the objects were read with; a newer one may have been loaded since.
        there, age = service.fresh(state, request.at)
        # Operators update status and finalizers of objects that fail for old reasons.
        decision = service.decided(
            setup,
            there,
            changes,
            request.at,
            Blame.INTRODUCED,
            before,
            is_dry_run=_is_dry_run(document),
        )
        if service.state is None:
            decision = decision.model_copy(update={"problems": (*decision.problems, _WITHOUT_STATE)})
        decisions.append((decision, age))
        return decision

    result = review(document, state.context, admit, decision_id=request.decision_id)
    decision, age = decisions[-1] if decisions else (None, None)
    return RouteResponse(orjson.dumps(result.answer), setup, document, decision, age, result.refusal)


def refused(service: Service, request: RouteRequest, error: PolicyengError) -> RouteResponse:
    """Return an AdmissionReview for an error, because a webhook that ignores failures would admit the object."""
    document = _review_of(request)

    def admit(*_: Sequence[Change]) -> NoReturn:
        raise error

    result = review(document, _state(service, request.at).context, admit, decision_id=request.decision_id)
    return RouteResponse(orjson.dumps(result.answer), document=document, refusal=result.refusal)


def _is_dry_run(document: object) -> bool:
    return get_inner(document, "request", "dryRun") is True


def _state(service: Service, at: datetime) -> SnapshotState:
    """Return the snapshot to evaluate objects against; without a state, an empty one with everything else unknown."""
    return service.state.current if service.state is not None else SnapshotState(_UNLISTED, at)


def _review_of(request: RouteRequest) -> object:
    """Read the review of a request.

    Raises:
        RefusedError: it is none of the version that is answered.
    """
    document = json_of(request.content)
    try:
        request_in(document)
    except InputError as error:
        raise refuse_body(error.message, error.place[0], error.remedy) from None
    return document


#: The name of a resource that has none yet.
UNNAMED = "unnamed"


def evaluated(service: Service, request: RouteRequest) -> RouteResponse:
    """Return the result of the policies for a resource that does not exist yet, in Azure's format.

    Raises:
        RefusedError: the body is no JSON (400) or not of this form, there is no state (422), or it is too old (503).
        PolicyengError: as `policyeng.admit`.
    """
    setup = service.setup.current
    document = json_of(request.content)
    details, faults = validated(RestrictionsRequest, document, "")
    if details is None:
        raise refuse_body(faults[0].message, faults[0].place, faults[0].remedy)
    state, age = service.choose_state(None, request.at)
    resource = resource_of(details.resource_details)
    change = Change(operation=Operation.REPLACE, id=resource["id"], resource=resource)
    decision = decide(setup, state, change, request.at, Blame.TOUCHED)
    if decision.exit_code and not decision.denied:
        raise refuse_body(decision.problems[0].message, "/resourceDetails", "correct it there")
    evaluations = list(_evaluations(decision, setup.bundle.name, audited=details.include_audit_effect))
    body: RestrictionsAnswer = {"fieldRestrictions": [], "contentEvaluationResult": {"policyEvaluations": evaluations}}
    return RouteResponse(orjson.dumps(body, default=str), setup, document, decision, age)


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
            raise refuse_body(f"the `{key}` of the resource is none", f"/resourceDetails/resourceContent/{key}", remedy)
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


_COMPLIANCE = {Outcome.FAIL: "NonCompliant", Outcome.UNKNOWN: "Unknown", Outcome.ERROR: "Error"}


def _evaluation(finding: Finding, bundle: str, effect: str) -> PolicyEvaluation:
    return {
        "policyInfo": {
            "policyDefinitionId": finding.policy,
            "policySetDefinitionId": bundle,
            "policyDefinitionReferenceId": finding.policy,
        },
        "evaluationResult": _COMPLIANCE[finding.outcome],
        "evaluationDetails": {"reason": finding.title, "evaluatedExpressions": _expressions(finding.denials)},
        "effectDetails": {"policyEffect": effect},
    }


def _expressions(denials: Iterable[Denial]) -> list[JsonObject]:
    """Return an expression for each denial: the field has a value that it must not have."""
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


ADMISSION_REVIEW = Endpoint(Route.ADMISSION_REVIEW, TokenScope.ADMIT, openapi.admission_review, reviewed, refused)
RESTRICTIONS = Endpoint(Route.RESTRICTIONS, TokenScope.ADMIT, openapi.policy_restrictions, evaluated)
