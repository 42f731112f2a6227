"""The bodies of requests and responses as types, which the OpenAPI document describes.

Bodies that may be large are read without these types.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Annotated, Any, Literal, NotRequired

from pydantic import BaseModel, Field, TypeAdapter, WithJsonSchema, with_config
from typing_extensions import TypeAliasType, TypedDict

from policyeng.models import WORKSPACE_TYPE, AwareDatetime, Decision, Evaluation, JsonObject, Limited, Model, Severity
from policyeng.models.base import name_in_json
from policyeng.sources import FORMATS

#: Every number of a document: 64 bits if it is whole.
_Number = Annotated[int | float, WithJsonSchema({"type": "number", "minimum": -(2**63), "maximum": 2**63 - 1})]
Json = TypeAliasType(
    "Json",
    "Annotated[bool | str | _Number | list[Json] | dict[str, Json] | None, "
    "Field(description='Any JSON value without a key twice in one object.')]",
)
_Text = Annotated[str, Field(min_length=1)]
_closed = with_config({"extra": "forbid"})


class _OpenBody(BaseModel, extra="allow", alias_generator=name_in_json):
    """A body that may have other members."""

    __pydantic_extra__: dict[str, Json]


def _any_case(text: str) -> str:
    return "".join(f"[{each}{each.upper()}]" if each.isalpha() else re.escape(each) for each in text)


_NAME = r"[A-Za-z0-9_.()-]+"
_SUBSCRIPTION = f"{_any_case('/subscriptions/')}{_NAME}"
_GROUP = f"{_SUBSCRIPTION}{_any_case('/resourcegroups/')}{_NAME}"
_WORKSPACE = f"{_GROUP}{_any_case(f'/providers/{WORKSPACE_TYPE}/')}{_NAME}"


class CheckDocument(Model, frozen=True, kw_only=True):
    """A document together with options, which have the meaning that they have for `policyeng check`.

    Attributes:
        snapshot: the document.
        exemptions: a list as in an exemptions file; default: those of the server.
        as_of: the evaluation time; default: now.
        fail_on: failures at or above this severity make the exit code 1; default: as the server is configured.
        strict_unknown: what cannot be decided counts as a failure; default: as the server is configured.
        from_: insist on an input format.
        scope: the resource group, or subscription, that templates and plans are deployed to.
        workspace: the workspace, by ARM id or name, that Azure CLI files belong to.
    """

    snapshot: Json
    exemptions: list[Json] | None = None
    as_of: AwareDatetime | None = None
    fail_on: Severity | None = None
    strict_unknown: bool | None = None
    from_: Annotated[str | None, Field(json_schema_extra={"enum": [*FORMATS, None]})] = None
    scope: Annotated[str, Limited(pattern=f"^({_GROUP}|{_SUBSCRIPTION})?$")] = ""
    workspace: Annotated[str, Limited(pattern=f"^({_WORKSPACE}|{_NAME})?$")] = ""


_WithoutOptions = Annotated[dict[str, Json], Field(json_schema_extra={"not": {"required": ["snapshot"]}})]
CheckRequest = TypeAliasType(
    "CheckRequest",
    Annotated[
        CheckDocument | _WithoutOptions | list[Json] | bool | str | _Number | None,
        Field(description="A document of any format that `policyeng check` reads, or one together with options."),
    ],
)


_RESOURCE_TYPE = r"[A-Za-z0-9]+(\.[A-Za-z0-9]+)+(/[A-Za-z0-9]+)+"
_ArmId = Annotated[
    str,
    Field(
        pattern=rf"^({_SUBSCRIPTION}({_any_case('/resourcegroups/')}{_NAME})?)?{_any_case('/providers/')}{_NAME}"
        rf"(/{_NAME}/{_NAME})+$"
    ),
]


class ArmResource(_OpenBody):
    """A resource in the shape in which ARM returns it; without `type`, it is of the type in its id."""

    id: _ArmId
    type: Annotated[str, Field(pattern=f"^{_RESOURCE_TYPE}$")] = ""
    properties: dict[str, Json] = {}


Resource = TypeAliasType("Resource", ArmResource)


@_closed
class PutOperation(TypedDict):
    """Create or replace a resource."""

    operation: Literal["create", "replace"]
    resource: Resource


@_closed
class PatchOperation(TypedDict):
    """Change a part of a resource."""

    operation: Literal["patch"]
    id: _ArmId
    patch: dict[str, Json]


@_closed
class DeleteOperation(TypedDict):
    """Delete a resource."""

    operation: Literal["delete"]
    id: _ArmId


_NO_OPERATION: JsonObject = {"not": {"anyOf": [{"required": ["operation"]}, {"required": ["change"]}]}}
_Put = Annotated[Resource, Field(json_schema_extra=_NO_OPERATION)]
Change = TypeAliasType("Change", _Put | _ArmId | PutOperation | PatchOperation | DeleteOperation)
Changes = TypeAliasType("Changes", Change | Annotated[list[Change], Field(min_length=1)])


@_closed
class ChangeRequest(TypedDict):
    """A change together with options."""

    change: Changes
    dryRun: NotRequired[Annotated[bool, Field(description="The change is not made, whatever the decision is.")]]


@_closed
class AdmitRequest(ChangeRequest):
    """A change together with the state that it changes."""

    state: Annotated[Json, Field(description="A snapshot that `policyeng check` reads.")]


class AdmitAnswer(Decision, frozen=True, kw_only=True):
    """A decision, its id, and the age in seconds of the state that it is based on."""

    decision_id: str
    state_age_seconds: float


class AdmissionReviewRequest(_OpenBody):
    """A question of the Kubernetes API server; what cannot be evaluated as an object is denied."""

    uid: _Text
    kind: Json = None
    resource: Json = None
    sub_resource: Json = None
    name: Json = None
    namespace: Json = None
    operation: Json = None
    object: Json = None
    old_object: Json = None
    dry_run: Json = None


class AdmissionReview(_OpenBody):
    """What a review needs to get an answer."""

    api_version: Literal["admission.k8s.io/v1"]
    kind: Literal["AdmissionReview"]
    request: AdmissionReviewRequest


#: The maximum lengths of the texts of a review, and the maximum number of warnings.
MAX_MESSAGE, MAX_WARNING, MAX_ANNOTATION, MAX_WARNINGS = 4000, 256, 1024, 15


@_closed
class ReviewStatus(TypedDict):
    """Why an object is denied."""

    code: Literal[403, 422, 500]
    message: Annotated[str, Field(min_length=1, max_length=MAX_MESSAGE)]
    reason: Literal["Forbidden", "Invalid", "InternalError"]


_DENIED_WITH_STATUS: JsonObject = {
    "if": {"properties": {"allowed": {"const": False}}},
    "then": {"required": ["status"]},
    "else": {"not": {"required": ["status"]}},
}
_Annotation = Annotated[str, Field(min_length=1, max_length=MAX_ANNOTATION)]
_ANNOTATION_NAMES: JsonObject = {"propertyNames": {"pattern": "^[a-z][a-z-]{0,61}[a-z]$"}}


@with_config({"extra": "forbid", "json_schema_extra": _DENIED_WITH_STATUS})
class ReviewResponse(TypedDict):
    """The answer to a review."""

    uid: _Text
    allowed: bool
    status: NotRequired[ReviewStatus]
    warnings: NotRequired[
        Annotated[list[Annotated[str, Field(max_length=MAX_WARNING)]], Field(max_length=MAX_WARNINGS)]
    ]
    auditAnnotations: NotRequired[Annotated[dict[str, _Annotation], Field(json_schema_extra=_ANNOTATION_NAMES)]]


@_closed
class AdmissionReviewAnswer(TypedDict):
    """What the API server reads of an answer.

    Source: `AdmissionReview` and `AdmissionResponse` of k8s.io/api/admission/v1, `Status` of
    k8s.io/apimachinery/pkg/apis/meta/v1, and the bounds of what it passes on.
    """

    apiVersion: Literal["admission.k8s.io/v1"]
    kind: Literal["AdmissionReview"]
    response: ReviewResponse


#: By key of a resource, the form of its value, and the remedy for another one.
RESOURCE_FORMS = {
    "type": (_RESOURCE_TYPE, "give the type as ARM returns it"),
    "name": (r"[^/]+", "give its last part, and the parent resource as `scope`"),
    "id": (r"/[\s\S]*[^/]", "give the whole ARM id, or leave it out"),
}
_CONTENT: JsonObject = {
    "properties": {key: {"type": "string", "pattern": f"^{form}$"} for key, (form, _) in RESOURCE_FORMS.items()},
    "required": ["type"],
}


class ResourceDetails(Model, frozen=True, kw_only=True):
    """The resource; its content may be a part of it.

    Attributes:
        scope: where it is created: a subscription, a resource group, or its parent resource.
    """

    resource_content: Annotated[dict[str, Json], Field(json_schema_extra=_CONTENT)]
    api_version: str = ""
    scope: Annotated[str, Limited(pattern=f"^{_any_case('/subscriptions/')}[^/]+(/[^/]+/[^/]+)*$")]


class RestrictionsRequest(Model, frozen=True, kw_only=True):
    """The request of Azure Policy; it has no pending fields, because nothing here could answer for them."""

    resource_details: ResourceDetails
    include_audit_effect: bool = False


class PolicyEvaluation(TypedDict):
    """The result of a policy."""

    policyInfo: dict[str, str]
    evaluationResult: str
    evaluationDetails: JsonObject
    effectDetails: dict[str, str]


class ContentEvaluation(TypedDict):
    """The results of the policies."""

    policyEvaluations: list[PolicyEvaluation]


class RestrictionsAnswer(TypedDict):
    """The answer in the form of Azure Policy."""

    fieldRestrictions: Annotated[list[JsonObject], Field(max_length=0)]
    contentEvaluationResult: ContentEvaluation


@_closed
class RefusedRequest(TypedDict):
    """Why a request is refused (RFC 9457); `place` and `remedy` where known."""

    type: str
    title: str
    status: int
    detail: str
    requestId: str
    place: NotRequired[str]
    remedy: NotRequired[str]


@_closed
class Readiness(TypedDict):
    """State whether the server can decide, with the reasons of failed reloads."""

    ready: bool
    reasons: list[str]
    faults: list[str]


Ready = TypeAliasType("Ready", Readiness)


class Alive(TypedDict):
    """The server is alive."""

    status: Literal["alive"]


_BODIES: tuple[Any, ...] = (
    *(CheckRequest, Evaluation, AdmitAnswer, AdmissionReview, AdmissionReviewAnswer),
    *(RestrictionsRequest, RestrictionsAnswer, RefusedRequest, Ready, Alive),
)


def describe(names: Collection[str], *, brings_state: bool) -> JsonObject:
    """Return the schemas of bodies, and those that they refer to, by name.

    Args:
        names: the bodies.
        brings_state: a request includes the state that its change is compared with.
    """
    admit_body = AdmitRequest if brings_state else TypeAliasType("AdmitRequest", Changes | ChangeRequest)
    adapters: list[tuple[str, Literal["serialization"], TypeAdapter[Any]]] = [
        (body.__name__, "serialization", TypeAdapter(body)) for body in (*_BODIES, admit_body) if body.__name__ in names
    ]
    _, described = TypeAdapter.json_schemas(adapters, ref_template="#/components/schemas/{model}")
    schemas: JsonObject = described["$defs"]
    return schemas
