"""Refused requests: errors with an HTTP status, returned as problem details (RFC 9457)."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

import orjson
from starlette.responses import Response

from policyeng.errors import InputError, PolicyengError, UsageError
from policyeng.models import JsonObject

PROBLEM = "application/problem+json"
#: Seconds after which clients may retry.
_RETRY_AFTER = "1"


class RequestRefusedError(InputError):
    """A request that the server refuses.

    Args:
        status: the HTTP status.
        message, place, remedy: as of every error.
        headers: the headers for the status.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        place: tuple[str, ...] = (),
        remedy: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message, place=place, remedy=remedy)
        self.status = status
        self.headers = dict(headers or {})


def refuse_busy(message: str, *, status: int = HTTPStatus.SERVICE_UNAVAILABLE) -> RequestRefusedError:
    """Return a refusal of a request that may succeed later."""
    return RequestRefusedError(status, message, remedy="retry later", headers={"Retry-After": _RETRY_AFTER})


def status_of(error: PolicyengError) -> int:
    """Return the status of an error: 4xx for faults of the request, 503 for others."""
    if isinstance(error, RequestRefusedError):
        return error.status
    if isinstance(error, InputError | UsageError):
        return HTTPStatus.UNPROCESSABLE_ENTITY
    return HTTPStatus.SERVICE_UNAVAILABLE


def problem_of(error: PolicyengError, request_id: str) -> JsonObject:
    """Return the members of the problem; empty ones are omitted."""
    status = HTTPStatus(status_of(error))
    details = {"place": ": ".join(error.place), "remedy": error.remedy}
    return {
        "type": "about:blank",
        "title": status.phrase,
        "status": status.value,
        "detail": error.message,
        **{key: text for key, text in details.items() if text},
        "requestId": request_id,
    }


def problem_response(error: PolicyengError, request_id: str) -> Response:
    """Return the response to a refused request."""
    headers = error.headers if isinstance(error, RequestRefusedError) else {}
    body = orjson.dumps(problem_of(error, request_id))
    return Response(body, status_of(error), headers, PROBLEM)
