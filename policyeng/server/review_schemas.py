"""JSON Schemas of AdmissionReviews as they come in and go out."""

from __future__ import annotations

from policyeng.models import JsonObject

_ANY: JsonObject = {"$ref": "#/components/schemas/Json"}
_ABOUT = ("kind", "resource", "subResource", "name", "namespace", "operation", "object", "oldObject", "dryRun")
#: What a review has to be so that it is answered by one. What it is about may be anything, and is denied where it is
#: nothing that can be judged.
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
