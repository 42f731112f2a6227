"""Why a request is refused: an error with the status it answers with, as a problem of RFC 9457."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

import orjson
from starlette.responses import Response

from policyeng.errors import InputError, PolicyengError, UsageError
from policyeng.models import JsonObject

PROBLEM = "application/problem+json"
#: After how many seconds it is worth to ask again.
_RETRY_AFTER = "1"


class RequestRefusedError(InputError):
    """A request that gets no verdict.

    Args:
        status: of HTTP.
        message, place, remedy: as of every error.
        headers: that belong to the status.
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


def too_busy(message: str, *, status: int = HTTPStatus.SERVICE_UNAVAILABLE) -> RequestRefusedError:
    """A refusal of what may go well later."""
    return RequestRefusedError(status, message, remedy="ask again later", headers={"Retry-After": _RETRY_AFTER})


def status_of(error: PolicyengError) -> int:
    """The status for an error: what is wrong with a request is its caller's to mend, the rest is ours."""
    if isinstance(error, RequestRefusedError):
        return error.status
    if isinstance(error, InputError | UsageError):
        return HTTPStatus.UNPROCESSABLE_ENTITY
    return HTTPStatus.SERVICE_UNAVAILABLE


def problem_of(error: PolicyengError, request_id: str) -> JsonObject:
    """The members of the problem; those that have nothing to say are left out."""
    status = HTTPStatus(status_of(error))
    said = {"place": ": ".join(error.place), "remedy": error.remedy}
    return {
        "type": "about:blank",
        "title": status.phrase,
        "status": status.value,
        "detail": error.message,
        **{key: text for key, text in said.items() if text},
        "requestId": request_id,
    }


def problem_response(error: PolicyengError, request_id: str) -> Response:
    """The answer to a request that is refused."""
    headers = error.headers if isinstance(error, RequestRefusedError) else {}
    body = orjson.dumps(problem_of(error, request_id))
    return Response(body, status_of(error), headers, PROBLEM)
