"""The schemas that the OpenAPI document names: bodies as they are taken, and answers as they are given."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Literal

from pydantic import TypeAdapter

from policyeng.models import Decision, Evaluation, JsonObject
from policyeng.models.base import adapter_of
from policyeng.server.routes.admission_review import FORMS, RestrictionsRequest
from policyeng.server.routes.evaluation import CheckRequestOptions

_ANY: JsonObject = {"$ref": "#/components/schemas/Json"}
_ABOUT = ("kind", "resource", "subResource", "name", "namespace", "operation", "object", "oldObject", "dryRun")
#: The form that a review needs to get a review as response. Its object may be anything; an object that cannot be
#: evaluated is denied.
QUESTION: JsonObject = {
    "type": "object",
    "required": ["apiVersion", "kind", "request"],
    "properties": {
        "apiVersion": {"const": "admission.k8s.io/v1"},
        "kind": {"const": "AdmissionReview"},
        "request": {
            "type": "object",
            "required": ["uid"],
            "properties": {"uid": {"type": "string", "minLength": 1}, **dict.fromkeys(_ABOUT, _ANY)},
            "additionalProperties": _ANY,
        },
    },
    "additionalProperties": _ANY,
}
#: What the API server reads of an answer. Source: `AdmissionReview` and `AdmissionResponse` of k8s.io/api/admission/v1,
#: `Status` of k8s.io/apimachinery/pkg/apis/meta/v1, and the bounds of what it passes on.
ANSWER: JsonObject = {
    "type": "object",
    "additionalProperties": False,
    "required": ["apiVersion", "kind", "response"],
    "properties": {
        "apiVersion": {"const": "admission.k8s.io/v1"},
        "kind": {"const": "AdmissionReview"},
        "response": {
            "type": "object",
            "additionalProperties": False,
            "required": ["uid", "allowed"],
            "properties": {
                "uid": {"type": "string", "minLength": 1},
                "allowed": {"type": "boolean"},
                "status": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["code", "message", "reason"],
                    "properties": {
                        "code": {"enum": [403, 422, 500]},
                        "message": {"type": "string", "minLength": 1, "maxLength": 4000},
                        "reason": {"enum": ["Forbidden", "Invalid", "InternalError"]},
                    },
                },
                "warnings": {"type": "array", "maxItems": 15, "items": {"type": "string", "maxLength": 256}},
                "auditAnnotations": {
                    "type": "object",
                    "propertyNames": {"pattern": "^[a-z][a-z-]{0,61}[a-z]$"},
                    "additionalProperties": {"type": "string", "minLength": 1, "maxLength": 1024},
                },
            },
            "if": {"properties": {"allowed": {"const": False}}},
            "then": {"required": ["status"]},
            "else": {"not": {"required": ["status"]}},
        },
    },
}

_ID = {"type": "string", "minLength": 1}
#: What every number of a document fits into: 64 bits if it is whole.
_NUMBER = {"type": "number", "minimum": -(2**63), "maximum": 2**63 - 1}


def schemas(*, brings_state: bool) -> JsonObject:
    """Return the schemas by name.

    Args:
        brings_state: a request includes the state that its change is compared with.
    """
    described: list[tuple[str, Literal["serialization"], TypeAdapter[Any]]] = [
        ("Evaluation", "serialization", adapter_of(Evaluation)),
        ("Decision", "serialization", adapter_of(Decision)),
    ]
    _, nouns = TypeAdapter.json_schemas(described, ref_template="#/components/schemas/{model}")
    defined: JsonObject = {**nouns["$defs"], **_values(), **_changes(), **_restrictions(), **_shrink()}
    noun = deepcopy(defined["Decision"])
    own = {"decisionId": {"type": "string"}, "stateAgeSeconds": {"type": "number"}}
    defined["AdmitAnswer"] = {
        **noun,
        "properties": {**own, **noun["properties"]},
        "required": [*own, *noun["required"]],
    }
    defined["CheckRequest"] = _check_request()
    defined |= {"AdmissionReview": QUESTION, "AdmissionReviewAnswer": ANSWER}
    defined["AdmitRequest"] = _admit_request(brings_state=brings_state)
    return defined


def _find_named(name: str) -> JsonObject:
    return {"$ref": f"#/components/schemas/{name}"}


def _of(noun: type[CheckRequestOptions] | type[RestrictionsRequest]) -> JsonObject:
    """Return the complete schema of a request, without references to other documents."""
    schema = noun.model_json_schema(by_alias=True)
    inner = schema.pop("$defs", {})

    def resolved(value: object) -> object:
        if isinstance(value, dict):
            name = str(value.get("$ref", "")).rpartition("/")[2]
            return resolved(inner[name]) if name else {key: resolved(below) for key, below in value.items()}
        return [resolved(below) for below in value] if isinstance(value, list) else value

    whole = resolved(schema)
    return whole if isinstance(whole, dict) else {}


def _values() -> JsonObject:
    held = [
        {"type": "array", "items": _find_named("Json")},
        {"type": "object", "additionalProperties": _find_named("Json")},
    ]
    plain = [{"type": "null"}, {"type": "boolean"}, {"type": "string"}, _NUMBER]
    return {"Json": {"description": "Any JSON value without a key twice in one object.", "anyOf": [*plain, *held]}}


def _check_request() -> JsonObject:
    options = _of(CheckRequestOptions)
    options["properties"] = {"snapshot": _find_named("Json"), **options["properties"]}
    options["properties"]["exemptions"] = {"anyOf": [{"type": "array", "items": _find_named("Json")}, {"type": "null"}]}
    document = {"type": "object", "additionalProperties": _find_named("Json"), "not": {"required": ["snapshot"]}}
    others = [shape for shape in _values()["Json"]["anyOf"] if shape.get("type") != "object"]
    return {
        "description": "A document of any format that `policyeng check` reads, or one together with options.",
        "anyOf": [{**options, "required": ["snapshot"]}, document, *others],
    }


def _changes() -> JsonObject:
    resource = {
        "type": "object",
        "description": "A resource in the shape in which ARM returns it.",
        "properties": {"id": _ID, "type": _ID},
        "required": ["id", "type"],
        "additionalProperties": _find_named("Json"),
    }
    own = [{"required": [name]} for name in ("operation", "change")]
    operations: dict[tuple[str, ...], JsonObject] = {
        ("create", "replace"): {"resource": _find_named("Resource")},
        ("patch",): {"id": _ID, "patch": {"type": "object", "additionalProperties": _find_named("Json")}},
        ("delete",): {"id": _ID},
    }
    written = [
        {
            "type": "object",
            "properties": {"operation": {"enum": list(names)}, **members},
            "required": ["operation", *members],
            "additionalProperties": False,
        }
        for names, members in operations.items()
    ]
    one = [{**resource, "not": {"anyOf": own}}, _ID, *written]
    several = {"type": "array", "items": _find_named("Change"), "minItems": 1}
    return {"Resource": resource, "Change": {"anyOf": one}, "Changes": {"anyOf": [*one, several]}}


def _admit_request(*, brings_state: bool) -> JsonObject:
    stated = (
        {"state": {"description": "A snapshot that `policyeng check` reads.", **_find_named("Json")}}
        if brings_state
        else {}
    )
    members = {"change": _find_named("Changes"), **stated}
    dry = {"dryRun": {"description": "The change is not made, whatever the decision is.", "type": "boolean"}}
    properties = {**members, **dry}
    whole = {"type": "object", "properties": properties, "required": list(members), "additionalProperties": False}
    return whole if brings_state else {"anyOf": [_find_named("Changes"), whole]}


def _restrictions() -> JsonObject:
    request = _of(RestrictionsRequest)
    forms = {key: {"type": "string", "pattern": f"^{pattern}$"} for key, (pattern, _) in FORMS.items()}
    content = request["properties"]["resourceDetails"]["properties"]["resourceContent"]
    content |= {
        "properties": forms,
        "required": ["type"],
        "additionalProperties": _find_named("Json"),
    }
    evaluation = {
        "type": "object",
        "required": ["policyInfo", "evaluationResult", "evaluationDetails", "effectDetails"],
    }
    properties = {"policyEvaluations": {"type": "array", "items": evaluation}}
    answer = {
        "type": "object",
        "properties": {
            "fieldRestrictions": {"type": "array", "maxItems": 0},
            "contentEvaluationResult": {"type": "object", "properties": properties, "required": [*properties]},
        },
        "required": ["fieldRestrictions", "contentEvaluationResult"],
    }
    return {"RestrictionsRequest": request, "RestrictionsAnswer": answer}


def _shrink() -> JsonObject:
    text: JsonObject = {"type": "string"}
    lines: JsonObject = {"type": "array", "items": text}
    problem: JsonObject = {
        "type": text,
        "title": text,
        "status": {"type": "integer"},
        "detail": text,
        "requestId": text,
    }
    ready: JsonObject = {"ready": {"type": "boolean"}, "reasons": lines, "faults": lines}
    return {
        "RefusedRequest": {
            "description": "Why a request is refused (RFC 9457); `place` and `remedy` where known.",
            "type": "object",
            "properties": {**problem, "place": text, "remedy": text},
            "required": [*problem],
            "additionalProperties": False,
        },
        "Ready": {"type": "object", "properties": ready, "required": [*ready], "additionalProperties": False},
        "Alive": {"type": "object", "properties": {"status": {"const": "alive"}}, "required": ["status"]},
    }
