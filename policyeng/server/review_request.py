"""An AdmissionReview as it comes in: what the Kubernetes API server asks, read strictly.

Source: https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers, "Request".
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from policyeng.errors import InputError
from policyeng.models import JsonObject
from policyeng.parsing.json_text import shortened
from policyeng.sources.kubernetes.objects import get_inner
from policyeng.sources.kubernetes.single_object import is_judged
from policyeng.sources.parsed import format_value, kind_of

API_VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"
_LISTED = f"list `v1` in the webhook's `admissionReviewVersions`; only `{API_VERSION}` is answered"


class Verb(StrEnum):
    """What is done to an object."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


class ReviewRequest(NamedTuple):
    """What is asked about an object that is judged.

    Attributes:
        object: as it is to be; None in a deletion.
        old: as it is; None in a creation.
    """

    verb: Verb
    object: JsonObject | None
    old: JsonObject | None


def request_in(review: object) -> JsonObject:
    """Return the request of a review; it must have a uid, which identifies its response.

    Raises:
        InputError: it is no review of the version that is answered.
    """
    kind, version = get_inner(review, "kind"), get_inner(review, "apiVersion")
    if kind != KIND or not isinstance(version, str):
        message = f"not an admission review: {kind_of(review)} without the `apiVersion` and `kind` of one"
        raise InputError(message, place=("/",), remedy=f"send an `{KIND}` of `{API_VERSION}`")
    if version != API_VERSION:
        message = f"unsupported version of admission reviews: `{shortened(version)}`"
        raise InputError(message, place=("/apiVersion",), remedy=_LISTED)
    request = get_inner(review, "request")
    if not isinstance(request, dict) or not isinstance(request.get("uid"), str) or not request["uid"]:
        raise InputError("admission review without a request uid", place=("/request/uid",), remedy="add it")
    return request


def request_of(request: JsonObject) -> ReviewRequest | None:
    """Return the object and the operation of a request; None if policies do not apply to it or nothing changes.

    Raises:
        InputError: what it asks cannot be told; names the place in the review.
    """
    objects = [_object(request, key) for key in ("object", "oldObject")]
    kind = _kind(request)
    if not any(is_judged(*told) for told in (kind, *map(_kind_of, objects))):
        return None
    operation = request.get("operation")
    if operation not in list(Verb):
        message = f"unknown operation: {format_value(operation)}"
        raise InputError(message, place=("/request/operation",), remedy=f"use one of {', '.join(Verb)}")
    # An update of the status is what the operator reports; the API server leaves the `spec` as it is then.
    if operation == Verb.CONNECT or (operation == Verb.UPDATE and request.get("subResource") == "status"):
        return None
    needed = "oldObject" if operation == Verb.DELETE else "object"
    for key, held in zip(("object", "oldObject"), objects, strict=True):
        if held is None and key == needed:
            raise InputError(f"the request has no `{key}`", place=(f"/request/{key}",), remedy="send it")
        if held is not None and _kind_of(held) != kind:
            message = f"the object is not a `{shortened(' '.join(kind))}`, the `kind` of the request"
            raise InputError(message, place=(f"/request/{key}",), remedy="send the object that the request is about")
    return ReviewRequest(Verb(operation), *objects)


def _object(request: JsonObject, key: str) -> JsonObject | None:
    value = request.get(key)
    if value is None or isinstance(value, dict):
        return value
    raise InputError(
        f"not an object: {format_value(value)}", place=(f"/request/{key}",), remedy="send an object, or null"
    )


def _kind(request: JsonObject) -> tuple[str, str]:
    """Return the `apiVersion` and `kind` of the object of a request."""
    parts = [get_inner(request, "kind", part) for part in ("group", "version", "kind")]
    group, version, kind = (part if isinstance(part, str) else "" for part in parts)
    if not version or not kind:
        raise InputError("the request has no kind", place=("/request/kind",), remedy="add it")
    return (f"{group}/{version}" if group else version), kind


def _kind_of(document: JsonObject | None) -> tuple[str, str]:
    parts = [get_inner(document, part) for part in ("apiVersion", "kind")]
    version, kind = (part if isinstance(part, str) else "" for part in parts)
    return version, kind
