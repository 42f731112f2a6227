"""The OpenAPI description of each route, and the schemas that it refers to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import orjson

from policyeng.models import JsonObject
from policyeng.server.authentication import TokenScope
from policyeng.server.request_body import JSON, PROBLEM, YAML
from policyeng.server.service import Service

_BEARER = "token"
_NAMED = re.compile(r'"\$ref":"#/components/schemas/(\w+)"')
_WORKSPACE = (
    "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-ml/providers"
    "/Microsoft.MachineLearningServices/workspaces/ws"
)
_RESOURCE = {
    "id": _WORKSPACE,
    "name": "ws",
    "type": "Microsoft.MachineLearningServices/workspaces",
    "location": "westeurope",
    "properties": {"publicNetworkAccess": "Enabled"},
}
_SNAPSHOT = {"snapshotVersion": 1, "resources": [_RESOURCE]}
_REFUSALS: Mapping[int, str] = {
    400: "The body is empty, not JSON, or does not have the announced length.",
    401: "The request has no token, or an unknown one.",
    403: "The token lacks the scope.",
    408: "The body did not arrive in time.",
    413: "The body is longer than allowed.",
    415: "The body is of another media type, compressed, or not in UTF-8.",
    422: "The body is JSON, but not a valid request.",
    429: "Too many requests at the same time.",
    500: "Unexpected error.",
    503: "Not decided, or not in time; the change is not allowed.",
}

_STANDING = {
    "name": "standing",
    "in": "query",
    "description": "Also list failures that existed before the change and that it is not blamed for.",
    "schema": {"type": "boolean", "default": False},
}

#: What routes require of their callers if the server has tokens.
SECURITY = {_BEARER: {"type": "http", "scheme": "bearer"}}


def check(service: Service) -> JsonObject:
    """Describe `POST /v1/check`."""
    examples = {
        "snapshot": {"summary": "A document of any format that `policyeng check` reads", "value": _SNAPSHOT},
        "options": {
            "summary": "A document together with options",
            "value": {"snapshot": _SNAPSHOT, "failOn": "high", "asOf": "2026-06-01T00:00:00Z", "exemptions": []},
        },
    }
    return _describe_evaluation_route(
        service,
        TokenScope.CHECK,
        "Evaluate a document as `policyeng check` does",
        "The answer is the JSON report, whatever the findings; its `exitCode` is that of the command. What cannot be "
        "read of the document is a problem in it.",
        {JSON: _content("CheckRequest", examples), **{kind: {"schema": {}} for kind in YAML}},
        _content("Evaluation"),
    )


def admit(service: Service) -> JsonObject:
    """Describe `POST /v1/admit`."""
    state = {} if service.state is not None else {"state": {"snapshotVersion": 1, "resources": []}}
    changes = {
        "create or replace": _RESOURCE,
        "delete": _WORKSPACE,
        "patch": {"operation": "patch", "id": _WORKSPACE, "patch": {"properties": {"publicNetworkAccess": "Enabled"}}},
    }
    shown = {
        name.replace(" ", "-"): {"summary": name, "value": {**state, "change": change} if state else change}
        for name, change in changes.items()
    }
    return _describe_evaluation_route(
        service,
        TokenScope.ADMIT,
        "Decide on a change before it is made",
        "A change is a resource to create or replace, an id to delete, an operation, or a list of them that are made "
        "together; what-if output and Terraform plans are read as `policyeng admit` reads them. The answer is the "
        "decision, 200 also when it denies: read `allowed`.",
        {JSON: _content("AdmitRequest", shown)},
        _content("AdmitAnswer"),
        parameters=[_STANDING],
    )


def admission_review(service: Service) -> JsonObject:
    """Describe `POST /v1/admission-review`."""
    workspace = {"apiVersion": "machinelearningservices.azure.com/v1api20240401", "kind": "Workspace"}
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": "machinelearningservices.azure.com", "version": "v1api20240401", "kind": "Workspace"},
        "operation": "CREATE",
        "object": {**workspace, "metadata": {"name": "ws"}, "spec": {"publicNetworkAccess": "Enabled"}},
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return _describe_evaluation_route(
        service,
        TokenScope.ADMIT,
        "Answer an AdmissionReview of Kubernetes",
        "`admission.k8s.io/v1`, for a ValidatingWebhookConfiguration. Objects of kinds that no policy applies to are "
        "allowed without remarks; objects that cannot be decided on are not allowed.",
        {JSON: _content("AdmissionReview", {"create": {"summary": "A workspace that is created", "value": review}})},
        _content("AdmissionReviewAnswer"),
    )


def policy_restrictions(service: Service) -> JsonObject:
    """Describe `POST /v1/check-policy-restrictions`."""
    content = {key: value for key, value in _RESOURCE.items() if key != "id"}
    details = {"resourceContent": content, "apiVersion": "2025-06-01", "scope": _WORKSPACE.partition("/providers")[0]}
    examples = {"create": {"summary": "A workspace that is about to be made", "value": {"resourceDetails": details}}}
    return _describe_evaluation_route(
        service,
        TokenScope.ADMIT,
        "Ask as Azure Policy is asked",
        "The form of `checkPolicyRestrictions` (Microsoft.PolicyInsights 2023-03-01). Pending fields are refused.",
        {JSON: _content("RestrictionsRequest", examples)},
        _content("RestrictionsAnswer"),
    )


def healthz() -> JsonObject:
    """Describe `GET /healthz`."""
    return _describe_request(
        "Report whether the server is alive", {200: _response("It is.", {JSON: _content("Alive")})}
    )


def readyz() -> JsonObject:
    """Describe `GET /readyz`."""
    texts = {200: "The server is ready.", 503: "The server is not ready; `reasons` lists why."}
    headers = {"X-Policyeng-Degraded": _header("What is in force of an earlier reading; only there for something.")}
    responses = {code: _response(text, {JSON: _content("Ready")}, headers) for code, text in texts.items()}
    return _describe_request("Report whether the server can decide", responses)


def metrics(service: Service) -> JsonObject:
    """Describe `GET /metrics`."""
    responses = {200: _response("The text format of Prometheus.", {"text/plain": {"schema": {"type": "string"}}})}
    return _describe_request(
        "Metrics", responses | _refusals(_describe_refusals(service)), **_add_security(service, TokenScope.METRICS)
    )


def list_schemas(paths: JsonObject) -> set[str]:
    """Return the names of the schemas that descriptions of routes refer to."""
    return set(_NAMED.findall(orjson.dumps(paths, default=str).decode()))


def _describe_evaluation_route(
    service: Service,
    scope: TokenScope,
    summary: str,
    description: str,
    taken: Mapping[str, JsonObject],
    given: JsonObject,
    **extra: object,
) -> JsonObject:
    """Return the description of a route for evaluations or decisions."""
    refused = [code for code in _REFUSALS if code not in (401, 403) or code in _describe_refusals(service)]
    headers = {"X-Decision-Id": _header("The id of the answer in the decision log.")}
    responses = {200: _response("The verdict.", {JSON: given}, headers)} | _refusals(refused)
    body = {"required": True, "content": dict(taken)}
    described = _describe_request(summary, responses, requestBody=body, **_add_security(service, scope), **extra)
    return {**described, "description": description}


def _describe_request(summary: str, responses: Mapping[int, JsonObject], **extra: object) -> JsonObject:
    return {
        "summary": summary,
        "responses": {},
        "openapi_extra": {"responses": {str(code): response for code, response in responses.items()}, **extra},
        "response_model": None,
    }


def _describe_refusals(service: Service) -> tuple[int, ...]:
    """Return the responses for requests that are refused."""
    certificate = (403,) if service.options.tls_client_ca is not None else ()
    return (401, 403) if service.tokens is not None else certificate


def _add_security(service: Service, scope: TokenScope) -> JsonObject:
    return {"security": [{_BEARER: []}], "x-scope": str(scope)} if service.tokens is not None else {}


def _refusals(codes: Iterable[int]) -> dict[int, JsonObject]:
    return {code: _response(_REFUSALS[code], {PROBLEM: _content("RefusedRequest")}, _OWN.get(code)) for code in codes}


def _response(
    description: str, content: Mapping[str, JsonObject], headers: Mapping[str, JsonObject] | None = None
) -> JsonObject:
    known = {"X-Request-Id": _header("The id of the request: the one that it came with, if it is one.")}
    return {"description": description, "headers": {**known, **(headers or {})}, "content": dict(content)}


def _header(description: str) -> JsonObject:
    return {"description": description, "schema": {"type": "string"}}


_OWN = {
    401: {"WWW-Authenticate": _header("`Bearer`, and what is wrong with the token.")},
    429: {"Retry-After": _header("After how many seconds to ask again.")},
    503: {"Retry-After": _header("After how many seconds to ask again, where that helps.")},
}


def _content(schema: str, examples: Mapping[str, JsonObject] | None = None) -> JsonObject:
    shown = {"examples": dict(examples)} if examples else {}
    return {"schema": {"$ref": f"#/components/schemas/{schema}"}, **shown}
